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

#include "ReferenceFiles.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/ControlOps.h"
#include "dovetail/Driver/Compilation.h"
#include "dovetail/Driver/Execution.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/Driver/Requests.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dovetail;

/// A name for the result of `op`: the tensor's, or the node's with the operation's name.
static std::string getValueName(Operation *op) {
  if (StringRef name = getTensorName(op->getLoc()); !name.empty())
    return name.str();
  StringRef node = getNodeName(op->getLoc());
  return (node.empty() ? "" : node.str() + "/") + op->getName().stripDialect().str();
}

/// The operations that are part of repeated loops: their values are others in each iteration.
static DenseSet<Operation *> findRepeated(Block &block) {
  DenseMap<Operation *, llvm::SmallSet<uint64_t, 4>> loopsOf;
  DenseSet<Operation *> repeated;
  for (Operation &op : block) {
    llvm::SmallSet<uint64_t, 4> loops;
    for (Value operand : op.getOperands())
      if (auto entry = loopsOf.find(operand.getDefiningOp()); entry != loopsOf.end())
        loops.insert(entry->second.begin(), entry->second.end());
    if (auto carry = dyn_cast<IterArgOp>(op))
      loops.insert(carry.getLoop());
    else if (auto leave = dyn_cast<LoopResultOp>(op))
      loops.erase(leave.getLoop());
    if (loops.empty())
      continue;
    repeated.insert(&op);
    loopsOf[&op] = std::move(loops);
  }
  return repeated;
}

/// Makes the result of every operation that is not repeated an output, in order. Returns the source names of the nodes
/// that compute these, by the names of outputs.
static llvm::StringMap<std::string> returnAllValues(func::FuncOp main) {
  Block &block = main.getBody().front();
  DenseSet<Operation *> repeated = findRepeated(block);
  Operation *terminator = block.getTerminator();
  llvm::StringMap<std::string> sources;
  llvm::StringSet<> names;
  for (const std::string &name : getOutputNames(main))
    names.insert(name);
  SmallVector<Value> results(terminator->getOperands());
  SmallVector<Attribute> attributes;
  if (ArrayAttr all = main.getAllResultAttrs())
    attributes.append(all.begin(), all.end());
  Builder builder(main.getContext());
  for (Operation &op : block) {
    if (isa<ConstantOp>(op) || repeated.contains(&op))
      continue;
    for (Value result : op.getResults()) {
      if (llvm::is_contained(terminator->getOperands(), result))
        continue;
      std::string base = getValueName(&op), name = base;
      for (int number = 2; !names.insert(name).second; ++number)
        name = base + "#" + std::to_string(number);
      sources[name] = getSourceName(op.getLoc());
      results.push_back(result);
      attributes.push_back(
          builder.getDictionaryAttr(builder.getNamedAttr("dovetail.name", builder.getStringAttr(name))));
    }
  }
  terminator->setOperands(results);
  main.setFunctionType(builder.getFunctionType(main.getArgumentTypes(), TypeRange(ValueRange(results))));
  main.setAllResultAttrs(ArrayAttr::get(main.getContext(), attributes));
  return sources;
}

/// Runs `program` on the inputs of `options` and compares its outputs with files.
static FailureOr<std::vector<Comparison>> compareWithFiles(const std::shared_ptr<const runtime::Program> &program,
                                                           const Twine &what, const VerifyOptions &options,
                                                           Diagnostics &diagnostics) {
  auto inputs = tools::readInputs(program->getPlan(), options.inputs, /*randomDefault=*/true, options.seed);
  if (!inputs.ok())
    return diagnostics.error(getExitCode(inputs.status()), std::string(inputs.status().message()));
  Progress::show("run " + what);
  auto outputs = execute(program, *inputs, options.threads, what, diagnostics);
  if (failed(outputs))
    return failure();
  Progress::clear();
  auto references = readReferences(options.expected, *outputs, diagnostics);
  if (failed(references))
    return failure();
  std::vector<Comparison> comparisons;
  for (auto [output, reference] : llvm::zip_equal(*outputs, *references)) {
    if (reference.name.empty())
      continue;
    Difference difference = compare(output, reference);
    comparisons.push_back({std::move(reference), std::move(difference)});
  }
  return comparisons;
}

