//===- OtherVersions.cpp - Other versions in a process --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds other libraries of the runtime that the process has loaded. Two versions would share MPI, devices, processors
// and the variables of the environment without knowing of each other.
//
//===----------------------------------------------------------------------===//

#include "OtherVersions.h"

#include "dovetail/dovetail.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <atomic>
#include <dlfcn.h>
#include <link.h>
#include <string>
#include <vector>

using namespace dovetail;

namespace {

constexpr absl::string_view libraryName = "libdovetail.so";

/// Appends the file if it is a library of the runtime, of any version.
int collect(dl_phdr_info *info, size_t, void *files) {
  absl::string_view path = info->dlpi_name ? info->dlpi_name : "";
  absl::string_view file = path.substr(path.rfind('/') + 1);
  if (file == libraryName || absl::StartsWith(file, absl::StrCat(libraryName, ".")))
    static_cast<std::vector<std::string> *>(files)->emplace_back(path);
  return 0;
}

} // namespace

absl::Status api::checkOtherVersions() {
  static std::atomic<bool> isChecked = false;
  if (isChecked.load(std::memory_order_relaxed))
    return absl::OkStatus();
  Dl_info own = {};
  ::dladdr(reinterpret_cast<void *>(&dovetail_version), &own);
  std::vector<std::string> files;
  ::dl_iterate_phdr(collect, &files);
  for (const std::string &file : files) {
    void *library = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
      continue;
    // Versions before this function do not say which they are.
    auto *function = reinterpret_cast<decltype(&dovetail_version)>(::dlsym(library, "dovetail_version"));
    std::string version = function ? absl::StrCat("Dovetail ", function()) : "an older Dovetail";
    bool isSame = function && absl::string_view(function()) == dovetail_version();
    ::dlclose(library);
    if (!isSame)
      return absl::FailedPreconditionError(
          absl::StrCat("this process has loaded ", version, " ('", file, "') and Dovetail ", dovetail_version(), " ('",
                       own.dli_fname ? own.dli_fname : libraryName, "'); load one version of the library only"));
  }
  isChecked = true;
  return absl::OkStatus();
}
