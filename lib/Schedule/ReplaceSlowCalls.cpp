//===- ReplaceSlowCalls.cpp - Replace what libraries are slow at ----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Has the runtime's own kernels do the convolutions that the library is slow at.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Library/Library.h"
#include "dovetail/Schedule/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_REPLACESLOWCALLS
#include "dovetail/Schedule/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct ReplaceSlowCalls : dovetail::impl::ReplaceSlowCallsBase<ReplaceSlowCalls> {
  using ReplaceSlowCallsBase::ReplaceSlowCallsBase;

  void runOnOperation() override;
};
} // namespace

void ReplaceSlowCalls::runOnOperation() {
  FailureOr<Libraries> found = Libraries::create(getOperation().getLoc(), libraries, features);
  if (failed(found))
    return signalPassFailure();
  getOperation().walk([&](plan::ConvolutionOp call) {
    if (call.getAlgorithm() == plan::ConvolutionAlgorithm::Library && found->isSlow(call))
      call.setAlgorithm(plan::ConvolutionAlgorithm::Gathered);
  });
}
