//===- MessageCommunicator.h - Ranks as processes --------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a process that is one rank of a program is connected with the others: a `Rendezvous` for what the host
// says, a `Transport` for exchanges.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGECOMMUNICATOR_H
#define DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGECOMMUNICATOR_H

#include "dovetail/runtime/Communicator.h"
#include "dovetail/runtime/LaunchEnvironment.h"
#include "dovetail/runtime/Transport.h"

#include <chrono>
#include <functional>

namespace dovetail::runtime {

class Rendezvous;
class RendezvousEntrance;

class ProcessCommunicator : public Communicator {
public:
  /// Carries bytes from all ranks to rank 0, which gets them by rank; the others get nothing. All ranks call it, on
  /// their threads.
  virtual absl::StatusOr<std::vector<std::string>> gather(std::string own) = 0;
  /// What each rank gives, by rank. All of them call it.
  virtual absl::StatusOr<std::vector<std::string>> share(std::string own) = 0;
  /// Returns when all ranks have come.
  virtual absl::Status meet() = 0;
};

/// The transport of a process, as it joins with the others.
struct TransportChoice {
  std::string name; ///< As in messages.
  /// On rank 0: a name for the group, with which all of them join it. Joining may wait for the others without end.
  std::function<absl::StatusOr<std::string>()> nameGroup;
  std::function<absl::StatusOr<std::unique_ptr<Transport>>(const std::string &name)> join;
  std::string device = {};               ///< `DeviceContext::uniqueName`, if there is a device.
  const char *sharingVariable = nullptr; ///< See `TransportPlugin`.
};

/// Returns when all ranks have come. A rank that does not come, or makes no progress, for `timeout` ends the run on all
/// ranks. `program` is the checksum of what they run. Rank 0 may have opened its entrance. Errors: UNAVAILABLE,
/// DEADLINE_EXCEEDED, FAILED_PRECONDITION when ranks run different programs.
absl::StatusOr<std::unique_ptr<ProcessCommunicator>> connectProcess(const LaunchEnvironment &environment,
                                                                    uint64_t program, std::chrono::milliseconds timeout,
                                                                    const TransportChoice &transport,
                                                                    std::unique_ptr<RendezvousEntrance> entrance);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGECOMMUNICATOR_H