FailureOr<std::vector<Comparison>> dovetail::verifyArtifact(StringRef path, const VerifyOptions &options,
                                                            Diagnostics &diagnostics) {
  auto program = runtime::Program::load(path.str());
  if (!program.ok())
    return diagnostics.error(getExitCode(program.status()), std::string(program.status().message()));
  return compareWithFiles(*program, "'" + path + "'", options, diagnostics);
}

FailureOr<std::vector<Comparison>> dovetail::verify(const ModelSource &model, const VerifyOptions &options,
                                                    Diagnostics &diagnostics) {
  std::unique_ptr<MLIRContext> context = createContext();
  Compilation partitioned(*context, options.compile, diagnostics);
  {
    Progress::show("read the model");
    Progress::Parts parts;
    if (failed(partitioned.import(model)) || failed(partitioned.runTo(Phase::Legalize)))
      return failure();
  }
  func::FuncOp main = getMain(partitioned.getModule());
  size_t numOutputs = getOutputNames(main).size();
  llvm::StringMap<std::string> sources;
  if (options.perOp)
    sources = returnAllValues(main);
  CompileOptions wholeOptions = options.compile;
  wholeOptions.mesh = CompileOptions().mesh;
  wholeOptions.shards.clear();
  wholeOptions.sizes.clear();
  // What ranks have is for parts.
  wholeOptions.memory.clear();
  auto build = [&](Compilation &compilation, const Twine &what) -> FailureOr<std::shared_ptr<const runtime::Program>> {
    Progress::Parts parts;
    FailureOr<std::vector<std::byte>> artifact = compilation.serialize();
    if (failed(artifact))
      return failure();
    return load(*artifact, what, diagnostics);
  };
  constexpr llvm::StringLiteral partitionedName = "the partitioned program", wholeName = "the unpartitioned program";
  std::optional<Compilation> whole;
  if (options.expected.empty())
    whole.emplace(partitioned.fork(std::move(wholeOptions)));
  Progress::show("compile " + partitionedName, 1, 4);
  auto partitionedProgram = build(partitioned, partitionedName);
  if (failed(partitionedProgram))
    return failure();
  if (!whole)
    return compareWithFiles(*partitionedProgram, partitionedName, options, diagnostics);
  auto inputs =
      tools::readInputs((*partitionedProgram)->getPlan(), options.inputs, /*randomDefault=*/true, options.seed);
  if (!inputs.ok())
    return diagnostics.error(getExitCode(inputs.status()), std::string(inputs.status().message()));
  Progress::show("run " + partitionedName, 2, 4);
  auto actual = execute(*partitionedProgram, *inputs, options.threads, partitionedName, diagnostics);
  if (failed(actual))
    return failure();
  Progress::show("compile " + wholeName, 3, 4);
  auto wholeProgram = build(*whole, wholeName);
  if (failed(wholeProgram))
    return failure();
  Progress::show("run " + wholeName, 4, 4);
  auto expected = execute(*wholeProgram, *inputs, options.threads, wholeName, diagnostics);
  if (failed(expected))
    return failure();
  Progress::show("compare");

  std::vector<Comparison> comparisons;
  for (auto [a, e] : llvm::zip_equal(*actual, *expected)) {
    if (a.name != e.name || a.type != e.type || a.shape != e.shape)
      return diagnostics.error(
          ExitCode::Internal,
          "output '" + e.name + "' has another type or shape in the other program; this is a defect of the compiler");
    Difference difference = compare(a, e);
    std::string source = sources.lookup(e.name);
    comparisons.push_back({std::move(e), std::move(difference), std::move(source)});
  }
  // Outputs of the model come first, but are computed last.
  Progress::clear();
  std::rotate(comparisons.begin(), comparisons.begin() + numOutputs, comparisons.end());
  return comparisons;
}
