//===- Positions.h - Indices that are made of positions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines an attribute that says that indices are the coordinates of positions.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_POSITIONS_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_POSITIONS_H

#include "llvm/ADT/StringRef.h"

namespace dovetail {

/// On an operation whose indices are coordinates of positions in a tensor of so many elements (i64). One that is out of
/// range is the first coordinate itself, and what messages say is of positions.
inline constexpr llvm::StringLiteral kPositionsAttrName = "dovetail.positions";
/// Its value where the index is the difference of two extents that must be equal: a lookup of index 0 in one element.
inline constexpr int64_t kDifferencePositions = 0;
/// The same where the index is how far an extent is below 0.
inline constexpr int64_t kShortagePositions = -1;

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_POSITIONS_H
