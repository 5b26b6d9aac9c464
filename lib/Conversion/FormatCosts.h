//===- FormatCosts.h - What memory formats cost -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what it costs that operations read and write values in certain memory formats.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CONVERSION_FORMATCOSTS_H
#define DOVETAIL_LIB_CONVERSION_FORMATCOSTS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Library/Library.h"

namespace dovetail {

/// The format that `op`, or the library that does it, prefers for tensors of `rank`, and for its result if that is of
/// this rank; null for none.
plan::FormatAttr getPreferredFormat(SplitOpInterface op, int64_t rank, const Libraries &libraries);

/// True if each dimension of operand `number` goes with the result's dimension of the same number, with a reduction or
/// with none, and there are as many.
bool isAlignedWithResult(DefinitionOpInterface op, unsigned number);

/// True if a kernel for `op` that goes through its result, in `result`, in the order of memory finds what it reads of
/// operand `number`, in `format`, with gaps in between.
bool readsWithGaps(DefinitionOpInterface op, unsigned number, plan::FormatAttr format, plan::FormatAttr result);

/// What it costs that `op` reads operand `number` in `format`, and writes its result in `result`, beyond the bytes that
/// it moves anyway: in bytes that follow each other in memory, which would take as long. Libraries read copies of what
/// they do not take as it lies; kernels go through their results in the order of memory, and what they then read with
/// gaps takes several times as long.
double getReadCost(SplitOpInterface op, unsigned number, plan::FormatAttr format, plan::FormatAttr result,
                   const Libraries &libraries);

/// What it costs, in the same unit, to copy `value`, whose memory is in `format`, from or to a user's memory, which is
/// row-major.
double getPortCost(mlir::Value value, plan::FormatAttr format);

} // namespace dovetail

#endif // DOVETAIL_LIB_CONVERSION_FORMATCOSTS_H
