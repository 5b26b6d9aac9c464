//===- PluginLibrary.cpp - Libraries that extend the runtime --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PluginLibrary.h"

#include "dovetail/runtime/Places.h"

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <set>

using namespace dovetail::runtime;

namespace {

constexpr const char *filePrefix = "libdovetail_", *fileSuffix = ".so";

std::vector<std::filesystem::path> searchedFolders() {
  std::vector<std::filesystem::path> folders;
  // Beside it, or where libraries are when it is a program.
  if (std::filesystem::path own = ownFolder(); !own.empty()) {
    folders.push_back(own);
    if (std::filesystem::path libraries = installedFolder("lib"); libraries != own)
      folders.push_back(libraries);
  }
  if (const char *variable = std::getenv("DOVETAIL_PLUGINS"))
    for (absl::string_view folder : absl::StrSplit(variable, ':', absl::SkipEmpty()))
      folders.emplace_back(std::string(folder));
  return folders;
}

} // namespace

absl::StatusOr<void *> dovetail::runtime::openPluginLibrary(const std::string &name, const char *symbol) {
  std::string library = absl::StrCat(filePrefix, name, fileSuffix);
  std::vector<std::filesystem::path> folders = searchedFolders();
  for (const std::filesystem::path &folder : folders) {
    std::filesystem::path path = folder / library;
    std::error_code error;
    if (!std::filesystem::exists(path, error))
      continue;
    void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      return absl::UnavailableError(absl::StrCat("the plug-in ", library, " cannot be loaded: ", ::dlerror()));
    void *function = ::dlsym(handle, symbol);
    if (!function)
      return absl::UnavailableError(
          absl::StrCat("'", path.string(), "' is not such a plug-in of Dovetail: it lacks the function ", symbol));
    return function;
  }
  auto append = [](std::string *out, const std::filesystem::path &path) { absl::StrAppend(out, path.string()); };
  return absl::NotFoundError(absl::StrCat("the plug-in ", library,
                                          " is in none of these folders: ", absl::StrJoin(folders, ", ", append),
                                          "; put it there or name its folder in DOVETAIL_PLUGINS"));
}

std::vector<std::string> dovetail::runtime::listPlugins(const std::string &prefix) {
  std::string begin = filePrefix + prefix;
  std::set<std::string> names;
  for (const std::filesystem::path &folder : searchedFolders()) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      std::string file = entry->path().filename().string();
      if (absl::StartsWith(file, begin) && absl::EndsWith(file, fileSuffix) &&
          file.size() > begin.size() + std::string_view(fileSuffix).size())
        names.insert(file.substr(begin.size(), file.size() - begin.size() - std::string_view(fileSuffix).size()));
    }
  }
  return {names.begin(), names.end()};
}
