//===- PassCluster.h - The cluster that a pass decides for ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares findCluster, by which passes get the cluster that their options name.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_COST_PASSCLUSTER_H
#define DOVETAIL_COST_PASSCLUSTER_H

#include "dovetail/Cost/Cluster.h"
#include "mlir/IR/MLIRContext.h"

#include <memory>

namespace dovetail {

/// Leaves a cluster that a pass was given as it is. Else finds the one of this name that is built in, or reads the
/// file. An error if there is none.
llvm::LogicalResult findCluster(std::shared_ptr<const Cluster> &cluster, llvm::StringRef name,
                                mlir::MLIRContext *context);

} // namespace dovetail

#endif // DOVETAIL_COST_PASSCLUSTER_H
