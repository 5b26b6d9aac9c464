//===- GenericTest.cpp - Operations and their definitions as data ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares each operation of the lit tests with the dovetail.generic that carries its definition. Both state the same,
// emit the same code, and evaluate to the same constants.
//
//===----------------------------------------------------------------------===//

#include "../Layout/Random.h"
#include "LitOperations.h"

#include "dovetail/Dialect/Dovetail/Evaluation/Evaluate.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/Ops/GenericOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/DebugStringHelper.h"
#include "mlir/Transforms/Passes.h"
#include "gmock/gmock.h"

#include <map>
#include <set>

using namespace mlir;
using namespace dovetail;

namespace {

/// Names of operations, each with so many cases.
using Counts = std::map<std::string, int>;

std::string print(const Counts &counts) {
  std::string text;
  for (const auto &[name, count] : counts)
    text += (text.empty() ? "" : " ") + name;
  return text;
}

std::string getName(Operation *op) { return op->getName().getStringRef().str(); }

/// Calls `compare` with each operation that can be a generic, and with that.
void forEachGeneric(llvm::function_ref<void(DefinitionOpInterface op, GenericOp generic)> compare) {
  forEachOperation([&](DefinitionOpInterface op) {
    if (isa<GenericOp>(op))
      return;
    OpBuilder builder(op);
    GenericOp generic = generalize(builder, op);
    if (!generic)
      return;
    compare(op, generic);
    generic.erase();
  });
}

/// Writes down what code asks for, as operations that are not registered.
class Recorder : public ElementSource, public ElementSink {
public:
  /// `ends`: where the range of each loop begins, and where it ends.
  Recorder(OpBuilder &builder, Operation *op, ValueRange ends) : builder(builder), op(op), ends(ends) {}

  Value read(unsigned operand, ArrayRef<Value> index) override {
    return ask("test.read", operand, index, getScalar(op->getOperand(operand).getType()));
  }
  std::pair<Value, Value> getLoopRange(unsigned loop) override { return {ends[2 * loop], ends[2 * loop + 1]}; }
  void checkIndex(unsigned loop, Value isWrong, Value given) override { ask("test.check", loop, {isWrong, given}, {}); }
  void write(unsigned result, ArrayRef<Value> index, Value element) override {
    SmallVector<Value> operands(index);
    operands.push_back(element);
    ask("test.write", result, operands, {});
  }
  Value readBack(unsigned result, ArrayRef<Value> index) override {
    return ask("test.read_back", result, index, getScalar(op->getResult(result).getType()));
  }

private:
  static Type getScalar(Type type) { return ElementBuilder::scalarType(getElementTypeOrSelf(type)); }
  Value ask(StringRef what, unsigned number, ArrayRef<Value> operands, Type type) {
    OperationState state(op->getLoc(), what);
    state.addOperands(operands);
    state.addAttribute("number", builder.getI64IntegerAttr(number));
    if (type)
      state.addTypes(type);
    Operation *asked = builder.create(state);
    return type ? asked->getResult(0) : Value();
  }

  OpBuilder &builder;
  Operation *op;
  SmallVector<Value> ends;
};

/// `code` with the values of constants in place of their names: their order says nothing.
std::string inlineConstants(StringRef code) {
  std::map<std::string, std::string> constants;
  std::string text;
  llvm::raw_string_ostream os(text);
  while (!code.empty()) {
    auto [line, rest] = code.split('\n');
    code = rest;
    auto [name, value] = line.trim().split(" = arith.constant ");
    if (!value.empty()) {
      constants[name.str()] = value.str();
      continue;
    }
    while (!line.empty()) {
      size_t begin = line.find('%'), end = line.find_first_not_of("_abcdefghijklmnopqrstuvwxyz0123456789", begin + 1);
      os << line.take_front(begin);
      if (begin == StringRef::npos)
        break;
      StringRef used = line.slice(begin, end);
      auto found = constants.find(used.str());
      os << (found == constants.end() ? used : StringRef(found->second));
      line = line.drop_front(std::min(end, line.size()));
    }
    os << "\n";
  }
  return text;
}

/// The simplified code of an element of `op`, or of a line.
std::string emitCode(DefinitionOpInterface op) {
  MLIRContext *context = op.getContext();
  context->allowUnregisteredDialects();
  Location loc = op.getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  Definition definition = op.getDefinition();
  OpBuilder builder(module->getBodyRegion());
  SmallVector<Type> types(definition.resultRank + 2 * definition.loops.size(), builder.getIndexType());
  auto function = func::FuncOp::create(builder, loc, "code", builder.getFunctionType(types, {}));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);
  ElementBuilder elements(builder, loc);
  Recorder recorder(builder, op, block->getArguments().drop_front(definition.resultRank));
  SmallVector<Value> index(block->getArguments().take_front(definition.resultRank));
  if (definition.lines.empty()) {
    for (auto [number, element] : llvm::enumerate(emitElement(op, definition, elements, index, recorder)))
      recorder.write(number, index, element);
  } else {
    index.resize(definition.loops.size());
    for (unsigned loop : definition.lines)
      index[loop] = {};
    LineBuilder line(elements, op, definition, index, recorder, recorder);
    op.emitLine(line);
  }
  func::ReturnOp::create(builder, loc);
  PassManager passes(context);
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  if (failed(passes.run(*module)))
    return "code that is wrong";
  return inlineConstants(debugString(*module->getOperation()));
}

