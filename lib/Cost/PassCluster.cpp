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

#include "dovetail/Cost/PassCluster.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace dovetail;

LogicalResult dovetail::findCluster(std::shared_ptr<const Cluster> &cluster, StringRef name, MLIRContext *context) {
  if (cluster)
    return success();
  if (std::optional<Cluster> builtIn = Cluster::getBuiltIn(name)) {
    cluster = std::make_shared<const Cluster>(std::move(*builtIn));
    return success();
  }
  auto buffer = llvm::MemoryBuffer::getFile(name, /*IsText=*/true);
  if (!buffer)
    return emitError(UnknownLoc::get(context))
           << "there is no cluster '" << name << "' among the built-in ones, nor such a file";
  llvm::Expected<Cluster> parsed = Cluster::parse((*buffer)->getBuffer(), name);
  if (!parsed)
    return emitError(UnknownLoc::get(context)) << llvm::toString(parsed.takeError());
  cluster = std::make_shared<const Cluster>(std::move(*parsed));
  return success();
}
