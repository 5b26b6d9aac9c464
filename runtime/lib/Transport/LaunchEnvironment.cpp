//===- LaunchEnvironment.cpp - Ranks as processes ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/LaunchEnvironment.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <cstdlib>

using namespace dovetail::runtime;

namespace {

using LookUp = std::function<const char *(const char *)>;

/// The variables of a launcher. `address` and `port` may be null.
struct Launcher {
  const char *name, *rank, *size, *localRank, *localSize, *address, *port;
  int portOffset;                   ///< The launcher uses its port itself.
  const char *job, *step = nullptr; ///< What it calls the run; may be null.
};

constexpr Launcher launchers[] = {
    {"DOVETAIL_RANK", "DOVETAIL_RANK", "DOVETAIL_WORLD_SIZE", "DOVETAIL_LOCAL_RANK", nullptr, nullptr, nullptr, 0,
     nullptr},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", 1,
     "TORCHELASTIC_RUN_ID"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, nullptr, 0, "PMIX_NAMESPACE"},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, nullptr, 0, nullptr},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, nullptr, nullptr, 0, "SLURM_JOB_ID",
     "SLURM_STEP_ID"},
};

constexpr int defaultPort = 29617;

absl::StatusOr<int> number(const LookUp &lookUp, const char *variable, int least, int most) {
  const char *text = lookUp(variable);
  int value = 0;
  if (!text)
    return absl::InvalidArgumentError(absl::StrCat("the variable ", variable, " is not set"));
  if (!absl::SimpleAtoi(text, &value) || value < least || value > most)
    return absl::InvalidArgumentError(
        absl::StrCat("the variable ", variable, " is '", text, "', not a number from ", least, " to ", most));
  return value;
}

/// The first host of Slurm's list of them, such as `node[07-09,12],login1`.
std::string firstHost(const std::string &list) {
  size_t end = list.find_first_of(",[");
  std::string host = list.substr(0, end);
  if (end == std::string::npos || list[end] == ',')
    return host;
  size_t stop = list.find_first_of(",-]", end + 1);
  if (stop == std::string::npos)
    return host;
  host += list.substr(end + 1, stop - end - 1);
  // What follows the brackets belongs to each name.
  size_t close = list.find(']', end);
  if (close != std::string::npos)
    host += list.substr(close + 1, list.find_first_of(",[", close + 1) - close - 1);
  return host;
}

} // namespace

absl::StatusOr<LaunchEnvironment> dovetail::runtime::readLaunchEnvironment(const LookUp &lookUp) {
  const Launcher *launcher = nullptr;
  for (const Launcher &candidate : launchers)
    if (!launcher && lookUp(candidate.rank))
      launcher = &candidate;
  if (!launcher)
    return absl::InvalidArgumentError(
        "the rank of this process is not known; start it with torchrun, mpirun or srun, or give --rank, --world and "
        "--address, or set DOVETAIL_RANK, DOVETAIL_WORLD_SIZE and DOVETAIL_ADDRESS");
  LaunchEnvironment result;
  result.launcher = launcher->name;
  constexpr int mostRanks = 1 << 16;
  absl::StatusOr<int> size = number(lookUp, launcher->size, 1, mostRanks);
  if (!size.ok())
    return size.status();
  absl::StatusOr<int> rank = number(lookUp, launcher->rank, 0, *size - 1);
  if (!rank.ok())
    return rank.status();
  result.rank = *rank;
  result.size = *size;
  result.localRank = *rank;
  if (lookUp(launcher->localRank)) {
    absl::StatusOr<int> localRank = number(lookUp, launcher->localRank, 0, mostRanks);
    if (!localRank.ok())
      return localRank.status();
    result.localRank = *localRank;
  }
  result.localSize = result.size;
  if (launcher->localSize && lookUp(launcher->localSize)) {
    absl::StatusOr<int> localSize = number(lookUp, launcher->localSize, 1, result.size);
    if (!localSize.ok())
      return localSize.status();
    result.localSize = *localSize;
  }

  // The parts of a heterogeneous job of Slurm have numbers of their own.
  bool isHeterogeneous = lookUp("SLURM_HET_SIZE") != nullptr;
  for (const char *variable : {launcher->job, launcher->step})
    if (const char *value = variable && !isHeterogeneous ? lookUp(variable) : nullptr)
      absl::StrAppend(&result.job, result.job.empty() ? "" : ".", value);

  result.port = defaultPort;
  if (launcher->port && lookUp(launcher->port)) {
    absl::StatusOr<int> port = number(lookUp, launcher->port, 1, 65535 - launcher->portOffset);
    if (!port.ok())
      return port.status();
    result.port = *port + launcher->portOffset;
  }
  if (lookUp("DOVETAIL_PORT")) {
    absl::StatusOr<int> port = number(lookUp, "DOVETAIL_PORT", 1, 65535);
    if (!port.ok())
      return port.status();
    result.port = *port;
  }

  if (const char *token = lookUp("DOVETAIL_TOKEN")) {
    constexpr size_t mostBytes = 1024;
    result.token = token;
    if (result.token.size() > mostBytes)
      return absl::InvalidArgumentError(
          absl::StrCat("the variable DOVETAIL_TOKEN has more than ", mostBytes, " characters"));
  }
  const char *localSize = launcher->localSize ? lookUp(launcher->localSize) : nullptr;
  if (const char *address = lookUp("DOVETAIL_ADDRESS"); address && *address) {
    result.address = address;
  } else if (const char *master = launcher->address ? lookUp(launcher->address) : nullptr; master && *master) {
    result.address = master;
  } else if (const char *nodes = lookUp("SLURM_STEP_NODELIST"); nodes && *nodes) {
    result.address = firstHost(nodes);
  } else if (result.size == 1 || (localSize && std::to_string(result.size) == localSize)) {
    result.address = "127.0.0.1";
  } else {
    return absl::InvalidArgumentError(absl::StrCat("the variable DOVETAIL_ADDRESS is not set, and ", result.launcher,
                                                   " does not say on which machine rank 0 is; set it to that "
                                                   "machine's name on all ranks"));
  }
  return result;
}

absl::StatusOr<LaunchEnvironment> dovetail::runtime::readLaunchEnvironment() {
  return readLaunchEnvironment([](const char *name) -> const char * { return std::getenv(name); });
}
