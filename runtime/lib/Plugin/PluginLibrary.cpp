//===- PluginLibrary.cpp - Libraries that extend the runtime --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PluginLibrary.h"

#include "dovetail/runtime/Places.h"
#include "dovetail/runtime/PluginFiles.h"

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

/// The plug-ins of a build where CUDA's headers, Open MPI, MPICH and the header of NCCL are installed.
constexpr const char *ownPlugins[] = {"cuda", "mpi_mpich", "mpi_openmpi", "transport_mpi", "transport_nccl"};

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

/// Errors: NOT_FOUND.
absl::StatusOr<std::filesystem::path> findPlugin(const std::string &name) {
  std::string library = absl::StrCat(filePrefix, name, fileSuffix);
  std::vector<std::filesystem::path> folders = searchedFolders();
  for (const std::filesystem::path &folder : folders) {
    std::error_code error;
    if (std::filesystem::exists(folder / library, error))
      return folder / library;
  }
  auto append = [](std::string *out, const std::filesystem::path &path) { absl::StrAppend(out, path.string()); };
  return absl::NotFoundError(absl::StrCat("the plug-in ", library,
                                          " is in none of these folders: ", absl::StrJoin(folders, ", ", append),
                                          "; put it there or name its folder in DOVETAIL_PLUGINS"));
}

} // namespace

absl::StatusOr<void *> dovetail::runtime::openPluginLibrary(const std::string &name, const char *symbol) {
  absl::StatusOr<std::filesystem::path> path = findPlugin(name);
  if (!path.ok())
    return path.status();
  void *handle = ::dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return absl::UnavailableError(
        absl::StrCat("the plug-in ", path->filename().string(), " cannot be loaded: ", ::dlerror()));
  void *function = ::dlsym(handle, symbol);
  if (!function)
    return absl::UnavailableError(absl::StrCat(
        "'", path->string(), "' is not a plug-in of Dovetail for this purpose: it lacks the function ", symbol));
  return function;
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

std::vector<PluginFile> dovetail::runtime::findPluginFiles() {
  std::vector<std::string> present = listPlugins("");
  std::set<std::string> names(present.begin(), present.end());
  names.insert(std::begin(ownPlugins), std::end(ownPlugins));
  std::vector<PluginFile> files;
  for (const std::string &name : names) {
    absl::StatusOr<std::filesystem::path> path = findPlugin(name);
    files.push_back(path.ok() ? PluginFile{name, path->string(), ""}
                              : PluginFile{name, "", std::string(path.status().message())});
  }
  return files;
}
