//===- BoundCalls.cpp - Bound the memory of library calls -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Says how much memory each library call takes at most on each rank.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Sharding/ShardingUtils.h"
#include "dovetail/Target/Library.h"
#include "llvm/ADT/TypeSwitch.h"

namespace dovetail {
#define GEN_PASS_DEF_BOUNDCALLS
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct BoundCalls : dovetail::impl::BoundCallsBase<BoundCalls> {
  using BoundCallsBase::BoundCallsBase;

  void runOnOperation() override;
};
} // namespace

/// True if `weights` of `call` never change after the prologue, which `call` is not part of.
static bool packsOnce(Operation *call, Value weights) {
  plan::BufferOp buffer = plan::getBufferOp(weights);
  return buffer && buffer.getKind() != plan::BufferKind::Arena && !isa<plan::PrologueOp>(call->getParentOp());
}

/// One number if all are the same.
static ArrayRef<int64_t> compress(ArrayRef<int64_t> numbers) {
  return llvm::all_equal(numbers) ? numbers.take_front() : numbers;
}

/// The bounds of `call`, whose output has `rank` dimensions, on all ranks; null if the library does not say.
static plan::CallMemoryAttr getMemory(Operation *call, ArrayAttr loops, int64_t rank, bool packsOnce,
                                      const Libraries &libraries, const layout::Mesh &mesh) {
  SmallVector<DimShardingAttr> dims;
  SmallVector<int64_t> extents;
  for (auto loop : loops.getAsRange<plan::LoopAttr>()) {
    dims.push_back(loop.getDim());
    extents.push_back(loop.getExtent());
  }
  layout::Sharding sharding = toLayout(dims, mesh);
  SmallVector<int64_t> packed, scratch, threadScratch;
  for (int number = 0, ranks = mesh.numRanks(); number < ranks; ++number) {
    layout::Box box = sharding.boxOf(mesh, extents, number);
    bool isIdle = false;
    for (int64_t dim = 0; dim < rank; ++dim)
      isIdle |= box[dim].empty();
    CallBytes bytes;
    if (!isIdle) {
      std::optional<CallBytes> bound = libraries.getMemoryBound(call, box, packsOnce);
      if (!bound)
        return {};
      bytes = *bound;
    }
    packed.push_back(bytes.packed);
    scratch.push_back(bytes.scratch);
    threadScratch.push_back(bytes.threadScratch);
  }
  return plan::CallMemoryAttr::get(call->getContext(), compress(packed), compress(scratch), compress(threadScratch));
}

void BoundCalls::runOnOperation() {
  FailureOr<MeshOp> mesh = getModuleMesh(getOperation());
  if (failed(mesh))
    return signalPassFailure();
  FailureOr<Libraries> callable = Libraries::create(getOperation().getLoc(), libraries, features);
  if (failed(callable))
    return signalPassFailure();
  if (!*mesh)
    return;
  layout::Mesh ranks = mesh->getMesh();
  auto bound = [&](auto call, Value weights) {
    int64_t rank = cast<plan::RefType>(call.getOutput().getType()).getTensor().getRank();
    bool once = weights && packsOnce(call, weights);
    plan::CallMemoryAttr memory = getMemory(call, call.getLoops(), rank, once, *callable, ranks);
    if (!memory)
      return WalkResult(call.emitOpError("is a call of which no library of the target says how much memory it takes"));
    call.setMemoryAttr(memory);
    return WalkResult::advance();
  };
  WalkResult result = getOperation().walk([&](Operation *op) {
    return TypeSwitch<Operation *, WalkResult>(op)
        .Case([&](plan::ConvolutionOp call) { return bound(call, call.getWeights()); })
        .Case([&](plan::MatMulOp call) { return bound(call, call.getB()); })
        .Case([&](plan::PoolOp call) { return bound(call, Value()); })
        .Default(WalkResult::advance());
  });
  if (result.wasInterrupted())
    signalPassFailure();
}
