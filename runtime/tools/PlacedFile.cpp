//===- PlacedFile.cpp - Files that are read at any place ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlacedFile.h"

#include "dovetail/runtime/ArtifactFormat.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::tools;

absl::StatusOr<std::shared_ptr<PlacedFile>> PlacedFile::open(const std::string &path) {
  // A pipe is refused, and not waited for.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return runtime::fileError(errno, absl::StrCat("cannot open '", path, "'"));
  auto file = std::make_shared<PlacedFile>(path, descriptor);
  struct stat info;
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode))
    return absl::NotFoundError(
        absl::StrCat("'", path, "' is not a file that can be read in parts; save the array as .npy"));
  file->size = info.st_size;
  return file;
}

PlacedFile::~PlacedFile() { ::close(descriptor); }

absl::Status PlacedFile::read(int64_t offset, std::byte *target, int64_t bytes) const {
  while (bytes > 0) {
    ssize_t count = ::pread(descriptor, target, static_cast<size_t>(bytes), offset);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return runtime::fileError(errno, absl::StrCat("cannot read '", path, "'"));
    if (count == 0)
      return absl::OutOfRangeError(absl::StrCat("'", path, "' ends at byte ", offset, ", before the end of its ",
                                                "array; it was cut short while it was read"));
    target += count;
    offset += count;
    bytes -= count;
  }
  return absl::OkStatus();
}

absl::Status tools::ofFile(const std::string &path, const absl::Status &status) {
  if (status.ok() || !absl::IsOutOfRange(status) || absl::StrContains(status.message(), absl::StrCat("'", path, "'")))
    return status;
  return absl::Status(status.code(), absl::StrCat("'", path, "': ", status.message()));
}
