//===- RankGroup.h - Ranks of this process -------------------- -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what runs a program's ranks needs of whatever connects them, and how that is found by its name.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_RANKGROUP_H
#define DOVETAIL_RUNTIME_RANKGROUP_H

#include "dovetail/runtime/Communicator.h"
#include "dovetail/runtime/LaunchEnvironment.h"

#include <chrono>
#include <optional>
#include <utility>

namespace dovetail::runtime {

struct DevicePlugin;

/// The ranks of a program that are threads of this process, connected with all of its ranks.
class RankGroup {
public:
  virtual ~RankGroup() = default;
  /// The ranks of this process, ascending; at least one.
  const std::vector<int> &ranks() const { return own; }
  /// Whether these are all ranks.
  virtual bool isWhole() const = 0;
  /// The device for these ranks; negative: they take turns among those of the machine.
  virtual int device() const = 0;
  /// Processes of the same run on this machine, this one included: they share its cores.
  virtual int processesHere() const { return 1; }
  /// The number of this one among them, from 0.
  virtual int numberHere() const { return 0; }
  /// The communicator of one of them; call it once for each. It belongs to that rank's thread.
  virtual std::unique_ptr<Communicator> communicator(int rank) = 0;
  /// The error that ended the run, also if it has just come to light that a rank hangs. To be called now and then by
  /// who waits for the ranks, while their communicators are there.
  virtual absl::Status watch() = 0;

  /// Unless the group is whole: carries bytes from all processes to that of rank 0, which gets them by rank; the others
  /// get nothing. All ranks call it, on their threads.
  virtual absl::StatusOr<std::vector<std::string>> gather(std::string own) = 0;
  /// What each process gives, by rank; if the group is whole, what this one does. All processes call it.
  virtual absl::StatusOr<std::vector<std::string>> share(std::string own) = 0;
  /// Unless the group is whole: returns when all ranks have come. On their threads, too.
  virtual absl::Status meet() = 0;

protected:
  explicit RankGroup(std::vector<int> own) : own(std::move(own)) {}

private:
  std::vector<int> own;
};

/// What ranks are connected for.
struct ConnectionRequest {
  int ranks = 1;
  std::string target;                   ///< Of the program, as in messages.
  const DevicePlugin *plugin = nullptr; ///< That of the target; null for the CPU.
  uint64_t program = 0;                 ///< The checksum of what all ranks run.
  int device = -1;                      ///< For all ranks of this process; negative: none was chosen.
  /// Which rank this process is, if it is one; without, its environment says so.
  std::optional<LaunchEnvironment> process = std::nullopt;
  /// What the program that this is part of calls its processes, for transports that know who they are: an `MPI_Fint`.
  std::optional<int> processes = std::nullopt;
  /// A rank that does not come, or makes no progress, for as long ends the run on all ranks.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

/// What connects ranks, as it is listed.
struct TransportInfo {
  std::string name;        ///< As in `--comm`.
  std::string description; ///< In a few words; why it cannot be used, if so.
  bool isUsable = true;
  bool connectsProcesses = true; ///< Each process is one rank; else all ranks are in this one.
  std::string memory = {};       ///< The kind that it moves, as in `TransportPlugin`; empty: any.
  /// The name of each library that it needs, and its version or what is the matter with it.
  std::vector<std::pair<std::string, std::string>> libraries = {};
};

/// All that this process can find and users have a use for: those of the runtime, then plug-ins by name, looked for as
/// those for devices.
std::vector<TransportInfo> listTransports();

/// Whether a transport has each process be one rank. Errors: INVALID_ARGUMENT when there is none of that name, with
/// those that there are; UNAVAILABLE when its plug-in cannot be opened.
absl::StatusOr<bool> connectsProcesses(const std::string &transport);

/// Connects the ranks of this process with all others, by the transport of that name. Returns when all ranks have come.
/// Errors: as above; INVALID_ARGUMENT when it does not move the memory of the program, UNAVAILABLE, DEADLINE_EXCEEDED,
/// FAILED_PRECONDITION when ranks run different programs.
absl::StatusOr<std::unique_ptr<RankGroup>> connectRanks(const std::string &transport, const ConnectionRequest &request);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_RANKGROUP_H
