//===- ProcessGroup.cpp - This process as a rank --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProcessGroup.h"

#include "MessageCommunicator.h"

#include "dovetail/runtime/Device.h"

#include "absl/strings/str_cat.h"

using namespace dovetail::runtime;

namespace {

class ProcessGroup : public RankGroup {
public:
  ProcessGroup(std::unique_ptr<ProcessCommunicator> communicator, int ordinal, int processes, int number)
      : RankGroup({communicator->rank()}), connected(communicator.get()), owner(std::move(communicator)),
        ordinal(ordinal), processes(processes), number(number) {}

  bool isWhole() const override { return false; }
  int device() const override { return ordinal; }
  int processesHere() const override { return processes; }
  int numberHere() const override { return number; }
  std::unique_ptr<Communicator> communicator(int) override { return std::move(owner); }
  absl::Status watch() override { return connected->state(); }
  absl::StatusOr<std::vector<std::string>> gather(std::string own) override {
    return connected->gather(std::move(own));
  }
  absl::Status meet() override { return connected->meet(); }

private:
  ProcessCommunicator *connected;
  std::unique_ptr<ProcessCommunicator> owner; ///< Until the rank has it.
  int ordinal, processes, number;
};

/// The device for this process: as chosen, else processes take turns among those of their machine.
absl::StatusOr<int> chooseDevice(const ConnectionRequest &request, const LaunchEnvironment &environment) {
  absl::StatusOr<int> count = request.plugin->countDevices();
  if (!count.ok())
    return count.status();
  int ordinal = request.device < 0 && *count > 0 ? environment.localRank % *count : request.device;
  if (*count == 0)
    return absl::UnavailableError(absl::StrCat("this machine has no device for target '", request.target, "'"));
  if (ordinal >= *count)
    return absl::InvalidArgumentError(absl::StrCat("there is no device ", ordinal, " for target '", request.target,
                                                   "', but ", *count, " in all, counted from 0"));
  return ordinal;
}

} // namespace

absl::StatusOr<std::unique_ptr<RankGroup>> dovetail::runtime::connectProcesses(const std::string &transport,
                                                                               const TransportPlugin &plugin,
                                                                               const ConnectionRequest &request) {
  absl::StatusOr<LaunchEnvironment> environment =
      request.process ? absl::StatusOr<LaunchEnvironment>(*request.process) : readLaunchEnvironment();
  if (!environment.ok())
    return environment.status();
  if (environment->size != request.ranks)
    return absl::InvalidArgumentError(absl::StrCat("the program is for ", request.ranks, " ranks, but ",
                                                   environment->launcher, " says that there are ", environment->size,
                                                   "; start one process for each rank"));
  int ordinal = request.device;
  GroupMember member{environment->rank, environment->size, nullptr};
  if (request.plugin) {
    absl::StatusOr<int> chosen = chooseDevice(request, *environment);
    if (!chosen.ok())
      return chosen.status();
    ordinal = *chosen;
    absl::StatusOr<std::shared_ptr<DeviceContext>> context = request.plugin->openContext(ordinal);
    if (!context.ok())
      return context.status();
    member.device = *std::move(context);
  }
  auto communicator =
      connectProcess(*environment, request.program, request.timeout, {transport, plugin, std::move(member)});
  if (!communicator.ok())
    return communicator.status();
  return std::make_unique<ProcessGroup>(*std::move(communicator), ordinal, environment->localSize,
                                        environment->localRank);
}
