//===- ProcessGroup.cpp - This process as a rank --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProcessGroup.h"

#include "../rendezvous/Rendezvous.h"
#include "MessageCommunicator.h"

#include "dovetail/runtime/Device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <random>

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
  absl::StatusOr<std::vector<std::string>> share(std::string own) override { return connected->share(std::move(own)); }
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

/// Who this process is, as the environment or the caller says.
absl::StatusOr<LaunchEnvironment> findProcess(const ConnectionRequest &request) {
  absl::StatusOr<LaunchEnvironment> environment =
      request.process ? absl::StatusOr<LaunchEnvironment>(*request.process) : readLaunchEnvironment();
  if (environment.ok() && environment->size != request.ranks)
    return absl::InvalidArgumentError(absl::StrCat(
        "the program is for ", request.ranks, request.ranks == 1 ? " rank, but " : " ranks, but ",
        environment->launcher, " says that there are ", environment->size, "; start one process for each rank"));
  return environment;
}

/// 128 bits that nobody guesses.
std::string newToken() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i)
    absl::StrAppend(&token, absl::Hex(random(), absl::kZeroPad8));
  return token;
}

/// Who this process is, as the transport says. Rank 0 opens `entrance`, and tells the others where it is.
absl::StatusOr<LaunchEnvironment> findProcess(const std::string &transport, ProcessWorld &world,
                                              std::unique_ptr<RendezvousEntrance> &entrance) {
  LaunchEnvironment environment;
  environment.launcher = transport;
  environment.rank = world.rank();
  environment.size = world.size();
  environment.localRank = world.numberAmongSharers();
  environment.localSize = world.sharers();
  if (world.size() == 1)
    return environment;
  std::string place;
  absl::Status problem;
  if (world.rank() == 0) {
    absl::StatusOr<std::unique_ptr<RendezvousEntrance>> opened = RendezvousEntrance::open(0);
    problem = opened.status();
    if (opened.ok()) {
      entrance = *std::move(opened);
      place = absl::StrCat(newToken(), " ", entrance->port(), " ", RendezvousEntrance::ownAddresses());
    }
  }
  absl::StatusOr<std::string> told = world.broadcast(place);
  if (!problem.ok() || !told.ok())
    return problem.ok() ? told.status() : problem;
  std::vector<std::string> words = absl::StrSplit(*told, absl::MaxSplits(' ', 2));
  if (words.size() != 3 || !absl::SimpleAtoi(words[1], &environment.port))
    return absl::UnavailableError("rank 0 could not open a port for the others");
  environment.token = words[0];
  environment.address = words[2];
  return environment;
}

} // namespace

absl::StatusOr<std::unique_ptr<RankGroup>> dovetail::runtime::connectProcesses(const std::string &transport,
                                                                               const TransportPlugin &plugin,
                                                                               const ConnectionRequest &request) {
  std::shared_ptr<ProcessWorld> world;
  std::unique_ptr<RendezvousEntrance> entrance;
  if (request.process && plugin.enterWorld)
    return absl::InvalidArgumentError(
        absl::StrCat("the rank of this process is known to ", transport, "; leave out --rank, --world and --address"));
  if (request.processes && !plugin.enterWorld)
    return absl::InvalidArgumentError(
        absl::StrCat("a communicator of MPI was given, but ranks are connected with ", transport, ", not mpi"));
  if (plugin.enterWorld) {
    auto entered = plugin.enterWorld({request.ranks, request.processes, request.timeout});
    if (!entered.ok())
      return entered.status();
    world = *std::move(entered);
  }
  absl::StatusOr<LaunchEnvironment> environment =
      world ? findProcess(transport, *world, entrance) : findProcess(request);
  if (!environment.ok())
    return environment.status();
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
  TransportChoice choice{transport, plugin.nameGroup, nullptr};
  choice.device = member.device ? member.device->uniqueName() : "";
  choice.sharingVariable = plugin.sharingVariable;
  if (world) {
    choice.nameGroup = [] { return std::string(); };
    choice.join = [world](const std::string &) { return world->join(); };
  } else {
    choice.join = [join = plugin.joinGroup, member](const std::string &name) { return join(name, member); };
  }
  auto communicator = connectProcess(*environment, request.program, request.timeout, choice, std::move(entrance));
  if (!communicator.ok())
    return communicator.status();
  return std::make_unique<ProcessGroup>(*std::move(communicator), ordinal, environment->localSize,
                                        environment->localRank);
}
