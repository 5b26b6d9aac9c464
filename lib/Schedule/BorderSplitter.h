//===- BorderSplitter.h - What exchanges send, computed first ---*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how a step whose result ranks exchange becomes several: what is sent, and the rest.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SCHEDULE_BORDERSPLITTER_H
#define DOVETAIL_LIB_SCHEDULE_BORDERSPLITTER_H

#include "dovetail/Dialect/Plan/IR/Plan.h"

namespace dovetail {

/// Adds the parts of `step` in front of it, if `exchange`, which is the next step, brings halos of its results within
/// their buffers, and sends a part of what ranks compute: the borders first, of which the exchange sends something, and
/// at the end the interior, which may be computed while it is under way. Else none. Either they or the step are to go.
/// `symbols` finds the kernels of launches.
llvm::SmallVector<plan::StepOpInterface> splitBorders(plan::StepOpInterface step, plan::ExchangeOp exchange,
                                                      const layout::Mesh &mesh, mlir::SymbolTableCollection &symbols);

} // namespace dovetail

#endif // DOVETAIL_LIB_SCHEDULE_BORDERSPLITTER_H
