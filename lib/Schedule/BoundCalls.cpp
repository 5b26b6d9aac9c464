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

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Library/Library.h"
#include "dovetail/Schedule/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_BOUNDCALLS
#include "dovetail/Schedule/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct BoundCalls : dovetail::impl::BoundCallsBase<BoundCalls> {
  using BoundCallsBase::BoundCallsBase;

  void runOnOperation() override;
};
} // namespace

/// True if what libraries pack of `call` never changes after the prologue, which `call` is not part of.
static bool packsOnce(plan::CallOpInterface call) {
  if (!isSumOfProducts(*call.getCallForm()))
    return false;
  plan::BufferOp buffer = plan::getBufferOp(call.getCallOperands()[1]);
  return buffer && buffer.getKind() != plan::BufferKind::Arena && !isa<plan::PrologueOp>(call->getParentOp());
}

/// One number if all are the same.
static ArrayRef<int64_t> compress(ArrayRef<int64_t> numbers) {
  return llvm::all_equal(numbers) ? numbers.take_front() : numbers;
}

/// Adds to `whole`, what `call` takes if one thread computes `loops`, what it takes if several threads divide them.
/// What one thread takes stays the same.
static LogicalResult addThreads(plan::CallOpInterface call, const layout::Box &loops, plan::DivisionAttr division,
                                bool packsOnce, const Libraries &libraries, CallBytes &whole) {
  int64_t extent = loops[division.getLoop()].size(), steps = llvm::divideCeil(extent, division.getStep());
  // What more parts take, each of which is no larger, follows from what fewer take.
  static constexpr int64_t counts[] = {2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64};
  CallBytes bytes = whole;
  bytes.threadScratch = 0;
  int64_t single = whole.scratch + whole.threadScratch;
  for (auto [number, count] : llvm::enumerate(counts)) {
    if (count > extent / division.getGrain())
      break;
    layout::Box part = loops;
    layout::Interval &range = part[division.getLoop()];
    range.hi = std::min(range.hi, range.lo + static_cast<int64_t>(llvm::divideCeil(steps, count)) * division.getStep());
    std::optional<CallBytes> bound = libraries.getMemoryBound(call, part, packsOnce);
    if (!bound)
      return failure();
    // Up to how many parts these are.
    int64_t most = number + 1 < std::size(counts) ? counts[number + 1] - 1 : count;
    // What each thread but the first adds, so that it suffices for fewest and most parts of `each` bytes.
    auto add = [&](int64_t &total, int64_t each, int64_t first) {
      for (int64_t parts : {count, most})
        total = std::max(total,
                         static_cast<int64_t>(llvm::divideCeil(std::max(parts * each - first, int64_t(0)), parts - 1)));
    };
    add(bytes.threadScratch, bound->scratch + bound->threadScratch, single);
    // Parts that need the same weights have one copy of them.
    if (bound->packed < whole.packed)
      add(bytes.threadPacked, bound->packed, whole.packed);
  }
  whole = bytes;
  whole.scratch = std::max(single - whole.threadScratch, int64_t(0));
  return success();
}

/// The bounds of `call` on all ranks, and `spare` bytes; null if the library does not say.
static plan::CallMemoryAttr getMemory(plan::CallOpInterface call, int64_t spare, const Libraries &libraries,
                                      const layout::Mesh &mesh) {
  bool once = packsOnce(call);
  int64_t rank = plan::getTensor(call.getOutput()).getRank();
  SmallVector<int64_t> extents = plan::getExtents(call.getLoops());
  layout::Sharding sharding = toLayout(plan::getDims(call.getLoops()), mesh);
  SmallVector<int64_t> packed, scratch, threadScratch, threadPacked;
  plan::DivisionAttr division = call.getDivisionAttr();
  for (int number = 0, ranks = mesh.numRanks(); number < ranks; ++number) {
    layout::Box box = sharding.boxOf(mesh, extents, number);
    bool isIdle = false;
    for (int64_t dim = 0; dim < rank; ++dim)
      isIdle |= box[dim].empty();
    CallBytes bytes;
    if (!isIdle) {
      std::optional<CallBytes> bound = libraries.getMemoryBound(call, box, once);
      if (!bound)
        return {};
      bytes = *bound;
      if (division && failed(addThreads(call, box, division, once, libraries, bytes)))
        return {};
    }
    packed.push_back(bytes.packed + spare);
    scratch.push_back(bytes.scratch);
    threadScratch.push_back(bytes.threadScratch + spare);
    threadPacked.push_back(bytes.threadPacked + spare);
  }
  return plan::CallMemoryAttr::get(call->getContext(), compress(packed), compress(scratch), compress(threadScratch),
                                   compress(threadPacked));
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
  WalkResult result = getOperation().walk([&](plan::CallOpInterface call) {
    plan::CallMemoryAttr memory = getMemory(call, spare, *callable, ranks);
    if (!memory)
      return WalkResult(call->emitOpError("is a call whose memory no library of the target knows"));
    call.setMemoryAttr(memory);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}
