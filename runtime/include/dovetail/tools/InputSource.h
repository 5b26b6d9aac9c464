//===- InputSource.h - Inputs that are read in parts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines inputs of which a process takes the parts that its ranks need.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_INPUTSOURCE_H
#define DOVETAIL_TOOLS_INPUTSOURCE_H

#include "dovetail/tools/TensorFile.h"

#include "absl/functional/function_ref.h"

#include <memory>

namespace dovetail::tools {

/// Calls `body` for each piece of a box that lies together in a row-major array of these extents: where it begins
/// there and in a row-major array of the box alone, and how many elements it has.
absl::Status forEachRun(const layout::Box &box, const std::vector<int64_t> &extents,
                        absl::FunctionRef<absl::Status(int64_t offset, int64_t at, int64_t count)> body);

/// A tensor somewhere. Any number of threads may read it at once.
class InputSource {
public:
  InputSource(runtime::ElementType type, std::vector<int64_t> shape) : elementType(type), extents(std::move(shape)) {}
  virtual ~InputSource() = default;
  runtime::ElementType type() const { return elementType; }
  const std::vector<int64_t> &shape() const { return extents; }
  /// Files do not tell types of at most 8 bits apart, for which NumPy has no names: bytes become the bits of `wanted`,
  /// if that is one of these. False if the elements are of a type that the file does not name, and `wanted` is none.
  bool nameType(runtime::ElementType wanted) {
    if (runtime::isNarrow(wanted) && elementType == runtime::ElementType::U8)
      elementType = wanted;
    else if (isOpaque)
      return false;
    return true;
  }
  /// Writes the elements of `box`, row-major, to `target`. Errors: those of files; messages name the file.
  virtual absl::Status read(const layout::Box &box, std::byte *target) const = 0;

protected:
  bool isOpaque = false; ///< An element is a byte of a type that the file does not name.

private:
  runtime::ElementType elementType;
  std::vector<int64_t> extents;
};

/// An array in a file of NumPy's. Errors: as those of `readNpy`, but what is read later must still be there.
absl::StatusOr<std::unique_ptr<InputSource>> openNpy(const std::string &path);
/// An array of an archive; null if it is not in there as it is, but compressed.
struct ArchivedArray {
  std::string name;
  std::unique_ptr<InputSource> source;
};
/// The arrays of an archive, or of several of them the one called `only`, if that is not empty: others may be of types
/// that are not ours. Nobody compares checksums, for which all of an array would have to be read. Errors: as above.
absl::StatusOr<std::vector<ArchivedArray>> openNpz(const std::string &path, const std::string &only = "");
/// A file that consists of the elements alone, row-major. Errors: as above.
absl::StatusOr<std::unique_ptr<InputSource>> openRaw(const std::string &path, runtime::ElementType type,
                                                     std::vector<int64_t> shape);
/// What `fillRandom` makes.
std::unique_ptr<InputSource> makeRandom(runtime::ElementType type, std::vector<int64_t> shape, uint64_t seed,
                                        int64_t limit);
/// A tensor that is in memory.
std::unique_ptr<InputSource> holdTensor(NamedTensor tensor);

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_INPUTSOURCE_H
