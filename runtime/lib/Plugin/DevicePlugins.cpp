//===- DevicePlugins.cpp - Finds and opens device plug-ins ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PluginLibrary.h"

#include "dovetail/runtime/Device.h"

#include <map>
#include <mutex>

using namespace dovetail::runtime;

absl::StatusOr<const DevicePlugin *> dovetail::runtime::openDevicePlugin(const std::string &target) {
  static std::mutex mutex;
  static std::map<std::string, const DevicePlugin *> plugins;
  std::lock_guard lock(mutex);
  if (auto it = plugins.find(target); it != plugins.end())
    return it->second;
  auto plugin = openPlugin<DevicePlugin>(target, devicePluginSymbol, devicePluginVersion);
  if (absl::IsNotFound(plugin.status()))
    return absl::UnavailableError(
        absl::StrCat("this installation does not support target '", target, "' here: ", plugin.status().message()));
  if (plugin.ok())
    plugins[target] = *plugin;
  return plugin;
}
