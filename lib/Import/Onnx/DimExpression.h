//===- DimExpression.h - Extents that models state as expressions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares evaluateDim, which reads names of dimensions such as "4*h4" and "(s73 - 1)//2 + 1" as expressions.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_DIMEXPRESSION_H
#define DOVETAIL_LIB_IMPORT_ONNX_DIMEXPRESSION_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <optional>

namespace dovetail::importer {

/// The value of an expression as far as it is known: `constant` plus `factors` times symbols that have no value yet.
/// Symbols refer to the text.
struct DimValue {
  /// All symbols of the text, in order of their first occurrences, those with a value included.
  llvm::SmallVector<llvm::StringRef> symbols;
  /// False where an expression is no such sum, divides by zero or leaves the range of numbers.
  bool isSum = true;
  int64_t constant = 0;
  std::map<llvm::StringRef, int64_t> factors;

  bool isConstant() const { return isSum && factors.empty(); }
};

/// The value of `text`: whole numbers and symbols with +, -, *, // (which rounds down) and parentheses. As exporters
/// write expressions, a '-' without spaces is part of a name. `getValue` says what symbols are. Nothing if the text is
/// no expression; a name alone is one.
std::optional<DimValue> evaluateDim(llvm::StringRef text,
                                    llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> getValue);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_DIMEXPRESSION_H
