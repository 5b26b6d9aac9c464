//===- PlacedFile.h - Files that are read at any place ----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines PlacedFile, which inputs and archives are read from.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TOOLS_PLACEDFILE_H
#define DOVETAIL_RUNTIME_TOOLS_PLACEDFILE_H

#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace dovetail::tools {

/// A regular file that is open for reading. Threads may read at the same time.
class PlacedFile {
public:
  /// Errors: NOT_FOUND, also if it is no regular file; those of opening it.
  static absl::StatusOr<std::shared_ptr<PlacedFile>> open(const std::string &path);
  PlacedFile(std::string path, int descriptor) : path(std::move(path)), descriptor(descriptor) {}
  ~PlacedFile();
  PlacedFile(const PlacedFile &) = delete;
  PlacedFile &operator=(const PlacedFile &) = delete;

  /// Errors, which name the file: OUT_OF_RANGE if it has become too short; those of reading it.
  absl::Status read(int64_t offset, std::byte *target, int64_t bytes) const;

  std::string path;
  int64_t size = 0; ///< In bytes, when it was opened.

private:
  int descriptor;
};

/// `status` as one of `path`, unless its message names it.
absl::Status ofFile(const std::string &path, const absl::Status &status);

} // namespace dovetail::tools

#endif // DOVETAIL_RUNTIME_TOOLS_PLACEDFILE_H
