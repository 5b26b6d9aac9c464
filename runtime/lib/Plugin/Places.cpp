//===- Places.cpp - Where Dovetail is installed ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/Places.h"

#include <algorithm>
#include <dlfcn.h>
#include <link.h>

using namespace dovetail::runtime;
namespace fs = std::filesystem;

fs::path dovetail::runtime::ownFolder() {
  Dl_info info;
  link_map *map = nullptr;
  std::error_code error;
  if (!::dladdr1(reinterpret_cast<void *>(&ownFolder), &info, reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP) || !map)
    return {};
  // The program itself has no name there, and dli_fname is what its caller called it.
  bool isProgram = !map->l_name || !*map->l_name;
  fs::path path = isProgram ? fs::read_symlink("/proc/self/exe", error) : fs::canonical(map->l_name, error);
  return error ? fs::path() : path.parent_path();
}

fs::path dovetail::runtime::installedFolder(const std::string &name) {
  fs::path own = ownFolder();
  return own.empty() || own.filename() == name ? own : own.parent_path() / name;
}

std::string dovetail::runtime::libraryFile(void *library, const std::string &asked) {
  link_map *map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name)
    return map->l_name;
  return asked;
}

/// The folder of Python packages that this installation is in. A wheel's libraries are in site-packages/dovetail/lib.
static fs::path packagesFolder() { return ownFolder().parent_path().parent_path(); }

fs::path dovetail::runtime::environmentFolder(const std::string &name) {
  fs::path packages = packagesFolder();
  if (packages.filename() != "site-packages" && packages.filename() != "dist-packages")
    return {};
  // It is lib/python3.x/site-packages.
  return packages.parent_path().parent_path().parent_path() / name;
}

std::vector<fs::path> dovetail::runtime::nvidiaPackages() {
  fs::path packages = packagesFolder();
  return packages.empty() ? std::vector<fs::path>() : nvidiaPackages(packages);
}

std::vector<fs::path> dovetail::runtime::nvidiaPackages(const fs::path &folder) {
  std::vector<fs::path> packages;
  std::error_code error;
  for (fs::directory_iterator it(folder / "nvidia", error), end; !error && it != end; it.increment(error))
    packages.push_back(it->path());
  std::sort(packages.begin(), packages.end());
  return packages;
}
