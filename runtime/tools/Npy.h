//===- Npy.h - NumPy's array format -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TOOLS_NPY_H
#define DOVETAIL_RUNTIME_TOOLS_NPY_H

#include "dovetail/tools/TensorFile.h"

namespace dovetail::tools {

/// Decodes the bytes of a `.npy` file. Errors: OUT_OF_RANGE, with what is wrong.
absl::StatusOr<NamedTensor> decodeNpy(absl::Span<const std::byte> bytes);

/// What the header of a `.npy` file says.
struct NpyArray {
  runtime::ElementType type;
  std::vector<int64_t> shape;
  bool isReversed;   ///< Elements lie as those of a row-major array with the dimensions the other way round.
  int64_t bytes = 0; ///< Of all elements.
  /// An element is a byte of a type that the file does not name; `type` is U8.
  bool isOpaque = false;

  /// Whether the file has so many bytes of elements. Errors: OUT_OF_RANGE.
  absl::Status checkSize(int64_t size) const;
};
/// So many bytes say how long a header is.
inline constexpr int64_t npyPrologueBytes = 12;
/// Where the elements begin, as the first bytes of the file say. Errors: OUT_OF_RANGE.
absl::StatusOr<int64_t> npyHeaderBytes(absl::Span<const std::byte> bytes);
/// `bytes` begin with the header. Errors: OUT_OF_RANGE.
absl::StatusOr<NpyArray> parseNpyHeader(absl::Span<const std::byte> bytes);

/// The bytes of a `.npy` file before the elements: so many at least, a multiple of 64.
std::string npyHeader(runtime::ElementType type, const std::vector<int64_t> &shape, size_t least = 64);

} // namespace dovetail::tools

#endif // DOVETAIL_RUNTIME_TOOLS_NPY_H
