//===- Progress.h - Progress of long work -----------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Progress, which says on standard error what a command is doing.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_PROGRESS_H
#define DOVETAIL_DRIVER_PROGRESS_H

#include "llvm/ADT/Twine.h"

namespace dovetail {

/// Says what a command is doing, by the `tools::ProgressLine` of the process. Does nothing unless a `Shown` lives.
class Progress {
public:
  /// While it lives, progress is shown. There is one at a time, in a process whose compilations run one after another.
  class Shown {
  public:
    explicit Shown(bool isQuiet = false);
    ~Shown();
    Shown(const Shown &) = delete;
    Shown &operator=(const Shown &) = delete;
  };

  /// While it lives, `show` says which part of the step before is being done: `propagate (3 of 7): simulation`.
  class Parts {
  public:
    Parts();
    ~Parts();
    Parts(const Parts &) = delete;
    Parts &operator=(const Parts &) = delete;
  };

  /// Shows `what`, as number `number` of `count` steps unless it is a part of one.
  static void show(const llvm::Twine &what, size_t number = 0, size_t count = 0);
  /// Wipes the line out for a message. It comes back if the step goes on for long.
  static void makeWay();
  /// Wipes the line out for good.
  static void clear();
};

} // namespace dovetail

#endif // DOVETAIL_DRIVER_PROGRESS_H
