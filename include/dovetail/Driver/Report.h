//===- Report.h - What was decided about a model -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how a report about an artifact is written.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_REPORT_H
#define DOVETAIL_DRIVER_REPORT_H

#include "dovetail/Driver/Compilation.h"

namespace dovetail {

/// That the name of the report says what it is to be: a usage error if it ends neither in `.html` nor in `.json`.
llvm::LogicalResult checkReport(llvm::StringRef report, Diagnostics &diagnostics);

/// Writes to the file `report` how the program in the file `artifact` is partitioned, what its ranks exchange and hold,
/// its steps, and what its compilation took.
llvm::LogicalResult writeReport(llvm::StringRef artifact, llvm::ArrayRef<PhaseTime> times, llvm::StringRef report,
                                Diagnostics &diagnostics);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_REPORT_H
