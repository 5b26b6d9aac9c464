//===- RunLock.h - One run at a time for files -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a run keeps others from writing to the same files.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_STEPS_RUNLOCK_H
#define DOVETAIL_TOOLS_STEPS_RUNLOCK_H

#include "absl/status/statusor.h"

#include <memory>
#include <string>

namespace dovetail::tools {

/// A file that one process of all machines holds, by a lock of the file system's, which ends with the process whatever
/// becomes of it. The file goes when it is given back.
class RunLock {
public:
  /// Waits a moment for a holder that is about to end. `suffix` is what names of the run's unfinished files end in.
  /// Errors: ALREADY_EXISTS if another process holds it, with what is known of that; those of files.
  static absl::StatusOr<std::unique_ptr<RunLock>> take(const std::string &path, const std::string &suffix);
  ~RunLock();
  RunLock(const RunLock &) = delete;
  RunLock &operator=(const RunLock &) = delete;

  /// The suffix of a run that held it, and ended without giving it back; empty if there was none.
  const std::string &getLeftSuffix() const { return leftSuffix; }
  /// Why the file system has no locks; empty if it has. Then others are not kept away.
  const std::string &getRefusal() const { return refusal; }

private:
  RunLock(std::string path, int file) : path(std::move(path)), file(file) {}

  std::string path;
  int file;
  std::string leftSuffix, refusal;
};

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_STEPS_RUNLOCK_H
