//===- DynamicLibrary.cpp - Libraries opened at run time ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DynamicLibrary.h"

#include "dovetail/runtime/Places.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

using namespace dovetail::runtime::cuda;
namespace fs = std::filesystem;

namespace {

void addFolder(const fs::path &folder, std::vector<std::string> &folders) {
  std::error_code error;
  if (fs::is_directory(folder, error))
    folders.push_back(folder.string());
}

} // namespace

std::vector<std::string> dovetail::runtime::cuda::namedFolders() {
  std::vector<std::string> folders;
  const char *value = std::getenv("DOVETAIL_CUDA_PATH");
  for (absl::string_view entry : absl::StrSplit(value ? value : "", ':', absl::SkipEmpty())) {
    fs::path folder{std::string(entry)};
    for (const char *inner : {"", "lib64", "lib"})
      addFolder(*inner ? folder / inner : folder, folders);
    for (const fs::path &package : nvidiaPackages(folder))
      addFolder(package / "lib", folders);
  }
  for (const fs::path &package : nvidiaPackages())
    addFolder(package / "lib", folders);
  return folders;
}

std::vector<std::string> dovetail::runtime::cuda::usualFolders() {
  std::vector<std::string> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *value = std::getenv(variable); value && *value)
      addFolder(fs::path(value) / "lib64", folders);
  addFolder("/usr/local/cuda/lib64", folders);
  return folders;
}

absl::StatusOr<DynamicLibrary> DynamicLibrary::open(const LibraryFiles &description) {
  DynamicLibrary library;
  library.description = description;
  std::vector<std::string> problems;
  // A file that is there but cannot be opened is the more interesting problem: it lacks a library of its own, say.
  auto attempt = [&](const std::string &path) {
    std::error_code error;
    bool isPath = absl::StrContains(path, '/');
    if (isPath && !fs::exists(path, error))
      return false;
    library.handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library.handle) {
      const char *reason = ::dlerror();
      if (reason && (isPath || !absl::StrContains(reason, absl::StrCat(path, ": cannot open shared object file"))))
        problems.push_back(reason);
      return false;
    }
    library.file = libraryFile(library.handle, path);
    return true;
  };
  std::vector<std::string> named = namedFolders(), usual = usualFolders();
  for (const std::string &file : description.files) {
    for (const std::string &folder : named)
      if (attempt(folder + "/" + file))
        return library;
    if (attempt(file))
      return library;
    for (const std::string &folder : usual)
      if (attempt(folder + "/" + file))
        return library;
  }
  if (!problems.empty())
    return absl::UnavailableError(
        absl::StrCat(description.name, " cannot be opened: ", absl::StrJoin(problems, "; "), "; ", description.advice));
  return absl::UnavailableError(absl::StrCat(description.name, " (", description.files.front(),
                                             ") is not on this machine; ", description.advice));
}

void *DynamicLibrary::find(const char *symbol) const { return ::dlsym(handle, symbol); }

absl::Status DynamicLibrary::missing(absl::string_view symbol, absl::string_view version,
                                     absl::string_view needed) const {
  return absl::UnavailableError(absl::StrCat(description.name, " ", version, " (", file, ") lacks the function ",
                                             symbol, "; ", needed, " or newer is needed; ", description.advice));
}

absl::Status DynamicLibrary::tooOld(absl::string_view version, absl::string_view needed) const {
  return absl::UnavailableError(absl::StrCat(description.name, " ", version, " (", file, ") is too old: ", needed,
                                             " or newer is needed; ", description.advice));
}
