//===- NamedExtents.h - Extents of dimensions with names -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares NamedExtents, which knows what follows from the extents that options give.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_NAMEDEXTENTS_H
#define DOVETAIL_LIB_IMPORT_ONNX_NAMEDEXTENTS_H

#include "DimExpression.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace dovetail::importer {

/// An extent, and the option or options that it comes from, as `--dim N=4`.
struct GivenExtent {
  int64_t value = 0;
  std::string origin;
  bool isBound = false; ///< The largest one of a length that varies, from which nothing else follows.
};

/// The dimensions to which a model gives names, which may be expressions of symbols, and the extents of both.
class NamedExtents {
public:
  /// Adds a name of the model, which must outlive this.
  void addName(llvm::StringRef name);
  /// Whether an option may give an extent to `name`: a name of the model, or a symbol of an expression.
  bool isKnown(llvm::StringRef name) const { return names.contains(name) || symbols.contains(name); }
  /// The names of the model.
  bool isName(llvm::StringRef name) const { return names.contains(name); }
  /// All that may be given: the names of the model, then the symbols that are none.
  llvm::SmallVector<llvm::StringRef> getKnown() const;

  const GivenExtent *find(llvm::StringRef name) const;
  void give(llvm::StringRef name, GivenExtent extent) { extents[name] = std::move(extent); }
  /// Computes expressions from their symbols, and symbols from expressions of no other. A contradiction is
  /// returned as a message.
  std::optional<std::string> settle();

  /// The names that options have to give for the dimension `name` of the model: nothing if its extent is known.
  llvm::SmallVector<llvm::StringRef> getMissing(llvm::StringRef name) const;

private:
  DimValue evaluate(llvm::StringRef name) const;
  /// The options from which the symbols of an expression come.
  std::string getOrigins(const DimValue &value) const;
  /// Compares a name with the value of its expression, or computes one of the other; sets `isNew` then.
  std::optional<std::string> settle(llvm::StringRef name, bool &isNew);

  llvm::MapVector<llvm::StringRef, bool> names; ///< Whether it is an expression.
  llvm::MapVector<llvm::StringRef, bool> symbols;
  llvm::StringMap<GivenExtent> extents;
};

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_NAMEDEXTENTS_H
