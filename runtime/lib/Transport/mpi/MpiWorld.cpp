//===- MpiWorld.cpp - Processes that MPI knows ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements who the processes of a run are, as a communicator of MPI says, and the plug-in for one interface of MPI.
// The transport opens that plug-in (MpiChoice.h).
//
//===----------------------------------------------------------------------===//

#include "MpiTransport.h"

#include "dovetail/runtime/PluginBuild.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <fstream>
#include <sched.h>

using namespace dovetail::runtime;
using namespace dovetail::runtime::mpi;

namespace {

/// FNV-1a: the same on all machines.
uint64_t digest(const void *data, size_t bytes, uint64_t seed = 0xcbf29ce484222325) {
  for (size_t i = 0; i < bytes; ++i)
    seed = (seed ^ static_cast<const unsigned char *>(data)[i]) * 0x100000001b3;
  return seed;
}

/// Stands for this machine and the processors of it that this process may use.
uint64_t placeOfProcess() {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  // Containers may have one name on several machines.
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  uint64_t place = digest(boot.data(), boot.size(), digest(name, static_cast<size_t>(length)));
  constexpr int mostProcessors = 1 << 14;
  cpu_set_t *set = CPU_ALLOC(mostProcessors);
  if (set && ::sched_getaffinity(0, CPU_ALLOC_SIZE(mostProcessors), set) == 0)
    place = digest(set, CPU_ALLOC_SIZE(mostProcessors), place);
  CPU_FREE(set);
  return place;
}

class MpiWorld : public ProcessWorld {
public:
  MpiWorld(std::shared_ptr<Group> group, Clock::time_point deadline) : group(std::move(group)), deadline(deadline) {}

  int rank() const override { return group->rank; }
  int size() const override { return group->size; }
  int sharers() const override { return numSharers; }
  int numberAmongSharers() const override { return number; }

  absl::Status findSharers();
  absl::StatusOr<std::string> broadcast(std::string bytes) override;
  absl::StatusOr<std::unique_ptr<Transport>> join() override { return makeTransport(group); }

private:
  std::shared_ptr<Group> group;
  Clock::time_point deadline;
  int numSharers = 1, number = 0;
};

/// Waits for what `start`, a function of MPI, begins, which reads and writes `memory`. Where it is given up, that
/// stays: collectives cannot be called back.
template <typename Start>
absl::Status carryOut(const std::atomic<bool> &isOver, Clock::time_point deadline, const char *function,
                      std::shared_ptr<void> memory, Start start) {
  MPI_Request request = MPI_REQUEST_NULL;
  {
    std::lock_guard lock(callMutex());
    if (absl::Status status = check(start(&request), function); !status.ok())
      return status;
  }
  absl::Status status = waitUntil(
      isOver,
      [&](bool &isDone) {
        int flag = 0;
        absl::Status status = check(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), function);
        isDone = flag;
        return status;
      },
      deadline);
  if (!status.ok())
    keepForEver(std::move(memory));
  return status;
}

/// The same for a collective of a group, which then is given up.
template <typename Start>
absl::Status carryOut(Group &group, Clock::time_point deadline, const char *function, std::shared_ptr<void> memory,
                      Start start) {
  absl::Status status = carryOut(group.isOver, deadline, function, std::move(memory), start);
  if (!status.ok())
    group.isHeld = true;
  return status;
}

absl::Status MpiWorld::findSharers() {
  uint64_t own = 0;
  {
    std::lock_guard lock(callMutex());
    own = placeOfProcess();
  }
  // This process's own behind those of all.
  auto places = std::make_shared<std::vector<uint64_t>>(size() + 1, own);
  uint64_t *all = places->data(), *end = all + size();
  absl::Status status = carryOut(*group, deadline, "MPI_Iallgather", places, [&](MPI_Request *request) {
    return MPI_Iallgather(end, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, group->handle, request);
  });
  if (!status.ok())
    return status;
  numSharers = static_cast<int>(std::count(all, end, own));
  number = static_cast<int>(std::count(all, all + rank(), own));
  return absl::OkStatus();
}

