//===- Verify.cpp - The partitioned program against the whole one -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements verify.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Verify.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Driver/Compilation.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/Driver/Requests.h"
#include "dovetail/Import/TensorName.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dovetail;
using runtime::ElementType;

/// A name for the result of `op`: the tensor's, or the node's with the operation's name.
static std::string getValueName(Operation *op) {
  if (StringRef name = getTensorName(op->getLoc()); !name.empty())
    return name.str();
  std::string name;
  op->getLoc()->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str() + "/";
    return WalkResult::interrupt();
  });
  return name + op->getName().stripDialect().str();
}

/// Makes the result of every operation an output, in order.
static void returnAllValues(func::FuncOp main) {
  Block &block = main.getBody().front();
  Operation *terminator = block.getTerminator();
  llvm::StringSet<> names;
  for (const std::string &name : getOutputNames(main))
    names.insert(name);
  SmallVector<Value> results(terminator->getOperands());
  SmallVector<Attribute> attributes;
  if (ArrayAttr all = main.getAllResultAttrs())
    attributes.append(all.begin(), all.end());
  Builder builder(main.getContext());
  for (Operation &op : block) {
    if (op.getNumResults() != 1 || isa<ConstantOp>(op) ||
        llvm::is_contained(terminator->getOperands(), op.getResult(0)))
      continue;
    std::string base = getValueName(&op), name = base;
    for (int number = 2; !names.insert(name).second; ++number)
      name = base + "#" + std::to_string(number);
    results.push_back(op.getResult(0));
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr("dovetail.name", builder.getStringAttr(name))));
  }
  terminator->setOperands(results);
  main.setFunctionType(builder.getFunctionType(main.getArgumentTypes(), TypeRange(ValueRange(results))));
  main.setAllResultAttrs(ArrayAttr::get(main.getContext(), attributes));
}

static ElementType getElementType(Type type) {
  if (type.isF64())
    return ElementType::F64;
  if (type.isF16())
    return ElementType::F16;
  if (type.isBF16())
    return ElementType::BF16;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return ElementType::F32;
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return ElementType::Bool;
  case 8:
    return isUnsigned ? ElementType::U8 : ElementType::I8;
  case 16:
    return isUnsigned ? ElementType::U16 : ElementType::I16;
  case 32:
    return isUnsigned ? ElementType::U32 : ElementType::I32;
  default:
    return isUnsigned ? ElementType::U64 : ElementType::I64;
  }
}

static std::vector<TensorData> makeInputs(func::FuncOp main) {
  std::vector<TensorData> inputs;
  for (auto [name, type] : llvm::zip_equal(getInputNames(main), main.getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    TensorData &input = inputs.emplace_back();
    input.name = name;
    input.type = getElementType(tensor.getElementType());
    input.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
    input.allocate();
  }
  return inputs;
}

FailureOr<std::vector<Comparison>> dovetail::verify(StringRef path, const VerifyOptions &options,
                                                    Diagnostics &diagnostics) {
  std::unique_ptr<MLIRContext> context = createContext();
  Compilation partitioned(*context, options.compile, diagnostics);
  if (failed(partitioned.import(path)) || failed(partitioned.runTo(Phase::Simplify)))
    return failure();
  func::FuncOp main = getMain(partitioned.getModule());
  std::vector<TensorData> inputs = makeInputs(main);
  if (failed(options.fillInputs(inputs)))
    return failure();
  size_t numOutputs = main.getNumResults();
  if (options.perOp)
    returnAllValues(main);
  CompileOptions wholeOptions = options.compile;
  wholeOptions.mesh = CompileOptions().mesh;
  wholeOptions.shards.clear();
  wholeOptions.sizes.clear();
  Compilation whole = partitioned.fork(std::move(wholeOptions));

  auto run = [&](Compilation &compilation, const Twine &what) -> FailureOr<std::vector<TensorData>> {
    FailureOr<std::vector<std::byte>> artifact = compilation.serialize();
    if (failed(artifact))
      return failure();
    Progress::show("run " + what);
    return execute(*artifact, inputs, options.threads, what, diagnostics);
  };
  FailureOr<std::vector<TensorData>> actual = run(partitioned, "the partitioned program");
  if (failed(actual))
    return failure();
  FailureOr<std::vector<TensorData>> expected = run(whole, "the unpartitioned program");
  if (failed(expected))
    return failure();
  Progress::clear();

  std::vector<Comparison> comparisons;
  for (auto [a, e] : llvm::zip_equal(*actual, *expected)) {
    if (a.name != e.name || a.type != e.type || a.shape != e.shape)
      return diagnostics.error(ExitCode::Internal, "the two programs disagree on what output '" + e.name + "' is");
    Difference difference = compare(a, e);
    comparisons.push_back({std::move(e), std::move(difference)});
  }
  // Outputs of the model come first, but are computed last.
  std::rotate(comparisons.begin(), comparisons.begin() + numOutputs, comparisons.end());
  return comparisons;
}