/// Small numbers, so that positions are in range now and then.
Attribute getRandomConstant(layout::Random &random, RankedTensorType type) {
  Type element = type.getElementType();
  SmallVector<Attribute> values;
  for (int64_t i = 0, count = type.getNumElements(); i < count; ++i) {
    int64_t value = random.between(0, 3);
    if (isa<FloatType>(element))
      values.push_back(FloatAttr::get(element, static_cast<double>(value) / 2));
    else
      values.push_back(IntegerAttr::get(element, element.isInteger(1) ? value % 2 : value));
  }
  return DenseElementsAttr::get(cast<ShapedType>(type), values);
}

} // namespace

TEST(Generic, StatesTheSame) {
  Counts generalized, isCheap, prefersFormat;
  forEachGeneric([&](DefinitionOpInterface op, GenericOp generic) {
    SCOPED_TRACE(debugString(*op.getOperation()));
    std::string name = getName(op);
    ++generalized[name];
    EXPECT_TRUE(succeeded(verify(generic))) << debugString(*generic.getOperation());
    EXPECT_TRUE(generic.getDefinition() == op.getDefinition())
        << debugString(DefinitionAttr::get(op.getContext(), op.getDefinition()));
    auto split = dyn_cast<SplitOpInterface>(op.getOperation());
    if (generic.isCheapElement() != op.isCheapElement())
      ++isCheap[name];
    if (split && split.getFormatPreference() != generic.getFormatPreference())
      ++prefersFormat[name];
  });
  EXPECT_GT(generalized.size(), 60u);
  std::printf("%zu generalized: %s\n", generalized.size(), print(generalized).c_str());
  // Generics derive both from accesses and code. Samples at the nearest position are cheap, whatever their operation
  // says of all kinds. Formats decide how fast a kernel is, and in which order some products are summed.
  EXPECT_EQ(print(isCheap), "dovetail.grid_sample dovetail.resize");
  EXPECT_EQ(print(prefersFormat), "dovetail.deform_sample dovetail.frames dovetail.grid_sample "
                                  "dovetail.max_pool_indices dovetail.reshape dovetail.resize dovetail.unpack");
}

/// Convolutions, products, pools and movements come back as what they were, or as another operation that does the same.
TEST(Generic, IsSpecialized) {
  const std::set<std::string> families = {"conv",  "conv_transpose", "matmul",  "pool", "transpose",
                                          "slice", "broadcast",      "reshape", "pad",  "concat"};
  Counts found, missing;
  forEachGeneric([&](DefinitionOpInterface op, GenericOp generic) {
    OpBuilder builder(generic);
    Operation *special = specialize(builder, generic);
    bool isOfFamily = families.contains(op->getName().stripDialect().str());
    if (!special) {
      if (isOfFamily)
        ++missing[getName(op)];
      return;
    }
    ++found[getName(op)];
    EXPECT_TRUE(succeeded(verify(special)));
    EXPECT_TRUE(cast<DefinitionOpInterface>(special).getDefinition() == op.getDefinition());
    EXPECT_EQ(special->getResultTypes(), op->getResultTypes());
    if (std::string name = getName(op); name == "dovetail.conv" || name == "dovetail.matmul")
      EXPECT_EQ(getName(special), name);
    special->erase();
  });
  EXPECT_GE(found.size(), families.size());
  // Norms, and averages of windows that rounding up has added.
  EXPECT_EQ(print(missing), "dovetail.pool");
}

TEST(Generic, LeavesLinePrograms) {
  Counts left;
  forEachOperation([&](DefinitionOpInterface op) {
    OpBuilder builder(op);
    if (GenericOp generic = generalize(builder, op))
      generic.erase();
    else if (!isa<GenericOp>(op))
      ++left[getName(op)];
  });
  // Sorting, transforms, recurrences and elimination are no loop nests; control flow is more than it computes.
  EXPECT_EQ(print(left), "dovetail.attention dovetail.compact dovetail.dft dovetail.eliminate dovetail.gru dovetail.if "
                         "dovetail.iter_arg dovetail.loop_result dovetail.lstm dovetail.rnn dovetail.select_boxes "
                         "dovetail.sort_rows dovetail.top_k dovetail.yield");
}

TEST(Generic, EmitsTheSameCode) {
  Counts compared, differs;
  forEachGeneric([&](DefinitionOpInterface op, GenericOp generic) {
    std::string name = getName(op), code = emitCode(op), other = emitCode(generic);
    ++compared[name];
    if (code != other && ++differs[name] == 1)
      std::printf("%s\n%s\n%s\n", debugString(*op.getOperation()).c_str(), code.c_str(), other.c_str());
  });
  EXPECT_GT(compared.size(), 60u);
  EXPECT_EQ(print(differs), "");
}

TEST(Generic, EvaluatesToTheSameConstants) {
  layout::Random random(1);
  Counts compared;
  constexpr int64_t mostElements = 512;
  forEachGeneric([&](DefinitionOpInterface op, GenericOp generic) {
    SmallVector<Attribute> operands;
    for (Type type : op->getOperandTypes()) {
      auto tensor = cast<RankedTensorType>(type);
      if (tensor.getNumElements() > 8 * mostElements || isNarrow(tensor.getElementType()))
        return;
      operands.push_back(getRandomConstant(random, tensor));
    }
    FailureOr<SmallVector<DenseElementsAttr>> values = evaluate(op, operands, mostElements),
                                              others = evaluate(generic, operands, mostElements);
    SCOPED_TRACE(debugString(*op.getOperation()));
    ASSERT_EQ(succeeded(values), succeeded(others));
    if (failed(values))
      return;
    ++compared[getName(op)];
    EXPECT_EQ(*values, *others);
  });
  EXPECT_GT(compared.size(), 50u) << print(compared);
}