absl::StatusOr<std::string> MpiWorld::broadcast(std::string bytes) {
  auto count = std::make_shared<uint64_t>(bytes.size());
  absl::Status status = carryOut(*group, deadline, "MPI_Ibcast", count, [&](MPI_Request *request) {
    return MPI_Ibcast(count.get(), 1, MPI_UINT64_T, 0, group->handle, request);
  });
  if (!status.ok())
    return status;
  auto told = std::make_shared<std::string>(std::move(bytes));
  told->resize(*count);
  status = carryOut(*group, deadline, "MPI_Ibcast", told, [&](MPI_Request *request) {
    return MPI_Ibcast(told->data(), static_cast<int>(*count), MPI_BYTE, 0, group->handle, request);
  });
  if (!status.ok())
    return status;
  return *told;
}

absl::Status checkSize(int size, int ranks, bool isGiven) {
  int started = 0;
  const char *variable = size == 1 && !isGiven ? findLauncher(started) : nullptr;
  if (variable)
    return otherLauncher(variable, started);
  if (size == ranks)
    return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the program is for ", ranks, ranks == 1 ? " rank, but " : " ranks, but ",
                                             isGiven ? "the communicator has " : "MPI has started ", size,
                                             size == 1 ? " process" : " processes",
                                             isGiven ? "; give one with a process for each rank"
                                                     : absl::StrCat("; start one for each rank, as with mpirun -n ",
                                                                    ranks, " or srun --mpi=pmix -n ", ranks)));
}

absl::StatusOr<std::unique_ptr<ProcessWorld>> enterWorld(const WorldRequest &request) {
  Clock::time_point deadline = Clock::now() + request.timeout;
  MPI_Comm given = MPI_COMM_WORLD;
  if (request.communicator) {
    int hasBegun = 0;
    std::lock_guard lock(callMutex());
    if (MPI_Initialized(&hasBegun) != MPI_SUCCESS || !hasBegun)
      return absl::UnavailableError(
          "a communicator was given, but MPI is not initialised in this process; call MPI_Init_thread first");
    given = MPI_Comm_f2c(*request.communicator);
    if (given == MPI_COMM_NULL)
      return absl::UnavailableError(
          "the communicator that was given is MPI_COMM_NULL or not valid; give one that contains this process");
  }
  if (absl::Status status = begin(request.timeout); !status.ok())
    return status;
  int size = 0;
  {
    std::lock_guard lock(callMutex());
    if (absl::Status status = check(MPI_Comm_size(given, &size), "MPI_Comm_size"); !status.ok())
      return status;
  }
  if (absl::Status status = checkSize(size, request.ranks, request.communicator.has_value()); !status.ok())
    return status;
  auto own = std::make_shared<MPI_Comm>(MPI_COMM_NULL);
  std::atomic<bool> isOver = false;
  absl::Status status = carryOut(isOver, deadline, "MPI_Comm_idup", own,
                                 [&](MPI_Request *request) { return MPI_Comm_idup(given, own.get(), request); });
  if (!status.ok())
    return status;
  std::shared_ptr<Group> group;
  {
    std::lock_guard lock(callMutex());
    group = std::make_shared<Group>(*own);
  }
  auto world = std::make_unique<MpiWorld>(std::move(group), deadline);
  if (absl::Status found = world->findSharers(); !found.ok())
    return found;
  return world;
}

std::vector<std::pair<std::string, std::string>> listLibraries() { return {{"MPI", libraryVersion()}}; }

} // namespace

extern "C" __attribute__((visibility("default"))) const TransportPlugin *dovetailTransportPlugin() {
  static const TransportPlugin plugin = {transportPluginVersion,
                                         pluginBuild,
                                         hostMemory,
                                         "each process that mpirun or srun starts is a rank",
                                         nullptr,
                                         nullptr,
                                         listLibraries,
                                         enterWorld,
                                         /*isPublic=*/false};
  return &plugin;
}
