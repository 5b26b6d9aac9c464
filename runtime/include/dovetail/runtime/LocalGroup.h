//===- LocalGroup.h - Ranks as threads --------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the communicator backend `local`: the ranks are threads of one process and copy directly from each other's
// memory.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LOCALGROUP_H
#define DOVETAIL_RUNTIME_LOCALGROUP_H

#include "dovetail/runtime/Communicator.h"

#include <chrono>
#include <memory>

namespace dovetail::runtime {

/// The ranks of one process. Waiting ranks sleep, so there may be more of them than cores. A rank that makes no
/// progress for `timeout` while another waits for it ends the run on all ranks with an error that names it and its
/// step.
class LocalGroup {
public:
  /// `timeout`: how long a rank may make no progress.
  explicit LocalGroup(int ranks, std::chrono::milliseconds timeout = std::chrono::seconds(60));
  ~LocalGroup();

  /// The communicator of `rank`; call it once for each rank. It keeps the group's state alive by itself.
  std::unique_ptr<Communicator> communicator(int rank);

  /// If some rank is busy and none has made progress for the timeout, ends the run and returns the error that names the
  /// rank at fault; also returns the error that ended the run before. To be called now and then by who waits for the
  /// ranks.
  absl::Status watch();
  void abort(const absl::Status &status);

  struct State;

private:
  std::shared_ptr<State> state;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_LOCALGROUP_H
