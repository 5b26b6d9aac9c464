//===- ArtifactHeader.cpp - The format of an artifact ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides whether this version can read an artifact, by the first 16 bytes of the file alone.
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/Version.h"

#include "absl/strings/str_cat.h"

#include <cstring>

using namespace dovetail::runtime;

namespace {

/// The fields that all formats have, those after this one included.
constexpr size_t fixedBytes = offsetof(ArtifactHeader, fileSize);
static_assert(fixedBytes == 16);

std::string readFormats() {
  return oldestReadFormat == artifactFormat ? absl::StrCat("format ", artifactFormat)
                                            : absl::StrCat("formats ", oldestReadFormat, " to ", artifactFormat);
}

absl::Status isOlder(uint32_t format) {
  return absl::FailedPreconditionError(absl::StrCat("the artifact has format ", format, ", but Dovetail ", version(),
                                                    " reads ", readFormats(),
                                                    "; compile the model again with this version"));
}

absl::Status isNewer(const ArtifactHeader &header) {
  return absl::FailedPreconditionError(
      absl::StrCat("the artifact has format ", header.format, ", which needs a Dovetail that reads format ",
                   header.oldestReader, " or newer, but Dovetail ", version(), " reads ", readFormats(),
                   "; use a newer Dovetail, or compile the model again with this version"));
}

absl::Status isCutShort(uint64_t size, uint64_t expected) {
  return absl::DataLossError(
      absl::StrCat("the file has ", size, " bytes instead of ", expected, "; it was cut short or changed"));
}

} // namespace

absl::StatusOr<ArtifactHeader> dovetail::runtime::readHeader(absl::Span<const std::byte> bytes) {
  ArtifactHeader header{};
  if (bytes.size() < sizeof(header.magic) || std::memcmp(bytes.data(), artifactMagic, sizeof(header.magic)) != 0)
    return absl::FailedPreconditionError("not a Dovetail artifact, as `dovetail compile` writes them");
  if (bytes.size() < fixedBytes)
    return isCutShort(bytes.size(), sizeof(header));
  std::memcpy(&header, bytes.data(), fixedBytes);
  // Older formats do not say who can read them.
  if (header.format < oldestReadFormat)
    return isOlder(header.format);
  if (header.oldestReader == 0 || header.oldestReader > header.format)
    return absl::DataLossError(absl::StrCat("the header says format ", header.format, ", for readers of format ",
                                            header.oldestReader, " and newer; the file is damaged"));
  if (header.oldestReader > artifactFormat)
    return isNewer(header);
  if (bytes.size() < sizeof(header))
    return isCutShort(bytes.size(), sizeof(header));
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.fileSize != bytes.size())
    return isCutShort(bytes.size(), header.fileSize);
  return header;
}
