//===- Progress.h - Progress of long work on a terminal -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Progress, one line on standard error that says what is going on, if that is a terminal.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_PROGRESS_H
#define DOVETAIL_DRIVER_PROGRESS_H

#include "llvm/ADT/Twine.h"

namespace dovetail {

/// A line on the terminal that says what is being done; a process has one. Does nothing unless `enable` was called and
/// standard error is a terminal.
class Progress {
public:
  /// Shows progress from now on if the standard error is a terminal.
  static void enable();
  /// Shows `what` instead of what was shown before.
  static void show(const llvm::Twine &what);
  /// Wipes the line out, for other output to take its place.
  static void clear();
};

} // namespace dovetail

#endif // DOVETAIL_DRIVER_PROGRESS_H
