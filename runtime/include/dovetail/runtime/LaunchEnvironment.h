//===- LaunchEnvironment.h - Ranks as processes -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what a process finds out about itself when torchrun, srun or mpirun has started it as one rank of many.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LAUNCHENVIRONMENT_H
#define DOVETAIL_RUNTIME_LAUNCHENVIRONMENT_H

#include "absl/status/statusor.h"

#include <functional>
#include <string>

namespace dovetail::runtime {

/// One process among those that run a program.
struct LaunchEnvironment {
  std::string launcher; ///< As in messages.
  int rank = 0, size = 1;
  int localRank = 0;      ///< Among the processes of this machine: the number of its device. The rank, if nobody says.
  std::string address;    ///< Of rank 0: a host's name or number. Several, with commas in between, are tried in turn.
  int port = 0;           ///< There.
  std::string job = {};   ///< What the launcher calls the run, so that two on one machine do not mix; may be empty.
  int localSize = 1;      ///< Processes of this machine; all of them, if nobody says.
  std::string token = {}; ///< What all processes of the run know, and nobody else should; may be empty.
};

/// Finds out from the environment, in this order: DOVETAIL_RANK, DOVETAIL_WORLD_SIZE, DOVETAIL_LOCAL_RANK; torchrun's
/// RANK, WORLD_SIZE, ...; mpirun's OMPI_COMM_WORLD_RANK, ... or PMI_RANK, ...; srun's SLURM_PROCID, ....
/// DOVETAIL_ADDRESS and DOVETAIL_PORT hold where all of them find rank 0, if the launcher does not say. The job is that
/// of TORCHELASTIC_RUN_ID, PMIX_NAMESPACE, or SLURM_JOB_ID and SLURM_STEP_ID. `lookUp`
/// returns the value of a variable, or null. Errors: INVALID_ARGUMENT, naming the variable that is missing or wrong.
absl::StatusOr<LaunchEnvironment> readLaunchEnvironment(const std::function<const char *(const char *)> &lookUp);
/// Of this process.
absl::StatusOr<LaunchEnvironment> readLaunchEnvironment();

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_LAUNCHENVIRONMENT_H
