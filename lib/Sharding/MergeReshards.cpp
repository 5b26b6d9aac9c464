//===- MergeReshards.cpp - Share reshards -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces reshards whose result another reshard of the same value covers.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/IR/MeshPass.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Sharding/Passes.h"
#include "mlir/IR/Dominance.h"

namespace dovetail {
#define GEN_PASS_DEF_MERGERESHARDS
#include "dovetail/Sharding/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

struct MergeReshards : MeshPass<dovetail::impl::MergeReshardsBase<MergeReshards>> {
  LogicalResult run(MeshOp) override {
    llvm::MapVector<Value, SmallVector<ReshardOp>> groups;
    getOperation().walk([&](ReshardOp reshard) { groups[reshard.getOperand()].push_back(reshard); });
    for (const auto &[value, reshards] : groups)
      merge(reshards, mesh);
    return success();
  }

  /// Of reshards of one value.
  void merge(ArrayRef<ReshardOp> reshards, const layout::Mesh &mesh);
};

} // namespace

/// True if all users are operations that may read more than they need. What a function returns is of the function's
/// type.
static bool mayHoldMore(ReshardOp reshard) {
  return llvm::all_of(reshard->getUsers(), [](Operation *user) { return isa<SplitOpInterface>(user); });
}

void MergeReshards::merge(ArrayRef<ReshardOp> reshards, const layout::Mesh &mesh) {
  // The value itself may have been that of a reshard that is gone.
  auto type = cast<RankedTensorType>(ReshardOp(reshards.front()).getOperand().getType());
  SmallVector<ReshardOp> alive(reshards);
  for (ReshardOp &small : alive) {
    for (ReshardOp large : alive) {
      if (!small || !large || small == large)
        continue;
      bool equal = small.getType() == large.getType();
      // What is gathered for one step is not there for others.
      if (!equal &&
          (isGather(small) || !mayHoldMore(small) || !covers(getSharding(large), getSharding(small), type, mesh)))
        continue;
      // All users come after both reshards if the covering one moves up.
      if (small->isBeforeInBlock(large))
        large->moveBefore(small);
      small.getResult().replaceAllUsesWith(large.getResult());
      small.erase();
      small = {};
      break;
    }
  }
}
