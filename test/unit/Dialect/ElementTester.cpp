//===- ElementTester.cpp - Runs element definitions and watches what they read -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementTester.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>

using namespace mlir;
using namespace dovetail;
using layout::Box;
using layout::Interval;

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

TestTensor::TestTensor(ArrayRef<int64_t> shape, double value)
    : shape(shape), values(ShapedType::getNumElements(shape), value) {}

bool TestTensor::contains(ArrayRef<int64_t> index) const {
  for (auto [coordinate, extent] : llvm::zip_equal(index, shape))
    if (coordinate < 0 || coordinate >= extent)
      return false;
  return true;
}

size_t TestTensor::position(ArrayRef<int64_t> index) const {
  EXPECT_TRUE(contains(index));
  size_t position = 0;
  for (auto [coordinate, extent] : llvm::zip_equal(index, shape))
    position = position * extent + coordinate;
  return position;
}

void dovetail::forEachIndex(const Box &box, function_ref<void(ArrayRef<int64_t>)> visit) {
  if (box.empty())
    return;
  SmallVector<int64_t> index;
  for (Interval dim : box)
    index.push_back(dim.lo);
  while (true) {
    visit(index);
    int dim = box.rank() - 1;
    for (; dim >= 0 && ++index[dim] == box[dim].hi; --dim)
      index[dim] = box[dim].lo;
    if (dim < 0)
      return;
  }
}

void dovetail::forEachIndex(ArrayRef<int64_t> shape, function_ref<void(ArrayRef<int64_t>)> visit) {
  forEachIndex(Box::ofShape({shape.data(), shape.size()}), visit);
}

void dovetail::expectNear(const TestTensor &actual, const TestTensor &expected, double tolerance) {
  ASSERT_EQ(actual.shape, expected.shape);
  double largest = 1e-30;
  for (double value : expected.values)
    if (std::isfinite(value))
      largest = std::max(largest, std::abs(value));
  for (auto [i, value] : llvm::enumerate(expected.values)) {
    if (std::isnan(value) || value == actual.values[i])
      continue;
    ASSERT_NEAR(actual.values[i], value, tolerance * largest) << "element number " << i;
  }
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

ElementTester::ElementTester() {
  context.loadDialect<DovetailDialect>();
  context.allowUnregisteredDialects();
}

std::string ElementTester::type(ArrayRef<int64_t> shape, StringRef elementType) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + elementType.str() + ">";
}

Operation *ElementTester::parse(StringRef text, ArrayRef<std::string> operandTypes, const std::string &givenType) {
  errors.clear();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    return success();
  });
  // The result's type is not written down: it is inferred from an operation built with a placeholder's properties.
  std::string source;
  for (auto [i, type] : llvm::enumerate(operandTypes))
    source += "%" + std::to_string(i) + " = \"test.operand\"() : () -> " + type + "\n";
  auto [name, rest] = text.split(' ');
  std::string operation = "\"" + name.str() + "\"(";
  for (size_t i = 0; i < operandTypes.size(); ++i)
    operation += (i ? ", %" : "%") + std::to_string(i);
  operation += ") " + rest.str() + " : (";
  for (size_t i = 0; i < operandTypes.size(); ++i)
    operation += (i ? ", " : "") + operandTypes[i];
  auto parseWith = [&](const std::string &resultTypes, size_t numResults = 1) {
    ParserConfig config(&context, /*verifyAfterParse=*/false);
    std::string results = "%result:" + std::to_string(numResults) + " = ";
    return parseSourceString<ModuleOp>(source + results + operation + ") -> (" + resultTypes + ")", config);
  };
  std::string resultTypes = givenType;
  size_t numResults = 1;
  if (resultTypes.empty()) {
    OwningOpRef<ModuleOp> draft = parseWith("tensor<f32>");
    if (!draft)
      return nullptr;
    Operation &drafted = draft->getBody()->back();
    auto inferrable = dyn_cast<InferTypeOpInterface>(drafted);
    SmallVector<Type> types;
    if (!inferrable || failed(inferrable.inferReturnTypes(&context, drafted.getLoc(), drafted.getOperands(),
                                                          drafted.getAttrDictionary(), drafted.getPropertiesStorage(),
                                                          drafted.getRegions(), types)))
      return nullptr;
    llvm::raw_string_ostream stream(resultTypes);
    llvm::interleaveComma(types, stream);
    numResults = types.size();
  }
  OwningOpRef<ModuleOp> module = parseWith(resultTypes, numResults);
  if (!module || failed(verify(*module)))
    return nullptr;
  modules.push_back(std::move(module));
  return &modules.back()->getBody()->back();
}

Box dovetail::getLoopBox(Operation *op) {
  std::vector<Interval> loops;
  for (const Loop &loop : cast<DefinitionOpInterface>(op).getRelation().loops)
    loops.push_back({0, loop.extent});
  return Box(loops);
}

std::vector<Box> dovetail::getNeeds(Operation *op, const Box &loops) {
  OpRelation relation = cast<DefinitionOpInterface>(op).getRelation();
  std::vector<Box> needs;
  for (auto [dims, operand] : llvm::zip_equal(relation.operands, op->getOperands())) {
    std::vector<Interval> box;
    for (auto [dim, extent] : llvm::zip_equal(dims, cast<RankedTensorType>(operand.getType()).getShape())) {
      Interval loop = dim.loop < 0 ? Interval{0, 1} : loops[dim.loop];
      box.push_back(dim.map.needClipped(loop, extent));
    }
    needs.push_back(Box(box));
  }
  return needs;
}

