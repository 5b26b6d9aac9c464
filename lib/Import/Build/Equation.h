//===- Equation.h - Equations of Einstein summation -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Equation, which says what each dimension of the operands and of the result of an Einsum is.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_EQUATION_H
#define DOVETAIL_LIB_IMPORT_BUILD_EQUATION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace dovetail::importer {

/// The index that a dimension has: a letter or, where negative, one of the dimensions that ellipses stand for, -1 for
/// the last one.
using Label = int;

/// An equation such as `bij,bjk->bik`, for operands of known shapes. As in NumPy: spaces count nothing, letters of both
/// cases differ, dimensions of extent 1 are repeated, ellipses stand for dimensions that are aligned at the right, and
/// the result has, where it is not stated, those of ellipses and then the letters that occur once, in the order of
/// their codes.
struct Equation {
  llvm::SmallVector<llvm::SmallVector<Label>> operands;
  llvm::SmallVector<Label> result;
  llvm::DenseMap<Label, int64_t> extents;

  /// None, and `problem`, where the text is no equation for operands of these shapes.
  static std::optional<Equation> parse(llvm::StringRef text, llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes,
                                       std::string &problem);
};

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_EQUATION_H
