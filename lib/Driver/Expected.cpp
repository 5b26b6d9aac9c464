//===- Expected.cpp - What the search expects ----------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Asks the search, on copies of a compilation.
//
//===----------------------------------------------------------------------===//

#include "Expected.h"

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Sharding/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace dovetail;

Expected dovetail::getExpected(mlir::ModuleOp module) {
  Expected expected;
  for (auto function : getGraphs(module)) {
    auto said = function->getAttrOfType<mlir::DictionaryAttr>(kExpectationAttrName);
    if (!said)
      continue;
    expected.seconds += said.getAs<mlir::FloatAttr>("seconds").getValueAsDouble();
    expected.bytes += static_cast<double>(said.getAs<mlir::IntegerAttr>("bytes").getInt());
    expected.memory += static_cast<double>(said.getAs<mlir::IntegerAttr>("memory").getInt());
    expected.weights += static_cast<double>(said.getAs<mlir::IntegerAttr>("weights").getInt());
  }
  return expected;
}

CompileOptions dovetail::makeAside(CompileOptions options) {
  options.explain = options.advises = false;
  options.autotuneThreads = 0;
  return options;
}

CompileOptions dovetail::makeAlone(CompileOptions options) {
  options.mesh = CompileOptions().mesh;
  options.autoRanks.reset();
  options.shards.clear();
  options.sizes.clear();
  options.memory.clear();
  options.mostShares.clear();
  options.slowness.clear();
  return makeAside(std::move(options));
}

std::optional<Expected> dovetail::tryOptions(Compilation &compilation, CompileOptions options) {
  Diagnostics quiet(llvm::nulls());
  options = makeAside(std::move(options));
  options.autoRanks.reset();
  options.memory.clear();
  options.comparesMemory = options.comparesShares = options.comparesDepartures = false;
  Compilation copy = compilation.fork(std::move(options), quiet);
  if (failed(copy.runTo(Phase::Propagate)))
    return std::nullopt;
  return getExpected(copy.getModule());
}

std::optional<PredictedRun> dovetail::tryProgram(Compilation &copy, const Cluster &cluster, bool estimatesMemory) {
  Diagnostics quiet(llvm::nulls());
  if (failed(copy.runTo(Phase::Lower)))
    return std::nullopt;
  llvm::FailureOr<PredictedRun> run = predictRun(copy, cluster, /*threads=*/1, quiet, estimatesMemory);
  return succeeded(run) ? std::optional(std::move(*run)) : std::nullopt;
}
