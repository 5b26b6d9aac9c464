//===- ShareKernels.cpp - Removes duplicate kernels -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the pass plan-share-kernels.
//
//===----------------------------------------------------------------------===//

#include "dovetail/CodeGen/Passes.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/OperationSupport.h"

namespace dovetail {
#define GEN_PASS_DEF_SHAREKERNELS
#include "dovetail/CodeGen/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// A hash that is the same for equal kernels: of the body's operations and types, but not of how they are connected.
static llvm::hash_code hashKernel(plan::KernelOp kernel) {
  llvm::hash_code hash = llvm::hash_combine(kernel.getLayouts(), kernel.getResultLayouts());
  for (Operation &op : kernel.getBlock()->getOperations())
    hash = llvm::hash_combine(hash, OperationEquivalence::computeHash(&op, OperationEquivalence::ignoreHashValue,
                                                                      OperationEquivalence::ignoreHashValue,
                                                                      OperationEquivalence::IgnoreLocations));
  return hash;
}

/// True if two kernels differ in their names and locations only.
static bool areEqual(plan::KernelOp a, plan::KernelOp b) {
  return a.getLayoutsAttr() == b.getLayoutsAttr() && a.getResultLayoutsAttr() == b.getResultLayoutsAttr() &&
         a.getStaticLoops() == b.getStaticLoops() && a.getParallelLoop() == b.getParallelLoop() &&
         a.getBlocks() == b.getBlocks() && a.getInPlace() == b.getInPlace() && a.getCounts() == b.getCounts() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

namespace {
struct ShareKernels : dovetail::impl::ShareKernelsBase<ShareKernels> {
  void runOnOperation() override {
    DenseMap<size_t, SmallVector<plan::KernelOp>> kept;
    DenseMap<StringAttr, FlatSymbolRefAttr> replacements;
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<plan::KernelOp>())) {
      SmallVector<plan::KernelOp> &candidates = kept[hashKernel(kernel)];
      auto same = llvm::find_if(candidates, [&](plan::KernelOp other) { return areEqual(kernel, other); });
      if (same == candidates.end()) {
        candidates.push_back(kernel);
        continue;
      }
      replacements[kernel.getSymNameAttr()] = FlatSymbolRefAttr::get(same->getSymNameAttr());
      kernel.erase();
    }
    getOperation().walk([&](plan::LaunchOp launch) {
      if (auto replacement = replacements.lookup(launch.getKernelAttr().getAttr()))
        launch.setKernelAttr(replacement);
    });
  }
};
} // namespace
