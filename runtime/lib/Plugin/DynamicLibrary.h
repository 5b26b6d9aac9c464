//===- DynamicLibrary.h - Libraries opened at run time ----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the libraries of CUDA are found and opened, so that nothing is linked with them. Each is looked for in
//
//   1. the folders that the environment variable DOVETAIL_CUDA_PATH lists (with colons between), and in their `lib64`,
//      `lib` and `nvidia/*/lib`: so it may be a CUDA installation, or the site-packages of a Python environment with
//      packages such as nvidia-cudnn-cu13;
//   2. `nvidia/*/lib` of the Python environment that Dovetail is installed in;
//   3. what the dynamic loader knows (LD_LIBRARY_PATH and the system's folders);
//   4. `$CUDA_HOME/lib64`, `$CUDA_PATH/lib64` and /usr/local/cuda/lib64.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PLUGIN_DYNAMICLIBRARY_H
#define DOVETAIL_RUNTIME_PLUGIN_DYNAMICLIBRARY_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <string>
#include <vector>

namespace dovetail::runtime::cuda {

/// A library as messages name it, and the names of its file, the best first. Names of versions that are too old come
/// last: if only they are there, the message can say which.
struct LibraryFiles {
  std::string name;
  std::vector<std::string> files;
  std::string advice; ///< How to get it.
};

/// An open library. It stays open until the process ends: the libraries of CUDA do not bear being closed.
class DynamicLibrary {
public:
  /// Errors: UNAVAILABLE, with what was tried.
  static absl::StatusOr<DynamicLibrary> open(const LibraryFiles &description);

  /// Null if there is none.
  void *find(const char *symbol) const;
  /// Where the file is.
  const std::string &path() const { return file; }
  const std::string &name() const { return description.name; }

  /// UNAVAILABLE: `symbol` is missing from a library that says it has `version`.
  absl::Status missing(absl::string_view symbol, absl::string_view version, absl::string_view needed) const;
  /// UNAVAILABLE: the library found is older than needed.
  absl::Status tooOld(absl::string_view version, absl::string_view needed) const;

private:
  LibraryFiles description;
  std::string file;
  void *handle = nullptr;
};

/// The folders of steps 1 and 2, and of step 4 above, that exist.
std::vector<std::string> namedFolders();
std::vector<std::string> usualFolders();

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_PLUGIN_DYNAMICLIBRARY_H
