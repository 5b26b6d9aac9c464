//===- Passes.h - Passes over the plan -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the passes that decide what a plan leaves open: algorithms, exchanges, order and waits.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_SCHEDULE_PASSES_H
#define DOVETAIL_SCHEDULE_PASSES_H

#include "dovetail/Cost/ExchangeTiming.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace dovetail {

#define GEN_PASS_DECL
#include "dovetail/Schedule/Passes.h.inc"

/// The same passes for any cluster; option `cluster` is not looked at.
std::unique_ptr<mlir::Pass> createChooseAlgorithms(ChooseAlgorithmsOptions options,
                                                   std::shared_ptr<const Cluster> cluster);
std::unique_ptr<mlir::Pass> createDivideCalls(DivideCallsOptions options, std::shared_ptr<const Cluster> cluster);
std::unique_ptr<mlir::Pass> createSplitLaunches(SplitLaunchesOptions options, std::shared_ptr<const Cluster> cluster);

#define GEN_PASS_REGISTRATION
#include "dovetail/Schedule/Passes.h.inc"

} // namespace dovetail

#endif // DOVETAIL_SCHEDULE_PASSES_H
