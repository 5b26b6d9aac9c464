//===- LocalGroup.h - Ranks as threads --------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the transport `local`: the ranks are threads of one process and copy directly from each other's
// memory.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LOCALGROUP_H
#define DOVETAIL_RUNTIME_LOCALGROUP_H

#include "dovetail/runtime/RankGroup.h"

#include <chrono>
#include <memory>

namespace dovetail::runtime {

/// The ranks of one process. Waiting ranks sleep, so there may be more of them than cores. A rank that makes no
/// progress for `timeout` while another waits for it ends the run on all ranks with an error that names it and its
/// step.
class LocalGroup : public RankGroup {
public:
  /// `timeout`: how long a rank may make no progress.
  explicit LocalGroup(int ranks, std::chrono::milliseconds timeout = std::chrono::seconds(60), int device = -1);
  ~LocalGroup() override;

  bool isWhole() const override { return true; }
  int device() const override { return ordinal; }
  /// It keeps the group's state alive by itself.
  std::unique_ptr<Communicator> communicator(int rank) override;

  /// If some rank is busy and none has made progress for the timeout, ends the run and returns the error that names the
  /// rank at fault.
  absl::Status watch() override;
  absl::StatusOr<std::vector<std::string>> gather(std::string own) override { return std::vector{std::move(own)}; }
  absl::StatusOr<std::vector<std::string>> share(std::string own) override { return std::vector{std::move(own)}; }
  absl::Status meet() override { return absl::OkStatus(); }
  void abort(const absl::Status &status);

  struct State;

private:
  std::shared_ptr<State> state;
  int ordinal;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_LOCALGROUP_H
