//===- Npz.h - Where arrays lie in archives -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what finds the arrays of an archive of NumPy's in its file, so that parts of them can be read.
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
  std::string name;      ///< Without `.npy`.
  bool isStored = false; ///< Its bytes are those in the archive; else they are compressed, or encrypted.
  int64_t begin = 0;     ///< Where they are.
  int64_t bytes = 0;
};

/// The members of an archive of `size` bytes, of which `read` reads some (APPNOTE.TXT of PKWARE's, 4.3, with the
/// extensions for 64 bits). Errors: OUT_OF_RANGE, with what is wrong; those of `read`.
absl::StatusOr<std::vector<NpzMember>>
listNpz(int64_t size, absl::FunctionRef<absl::Status(int64_t offset, std::byte *target, int64_t bytes)> read);

} // namespace dovetail::tools

#endif // DOVETAIL_RUNTIME_TOOLS_NPZ_H
