//===- MpiPlugin.cpp - The transport mpi ---------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the plug-in for MPI, which needs none itself: it has the plug-in for the MPI of the process do everything.
//
//===----------------------------------------------------------------------===//

#include "MpiChoice.h"

#include "dovetail/runtime/PluginBuild.h"

#include "absl/strings/str_cat.h"

using namespace dovetail::runtime;
using namespace dovetail::runtime::mpi;

namespace {

#ifndef DOVETAIL_MPI_PLUGINS
/// The beginning of names of the plug-ins for an MPI. Tests have others.
#define DOVETAIL_MPI_PLUGINS "mpi"
#endif
#ifndef DOVETAIL_MPI_IS_PUBLIC
/// Tests have some that are not.
#define DOVETAIL_MPI_IS_PUBLIC true
#endif

/// The same for the whole life of the process.
const absl::StatusOr<Choice> &chosen() {
  static const auto *choice = new absl::StatusOr<Choice>(choose(DOVETAIL_MPI_PLUGINS));
  return *choice;
}

std::vector<std::pair<std::string, std::string>> listLibraries() {
  if (!chosen().ok())
    return {{"MPI", std::string(chosen().status().message())}};
  std::vector<std::pair<std::string, std::string>> libraries = chosen()->plugin->listLibraries();
  libraries.emplace_back("file of MPI", chosen()->file);
  return libraries;
}

absl::StatusOr<std::unique_ptr<ProcessWorld>> enterWorld(const WorldRequest &request) {
  if (!chosen().ok())
    return chosen().status();
  absl::StatusOr<std::unique_ptr<ProcessWorld>> world = chosen()->plugin->enterWorld(request);
  if (world.ok() || chosen()->remark.empty())
    return world;
  return absl::Status(world.status().code(), absl::StrCat(world.status().message(), "; ", chosen()->remark));
}

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
                                         DOVETAIL_MPI_IS_PUBLIC};
  return &plugin;
}
