//===- Npz.h - Archives of arrays -------------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares functions that find the arrays of an archive of NumPy's in its file, so that parts of them can be read.
// Others read an array that is compressed, and make the records of a new archive.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TOOLS_NPZ_H
#define DOVETAIL_RUNTIME_TOOLS_NPZ_H

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dovetail::tools {

/// A file in an archive.
struct NpzMember {
  std::string name;  ///< Without `.npy`.
  int64_t begin = 0; ///< Where its bytes are.
  int64_t bytes = 0;
  int64_t unpacked = 0; ///< Bytes without compression, as the archive claims.
  int method = 0;       ///< How it is compressed: 0, not at all, or 8, by deflate. Others are not known here.
  bool isEncrypted = false;
  uint32_t checksum = 0; ///< CRC-32 of these bytes.

  /// Whether its bytes are those in the archive; else they are compressed, or encrypted.
  bool isStored() const { return method == 0 && !isEncrypted; }
};

/// Reads bytes of an archive.
using NpzRead = absl::FunctionRef<absl::Status(int64_t offset, std::byte *target, int64_t bytes)>;

/// The members of an archive of `size` bytes, of which `read` reads some (APPNOTE.TXT of PKWARE's, 4.3, with the
/// extensions for 64 bits). Errors: OUT_OF_RANGE, with what is wrong; those of `read`.
absl::StatusOr<std::vector<NpzMember>> listNpz(int64_t size, NpzRead read);

/// A member without compression, with its checksum compared. Errors: OUT_OF_RANGE, if it is damaged or packed in a way
/// that is not known here; those of `read`.
absl::StatusOr<std::vector<std::byte>> readNpzMember(const NpzMember &member, NpzRead read);

/// The longest name of an array in an archive, in bytes.
inline constexpr size_t mostNpzName = 0xffff - 4;

/// Makes the records of an archive whose members are stored as they are. The same members give the same bytes.
class NpzRecords {
public:
  /// The record before the bytes of a member, with `.npy` at the end of its name. `checksum` is that of these bytes.
  std::string beginMember(const std::string &file, uint64_t bytes, uint32_t checksum);
  /// The records behind the last member.
  std::string end() const;
  /// CRC-32 of bytes behind others, whose checksum is `before`; 0 for the first.
  static uint32_t addChecksum(uint32_t before, const void *bytes, size_t count);

private:
  std::string directory;
  uint64_t offset = 0, entries = 0;
};

} // namespace dovetail::tools

#endif // DOVETAIL_RUNTIME_TOOLS_NPZ_H
