//===- CodeObject.h - Kernels of a program ----------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PROGRAM_CODEOBJECT_H
#define DOVETAIL_RUNTIME_PROGRAM_CODEOBJECT_H

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace dovetail::runtime {

/// A shared object loaded from memory. Unloaded on destruction.
class CodeObject {
public:
  static absl::StatusOr<std::unique_ptr<CodeObject>> load(absl::Span<const std::byte> elf);
  ~CodeObject();
  CodeObject(const CodeObject &) = delete;
  CodeObject &operator=(const CodeObject &) = delete;

  /// The address of `symbol`, or null.
  void *lookup(const char *symbol) const;
  /// The memory that it was loaded to.
  std::vector<absl::Span<const std::byte>> loadedRanges() const;

private:
  CodeObject(int file, void *handle) : file(file), handle(handle) {}

  int file;
  void *handle;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PROGRAM_CODEOBJECT_H
