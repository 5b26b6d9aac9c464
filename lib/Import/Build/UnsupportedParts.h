//===- UnsupportedParts.h - What of a model cannot be compiled -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares UnsupportedParts, which collects them and reports all at once.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_UNSUPPORTEDPARTS_H
#define DOVETAIL_LIB_IMPORT_BUILD_UNSUPPORTEDPARTS_H

#include "Reporter.h"

namespace dovetail::importer {

/// Why something cannot be imported, and what whoever exports the model can do about it.
struct Obstacle {
  std::string reason;
  /// If empty, to do without it.
  std::string remedy = {};
};

class UnsupportedParts {
public:
  /// Adds a part of `kind`: "node", "initializer" or "tensor", at the location of its name. What is the same about
  /// parts of one kind is `what`, such as the operator; it may be empty. What differs is `details`, such as the types
  /// of operands.
  void add(llvm::StringRef kind, mlir::Location loc, std::string what, std::string details, Obstacle obstacle) {
    parts.push_back({kind.str(), loc, std::move(what), std::move(details), std::move(obstacle)});
  }
  bool empty() const { return parts.empty(); }
  size_t size() const { return parts.size(); }

  /// Emits one error, with a line for all parts that have kind, `what` and reason in common, and a remark for each
  /// part.
  llvm::LogicalResult report(Reporter &reporter) const;

private:
  struct Part {
    std::string kind;
    mlir::Location loc;
    std::string what, details;
    Obstacle obstacle;
  };
  std::vector<Part> parts;
};

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_UNSUPPORTEDPARTS_H
