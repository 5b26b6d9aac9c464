//===- TensorFile.h - Tensors in files -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how tensors are read from and written to NumPy's `.npy` and `.npz` files.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_TENSORFILE_H
#define DOVETAIL_TOOLS_TENSORFILE_H

#include "dovetail/runtime/ElementType.h"
#include "dovetail/runtime/ProgramRunner.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstddef>
#include <string>
#include <vector>

namespace dovetail::tools {

/// A row-major tensor that owns its elements.
struct NamedTensor {
  std::string name;
  runtime::ElementType type = runtime::ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
  /// An element is a byte of a type that the file does not name; `type` is U8.
  bool isOpaque = false;

  /// Makes `bytes` as large as the tensor is.
  void allocate();
  int64_t numElements() const;
  /// The tensor for a runner, which reads or writes `bytes`.
  runtime::FullTensor view();
};

/// Reads the array in the file `path`. Errors: NOT_FOUND and other codes of the file system, or OUT_OF_RANGE for a file
/// that is no such file or damaged; messages name the file.
absl::StatusOr<NamedTensor> readNpy(const std::string &path);
/// Reads all arrays of an archive, each with its name, or of several arrays the one called `only`, if that is not
/// empty.
absl::StatusOr<std::vector<NamedTensor>> readNpz(const std::string &path, const std::string &only = "");

/// Write to a temporary file that is then renamed.
absl::Status writeNpy(const std::string &path, const NamedTensor &tensor);
absl::Status writeNpz(const std::string &path, absl::Span<const NamedTensor> tensors);

/// That a file can be written there: its folder exists, and nothing but a regular file has that name. To be asked
/// before long work.
absl::Status checkWritable(const std::string &path);
/// Writes text to a temporary file that is then renamed. With `onDisk`, that is on disk in this order when it returns,
/// so that whatever happens to the machine, there is the old file or the new one.
absl::Status writeText(const std::string &path, const std::string &text, bool onDisk = false);
/// The folder of a file, with a slash if the name has one.
std::string folderOf(const std::string &path);
/// Has the names of files in a folder on disk, if the file system does such things.
void syncFolder(const std::string &folder);

/// Fills a tensor with numbers that depend on the arguments alone: floating-point numbers in [-1, 1), integers from 0
/// to 9 that are less than `limit`, which is at least 1; of 8-bit floats numbers around 1, of fewer bits any number.
void fillRandom(NamedTensor &tensor, uint64_t seed, int64_t limit);
/// `count` of its elements from number `first` on.
void fillRandom(runtime::ElementType type, uint64_t seed, int64_t limit, int64_t first, int64_t count,
                std::byte *target);
/// Replaces elements: by floating-point numbers that are not numbers, or the same integers the other way round, since
/// others may be out of a range.
void spoil(runtime::ElementType type, std::byte *elements, int64_t count);
/// `tensor` with such elements.
NamedTensor makeWrong(const NamedTensor &tensor);

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_TENSORFILE_H
