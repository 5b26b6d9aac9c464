//===- DecomposeComposites.cpp - Replace composite operations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces composite operations by the simpler ones that kernels are made of.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/IR/Decompose.h"
#include "dovetail/Sharding/ShardingUtils.h"

namespace dovetail {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITES
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

struct DecomposeComposites : dovetail::impl::DecomposeCompositesBase<DecomposeComposites> {
  void runOnOperation() override {
    for (Operation &op : llvm::make_early_inc_range(getOperation().getBody().front()))
      if (isa<PartitionableOpInterface>(op) && failed(decompose(op)))
        return signalPassFailure();
  }

  LogicalResult decompose(Operation &op);
};

} // namespace

LogicalResult DecomposeComposites::decompose(Operation &op) {
  OpBuilder builder(&op);
  Operation *before = op.getPrevNode();
  FailureOr<Value> replacement = decomposeUnsplit(&op, builder);
  if (failed(replacement))
    return success();
  Value result = op.getResult(0);
  // After partition the parts take the shardings of the whole: none of the dimensions that it reduces is split.
  if (ShardingAttr sharding = getSharding(result)) {
    Operation *part = before ? before->getNextNode() : &op.getBlock()->front();
    for (; part != &op; part = part->getNextNode())
      if (auto partitionable = dyn_cast<PartitionableOpInterface>(part))
        followOperands(partitionable, sharding.getMesh());
    if (replacement->getType() != result.getType())
      return op.emitError("changes its sharding from ")
             << result.getType() << " to " << replacement->getType() << " when it is decomposed";
  }
  result.replaceAllUsesWith(*replacement);
  op.erase();
  return success();
}
