//===- SizedStruct.h - Structs that begin with their size ------ -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how structs of the C interface are read and written, which callers of other versions know with fewer or more
// fields.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_API_SIZEDSTRUCT_H
#define DOVETAIL_RUNTIME_API_SIZEDSTRUCT_H

#include "dovetail/runtime/Version.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace dovetail::api {

/// No version of a struct is larger: what says so has not set its size.
constexpr size_t mostStructBytes = 4096;

inline absl::Status checkStructSize(const char *name, size_t size, size_t alignment) {
  if (size == 0)
    return absl::InvalidArgumentError(absl::StrCat("struct_size of ", name, " is 0; set it to sizeof(", name, ")"));
  // Fields that are added begin behind the padding of those before, so no version ends within a field.
  if (size % alignment != 0 || size > mostStructBytes)
    return absl::InvalidArgumentError(absl::StrCat(
        "struct_size of ", name, " is ", size, ", which no version of the struct has; set it to sizeof(", name, ")"));
  return absl::OkStatus();
}

/// Copies the fields that the caller's struct has; all others are 0. Errors: INVALID_ARGUMENT, also for a struct with
/// fields of a newer version that are not 0.
template <typename Struct> absl::Status readStruct(const char *name, const Struct *given, Struct &result) {
  size_t size = given->struct_size;
  if (absl::Status status = checkStructSize(name, size, alignof(Struct)); !status.ok())
    return status;
  const auto *bytes = reinterpret_cast<const std::byte *>(given);
  if (size > sizeof(Struct) &&
      std::any_of(bytes + sizeof(Struct), bytes + size, [](std::byte byte) { return byte != std::byte(0); }))
    return absl::InvalidArgumentError(absl::StrCat(
        name, " has ", size, " bytes, and sets fields that Dovetail ", runtime::version(), ", which knows ",
        sizeof(Struct), " bytes, does not have; leave them 0, or use the library of the version of dovetail.h"));
  result = Struct();
  std::memcpy(static_cast<void *>(&result), given, std::min(size, sizeof(Struct)));
  result.struct_size = sizeof(Struct);
  return absl::OkStatus();
}

/// Writes the fields that the caller's struct has; fields of a newer version become 0. Errors: INVALID_ARGUMENT.
template <typename Struct> absl::Status writeStruct(const char *name, Struct value, Struct *given) {
  size_t size = given->struct_size;
  if (absl::Status status = checkStructSize(name, size, alignof(Struct)); !status.ok())
    return status;
  value.struct_size = size;
  auto *bytes = reinterpret_cast<std::byte *>(given);
  std::memcpy(bytes, &value, std::min(size, sizeof(Struct)));
  if (size > sizeof(Struct))
    std::memset(bytes + sizeof(Struct), 0, size - sizeof(Struct));
  return absl::OkStatus();
}

} // namespace dovetail::api

#endif // DOVETAIL_RUNTIME_API_SIZEDSTRUCT_H
