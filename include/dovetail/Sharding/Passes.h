//===- Passes.h - Passes that decide and carry out shardings -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the passes that choose cuts, and those of partition.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_SHARDING_PASSES_H
#define DOVETAIL_SHARDING_PASSES_H

#include "dovetail/Cost/ExchangeTiming.h"
#include "dovetail/Cost/Objective.h"
#include "dovetail/Search/ChoiceGraph.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace dovetail {

/// The attribute of a function that says what is expected of how it is split.
inline constexpr llvm::StringLiteral kExpectationAttrName = "dovetail.expected";

/// The attribute of a function that says where what is stated does not hold, or does not fit. It has `departures` from
/// what is stated and `changes` from one request to another. Each has a `location` and a `text`, and the first of each
/// kind is to warn of. `gain`, a text, is there if something is known of a plan that follows all. `unaligned` has
/// stated sizes: `cuts`, `alternatives` to try, and a `text`.
inline constexpr llvm::StringLiteral kDeparturesAttrName = "dovetail.departures";

/// Says what departures gain.
std::string describeGain(double seconds, double followedSeconds);
/// The same where the plan that follows all does not fit.
std::string describeShortage(double seconds, double followedSeconds);
/// Says the departures and changes that an attribute lists.
void emitDepartures(mlir::DictionaryAttr departures);

#define GEN_PASS_DECL
#include "dovetail/Sharding/Passes.h.inc"

/// The same passes for any cluster; option `cluster` is not looked at.
std::unique_ptr<mlir::Pass> createChooseShardings(ChooseShardingsOptions options,
                                                  std::shared_ptr<const Cluster> cluster);
std::unique_ptr<mlir::Pass> createHoistReshards(HoistReshardsOptions options, std::shared_ptr<const Cluster> cluster);
std::unique_ptr<mlir::Pass> createWidenHalos(WidenHalosOptions options, std::shared_ptr<const Cluster> cluster);

#define GEN_PASS_REGISTRATION
#include "dovetail/Sharding/Passes.h.inc"

} // namespace dovetail

#endif // DOVETAIL_SHARDING_PASSES_H
