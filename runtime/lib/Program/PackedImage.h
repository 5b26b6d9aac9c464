//===- PackedImage.h - Packed weights in artifacts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the section of an artifact with weights as library calls of some machine want them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PROGRAM_PACKEDIMAGE_H
#define DOVETAIL_RUNTIME_PROGRAM_PACKEDIMAGE_H

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace dovetail::runtime {

/// Packed weights, and for what they are.
struct PackedImage {
  std::string machine; ///< The library and the instructions that it uses; they decide what formats mean.
  int threads = 0;     ///< Of each rank, for which formats were chosen.
  /// By key (`StepExecutor::packedKey`). The bytes are not owned, and begin at multiples of `pieceAlignment`.
  std::map<std::string, absl::Span<const std::byte>> entries;

  /// What is read again by `parse`: a header of numbers of 64 bits (entries, threads, length of `machine`; for each
  /// entry the length of its key, offset and size of its bytes), the texts, and the bytes.
  std::vector<std::byte> serialize() const;
  /// The entries lie in `bytes`, which is aligned. `check` is asked for the first bytes before they are looked at, and
  /// not for those of entries. Errors: DATA_LOSS, and those of `check`.
  static absl::StatusOr<PackedImage> parse(
      absl::Span<const std::byte> bytes,
      absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> check = [](auto) { return absl::OkStatus(); });
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PROGRAM_PACKEDIMAGE_H
