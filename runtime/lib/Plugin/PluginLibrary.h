//===- PluginLibrary.h - Libraries that extend the runtime ---- -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how plug-ins for devices and for transports are found and opened.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PLUGIN_PLUGINLIBRARY_H
#define DOVETAIL_RUNTIME_PLUGIN_PLUGINLIBRARY_H

#include "dovetail/runtime/PluginBuild.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail::runtime {

/// The address of the function `symbol` of `libdovetail_<name>.so`. The library stays open until the process ends. It
/// is looked for beside the library or program that contains this function, where libraries are if that is a program,
/// and in the folders of the variable DOVETAIL_PLUGINS. Errors: NOT_FOUND, naming the folders; UNAVAILABLE.
absl::StatusOr<void *> openPluginLibrary(const std::string &name, const char *symbol);

/// What that function, a `const Plugin *()`, returns, which begins with its version, and the build that it is of.
/// Errors: those of `openPluginLibrary`, and FAILED_PRECONDITION for another version or build.
template <typename Plugin>
absl::StatusOr<const Plugin *> openPlugin(const std::string &name, const char *symbol, uint32_t version) {
  absl::StatusOr<void *> opened = openPluginLibrary(name, symbol);
  if (!opened.ok())
    return opened.status();
  const Plugin *plugin = reinterpret_cast<const Plugin *(*)()>(*opened)();
  if (plugin->version != version)
    return absl::FailedPreconditionError(absl::StrCat(
        "the plug-in libdovetail_", name, ".so has version ", plugin->version,
        " of its interface, but this runtime needs version ", version, "; install the two from the same release"));
  if (std::string_view(plugin->build) != pluginBuild)
    return absl::FailedPreconditionError(absl::StrCat("the plug-in libdovetail_", name, ".so is of another build (",
                                                      plugin->build, ") than this runtime (", pluginBuild,
                                                      "); install the two from the same release, or build both again"));
  return plugin;
}

/// The names of all libraries there are that begin with `prefix`, without it, sorted.
std::vector<std::string> listPlugins(const std::string &prefix);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PLUGIN_PLUGINLIBRARY_H
