//===- DevicePlugins.cpp - Finds and opens device plug-ins ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/Device.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <map>
#include <mutex>

using namespace dovetail::runtime;

namespace {

/// The folder of the library or program that this function was linked into; empty if that cannot be found out.
std::filesystem::path ownFolder() {
  Dl_info info;
  std::error_code error;
  if (!::dladdr(reinterpret_cast<void *>(&openDevicePlugin), &info) || !info.dli_fname)
    return {};
  std::filesystem::path path = std::filesystem::canonical(info.dli_fname, error);
  // The name of the program itself is what the caller made of it.
  if (error)
    path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : path.parent_path();
}

std::vector<std::filesystem::path> searchedFolders() {
  std::vector<std::filesystem::path> folders;
  // Beside it, or where libraries are when it is a program.
  if (std::filesystem::path own = ownFolder(); !own.empty()) {
    folders.push_back(own);
    folders.push_back(own.parent_path() / "lib");
    if (folders[0] == folders[1])
      folders.pop_back();
  }
  if (const char *variable = std::getenv("DOVETAIL_PLUGINS"))
    for (absl::string_view folder : absl::StrSplit(variable, ':', absl::SkipEmpty()))
      folders.emplace_back(std::string(folder));
  return folders;
}

absl::StatusOr<const DevicePlugin *> open(const std::string &target) {
  std::string library = absl::StrCat("libdovetail_", target, ".so");
  std::vector<std::filesystem::path> folders = searchedFolders();
  for (const std::filesystem::path &folder : folders) {
    std::filesystem::path path = folder / library;
    std::error_code error;
    if (!std::filesystem::exists(path, error))
      continue;
    void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      return absl::UnavailableError(
          absl::StrCat("the plug-in for target '", target, "' cannot be loaded: ", ::dlerror()));
    auto *query = reinterpret_cast<const DevicePlugin *(*)()>(::dlsym(handle, devicePluginSymbol));
    if (!query)
      return absl::UnavailableError(absl::StrCat("'", path.string(), "' is not a plug-in of Dovetail"));
    const DevicePlugin *plugin = query();
    if (plugin->version != devicePluginVersion)
      return absl::UnavailableError(absl::StrCat("'", path.string(), "' has version ", plugin->version,
                                                 " of the plug-in interface, but this runtime needs version ",
                                                 devicePluginVersion, "; install the two from the same release"));
    return plugin;
  }
  return absl::UnavailableError(absl::StrCat(
      "the program is for target '", target, "', whose plug-in ", library, " is in none of these folders: ",
      absl::StrJoin(folders, ", ",
                    [](std::string *out, const std::filesystem::path &path) { absl::StrAppend(out, path.string()); }),
      "; put it there or name its folder in DOVETAIL_PLUGINS"));
}

} // namespace

absl::StatusOr<const DevicePlugin *> dovetail::runtime::openDevicePlugin(const std::string &target) {
  static std::mutex mutex;
  static std::map<std::string, const DevicePlugin *> plugins;
  std::lock_guard lock(mutex);
  if (auto it = plugins.find(target); it != plugins.end())
    return it->second;
  absl::StatusOr<const DevicePlugin *> plugin = open(target);
  if (plugin.ok())
    plugins[target] = *plugin;
  return plugin;
}