namespace {
/// Gives constants, and expects coordinates inside of what is needed.
class WatchedSource : public ElementSource {
public:
  WatchedSource(ElementBuilder &builder, Operation *op, ArrayRef<TestTensor> operands, const Box &loops)
      : builder(builder), op(op), operands(operands), loops(loops), needs(getNeeds(op, loops)) {
    for (Value operand : op->getOperands())
      reads.push_back(Box(std::vector<Interval>(cast<RankedTensorType>(operand.getType()).getRank())));
  }

  Value read(unsigned operand, ArrayRef<Value> index) override {
    SmallVector<int64_t> coordinates;
    for (Value coordinate : index) {
      std::optional<int64_t> constant = ElementBuilder::getConstantIndex(coordinate);
      EXPECT_TRUE(constant.has_value()) << "a coordinate did not fold";
      coordinates.push_back(constant.value_or(-1));
    }
    bool isNeeded = needs[operand].contains(std::span<const int64_t>(coordinates.data(), coordinates.size()));
    if (!isNeeded) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      llvm::interleaveComma(coordinates, stream);
      ADD_FAILURE() << "operand " << operand << " is read at (" << text << "), but needs " << needs[operand].str()
                    << " for loops " << loops.str();
      return builder.zero(getElementTypeOrSelf(op->getOperand(operand).getType()));
    }
    std::vector<Interval> element;
    for (int64_t coordinate : coordinates)
      element.push_back({coordinate, coordinate + 1});
    reads[operand] = reads[operand].hull(Box(element));
    Type type = ElementBuilder::scalarType(getElementTypeOrSelf(op->getOperand(operand).getType()));
    return builder.constant(type, operands[operand].at(coordinates));
  }

  std::pair<Value, Value> getLoopRange(unsigned loop) override {
    return {builder.index(loops[loop].lo), builder.index(loops[loop].hi)};
  }

  const std::vector<Box> &getReads() const { return reads; }

private:
  ElementBuilder &builder;
  Operation *op;
  ArrayRef<TestTensor> operands;
  const Box &loops;
  std::vector<Box> needs;
  std::vector<Box> reads;
};
} // namespace

static double toDouble(Value scalar, bool isUnsigned) {
  FloatAttr number;
  if (matchPattern(scalar, m_Constant(&number))) {
    APFloat value = number.getValue();
    bool losesInfo;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return value.convertToDouble();
  }
  APInt integer;
  if (matchPattern(scalar, m_ConstantInt(&integer)))
    return isUnsigned ? static_cast<double>(integer.getZExtValue()) : static_cast<double>(integer.getSExtValue());
  ADD_FAILURE() << "an element did not fold to a constant";
  return std::nan("");
}

TestTensor ElementTester::compute(Operation *op, ArrayRef<TestTensor> operands, const Box &loops, unsigned number) {
  auto type = cast<RankedTensorType>(op->getResult(number).getType());
  Block scratch;
  OpBuilder ops(&context);
  ElementBuilder builder(ops, op->getLoc(), /*unrollLoops=*/true);
  WatchedSource source(builder, op, operands, loops);
  TestTensor result(type.getShape(), std::nan(""));
  Box resultBox(std::vector<Interval>(loops.begin(), loops.begin() + type.getRank()));
  forEachIndex(resultBox, [&](ArrayRef<int64_t> index) {
    scratch.clear();
    ops.setInsertionPointToStart(&scratch);
    SmallVector<Value> coordinates;
    for (int64_t coordinate : index)
      coordinates.push_back(builder.index(coordinate));
    result.at(index) = toDouble(cast<DefinitionOpInterface>(op).emitElement(builder, coordinates, source)[number],
                                isUnsignedElement(type.getElementType()));
  });
  reads = source.getReads();
  return result;
}

TestTensor ElementTester::compute(Operation *op, ArrayRef<TestTensor> operands, unsigned number) {
  return compute(op, operands, getLoopBox(op), number);
}

TestTensor ElementTester::computeAfter(std::unique_ptr<Pass> pass, Operation *op, ArrayRef<TestTensor> operands) {
  DenseMap<Value, TestTensor> tensors;
  for (auto [value, tensor] : llvm::zip_equal(op->getOperands(), operands))
    tensors.try_emplace(value, tensor);
  Operation *before = op->getPrevNode(), *module = op->getParentOp();
  Type type = op->getResult(0).getType();
  PassManager passes(&context);
  passes.addPass(std::move(pass));
  EXPECT_TRUE(succeeded(passes.run(module)));
  Value last;
  for (Operation *step = before->getNextNode(); step; step = step->getNextNode()) {
    last = step->getResult(0);
    if (auto constant = dyn_cast<ConstantOp>(step)) {
      TestTensor tensor(cast<RankedTensorType>(constant.getType()).getShape());
      for (auto [value, element] : llvm::zip(tensor.values, constant.getValue().getValues<APFloat>()))
        value = element.convertToDouble();
      tensors.try_emplace(constant.getResult(), tensor);
      continue;
    }
    SmallVector<TestTensor> inputs;
    for (Value operand : step->getOperands())
      inputs.push_back(tensors.at(operand));
    for (OpResult result : step->getResults())
      tensors.try_emplace(result, compute(step, inputs, result.getResultNumber()));
  }
  EXPECT_EQ(last.getType(), type);
  return tensors.at(last);
}
