//===- UnsupportedParts.cpp - What of a model cannot be compiled -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements UnsupportedParts.
//
//===----------------------------------------------------------------------===//

#include "UnsupportedParts.h"

#include "dovetail/Dialect/Dovetail/IR/TensorName.h"

#include <map>
#include <tuple>

using namespace dovetail::importer;

llvm::LogicalResult UnsupportedParts::report(Reporter &reporter) const {
  auto describe = [](const Part &part) {
    return "'" + getNodeTitle(part.loc) + "': " + part.what + part.details +
           (part.what.empty() && part.details.empty() ? "" : ": ") + part.obstacle.reason;
  };
  // In the order of the first part of each group.
  std::vector<std::vector<const Part *>> groups;
  std::map<std::tuple<llvm::StringRef, llvm::StringRef, llvm::StringRef>, size_t> groupOf;
  for (const Part &part : parts) {
    auto [group, isNew] = groupOf.try_emplace({part.kind, part.what, part.obstacle.reason}, groups.size());
    if (isNew)
      groups.emplace_back();
    groups[group->second].push_back(&part);
  }
  {
    mlir::InFlightDiagnostic error = reporter.error(ImportError::Unsupported);
    error << parts.size() << (parts.size() == 1 ? " part" : " parts") << " of the model cannot be compiled:";
    for (const auto &group : groups) {
      const Part &first = *group.front();
      error << "\n  ";
      if (group.size() == 1)
        error << first.kind << " ";
      else
        error << group.size() << " " << first.kind << "s, the first ";
      error << describe(first) << "\n    ";
      const std::string &remedy = first.obstacle.remedy;
      error << (remedy.empty() ? "export the model without it, or end the graph before it" : remedy);
    }
    if (groups.size() < parts.size())
      error << "\n--remarks lists each of them";
  }
  for (const Part &part : parts)
    mlir::emitRemark(part.loc) << part.kind << " " << describe(part);
  return llvm::failure();
}
