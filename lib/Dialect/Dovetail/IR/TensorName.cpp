//===- TensorName.cpp - Names of a model's tensors and nodes in the IR ----===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how locations become the names that users read.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/TensorName.h"

#include "dovetail/Text/SourceName.h"

using namespace mlir;
using namespace dovetail;

std::string dovetail::getSourceName(Location loc) {
  auto node = loc->findInstanceOf<NameLoc>();
  if (!node)
    return "";
  StringRef name, file;
  Location place = node.getChildLoc();
  if (auto source = dyn_cast<NameLoc>(place)) {
    name = source.getName();
    place = source.getChildLoc();
  }
  unsigned line = 0;
  if (auto position = dyn_cast<FileLineColLoc>(place)) {
    // MLIR has no files without a name.
    file = position.getFilename() == "-" ? StringRef() : position.getFilename().getValue();
    line = position.getLine();
  }
  return text::formatSourceName(name, file, line);
}

std::string dovetail::getNodeTitle(Location loc) {
  std::string source = getSourceName(loc);
  return source.empty() ? getNodeName(loc).str() : source;
}

SmallVector<NameLoc> dovetail::getNodes(Location loc) {
  SmallVector<NameLoc> nodes;
  SmallVector<Location> rest = {loc};
  while (!rest.empty()) {
    Location next = rest.pop_back_val();
    if (auto node = dyn_cast<NameLoc>(next)) {
      if (!llvm::is_contained(nodes, node))
        nodes.push_back(node);
    } else if (auto fused = dyn_cast<FusedLoc>(next)) {
      llvm::append_range(rest, llvm::reverse(fused.getLocations()));
    }
  }
  return nodes;
}
