//===- ShardingMessages.h - What is said of shardings -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the warnings and remarks about how a function is split.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SHARDING_SHARDINGMESSAGES_H
#define DOVETAIL_LIB_SHARDING_SHARDINGMESSAGES_H

#include "ShardingAssignment.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dovetail {

/// Says how far from the best the result may be, where that is not proven.
void emitGap(mlir::func::FuncOp function, const ShardingAssignment &assignment, const Goal &goal);
/// Says how the operations that take most time are split, and the next best way.
void emitExplanations(mlir::func::FuncOp function, const ShardingAssignment &assignment, const Goal &goal);
/// Says which operations cuts that are stated make slow.
void emitSlow(const ShardingAssignment &assignment);
/// Says which weights ranks store in pieces.
void emitStored(const ShardingAssignment &assignment);
/// Says which operations follow no request, as they cannot.
void emitEnd(const ShardingAssignment &assignment);
/// Says where sizes that are stated do not go together with strides.
void emitUnaligned(const ShardingAssignment &assignment);

/// `kDeparturesAttrName` of a function with this assignment; null if there is nothing to say.
mlir::DictionaryAttr describeDepartures(const ShardingAssignment &assignment, const Goal &goal,
                                        mlir::MLIRContext *context);

/// Ranks to which stated cuts give no elements of some tensor.
std::vector<bool> findGivenNothing(const FunctionRequests &requests, const layout::Mesh &mesh);
/// Says which ranks are of no use, and why where that is known. `byTime`: where work is divided is decided by time
/// alone.
void emitIdle(mlir::func::FuncOp function, const ShardingAssignment &assignment, const std::vector<bool> &givenNothing,
              bool byTime);

} // namespace dovetail

#endif // DOVETAIL_LIB_SHARDING_SHARDINGMESSAGES_H
