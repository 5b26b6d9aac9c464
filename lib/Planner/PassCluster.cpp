//===- PassCluster.cpp - The cluster that a pass decides for --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements findCluster.
//
//===----------------------------------------------------------------------===//

#include "PassCluster.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace dovetail;

LogicalResult dovetail::findCluster(std::shared_ptr<const Cluster> &cluster, StringRef name, MLIRContext *context) {
  if (cluster)
    return success();
  std::optional<Cluster> builtIn = Cluster::getBuiltIn(name);
  if (!builtIn)
    return emitError(UnknownLoc::get(context)) << "there is no cluster '" << name << "' that is built in";
  cluster = std::make_shared<const Cluster>(std::move(*builtIn));
  return success();
}
