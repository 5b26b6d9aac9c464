//===- TransportRegistry.cpp - Transports by name -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TransportRegistry.h"

#include "../Plugin/PluginLibrary.h"
#include "message/ProcessGroup.h"

#include "dovetail/Text/Suggestion.h"
#include "dovetail/runtime/Device.h"

#include "absl/strings/str_join.h"

using namespace dovetail::runtime;

namespace {

constexpr const char *pluginPrefix = "transport_";

/// Those that are part of the runtime.
std::vector<TransportEntry> ownTransports() { return {localTransport()}; }

TransportEntry entryOf(const std::string &name, const TransportPlugin &plugin) {
  TransportInfo info{name, plugin.description};
  info.memory = plugin.memory;
  if (plugin.listLibraries)
    info.libraries = plugin.listLibraries();
  return {std::move(info),
          [name, &plugin](const ConnectionRequest &request) { return connectProcesses(name, plugin, request); }};
}

absl::StatusOr<const TransportPlugin *> open(const std::string &name) {
  return openPlugin<TransportPlugin>(pluginPrefix + name, transportPluginSymbol, transportPluginVersion);
}

std::string namesOf(const std::vector<TransportInfo> &transports) {
  return absl::StrJoin(transports, ", ", [](std::string *out, const TransportInfo &info) { *out += info.name; });
}

/// The names of all transports that are there.
std::vector<std::string> knownNames() {
  std::vector<std::string> names;
  for (const TransportInfo &info : listTransports())
    names.push_back(info.name);
  return names;
}

absl::StatusOr<TransportEntry> find(const std::string &name) {
  for (TransportEntry &entry : ownTransports())
    if (entry.info.name == name)
      return std::move(entry);
  bool isName = !name.empty() && name.find('/') == std::string::npos;
  absl::StatusOr<const TransportPlugin *> plugin = isName ? open(name) : absl::NotFoundError("the text is not a name");
  // A slip of the pen needs no advice about plug-ins.
  if (absl::IsNotFound(plugin.status()))
    if (std::string meant = dovetail::text::suggest(name, knownNames()); !meant.empty())
      return absl::InvalidArgumentError(absl::StrCat("there is no transport '", name, "' to connect ranks with", meant,
                                                     " `dovetail devices` lists the transports"));
  if (absl::IsNotFound(plugin.status()))
    return absl::InvalidArgumentError(absl::StrCat("there is no transport '", name, "' to connect ranks with, but ",
                                                   namesOf(listTransports()), ": ", plugin.status().message(),
                                                   isName ? absl::StrCat("; a build has mpi and nccl where MPI, and "
                                                                         "the header of NCCL, were installed")
                                                          : ""));
  if (!plugin.ok())
    return plugin.status();
  return entryOf(name, **plugin);
}

} // namespace

std::vector<TransportInfo> dovetail::runtime::listTransports() {
  std::vector<TransportInfo> transports;
  for (TransportEntry &entry : ownTransports())
    transports.push_back(std::move(entry.info));
  for (const std::string &name : listPlugins(pluginPrefix)) {
    absl::StatusOr<const TransportPlugin *> plugin = open(name);
    if (plugin.ok() && !(*plugin)->isPublic)
      continue;
    if (plugin.ok()) {
      transports.push_back(entryOf(name, **plugin).info);
    } else {
      transports.push_back({name, std::string(plugin.status().message())});
      transports.back().isUsable = false;
    }
  }
  return transports;
}

absl::StatusOr<bool> dovetail::runtime::connectsProcesses(const std::string &transport) {
  absl::StatusOr<TransportEntry> entry = find(transport);
  if (!entry.ok())
    return entry.status();
  return entry->info.connectsProcesses;
}

absl::StatusOr<std::unique_ptr<RankGroup>> dovetail::runtime::connectRanks(const std::string &transport,
                                                                           const ConnectionRequest &request) {
  absl::StatusOr<TransportEntry> entry = find(transport);
  if (!entry.ok())
    return entry.status();
  const std::string &moved = entry->info.memory, held = request.plugin ? request.plugin->memory : hostMemory;
  if (moved.empty() || moved == held)
    return entry->connect(request);
  std::vector<TransportInfo> fitting = listTransports();
  std::erase_if(fitting, [&](const TransportInfo &info) {
    return !info.isUsable || (!info.memory.empty() && info.memory != held);
  });
  return absl::InvalidArgumentError(
      absl::StrCat("transport '", transport, "' moves memory of kind '", moved, "', but programs for target '",
                   request.target, "' keep theirs in memory of kind '", held, "'; connect the ranks with ",
                   namesOf(fitting), ", or compile the model for another target"));
}
