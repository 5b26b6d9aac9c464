//===- Staging.h - Memory around library calls -----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the operands of library calls get into memory of the shape that the library wants.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_STAGING_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_STAGING_H

#include "../common/DeviceStaging.h"
#include "Context.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <optional>

namespace dovetail::runtime::cuda {

/// Workspace of a call, in bytes: what the plan allows its library, and the least found that is more.
struct Workspace {
  int64_t most;
  std::optional<int64_t> refused = {};

  void refuse(int64_t bytes) { refused = std::min(refused.value_or(bytes), bytes); }
  /// The error where `library` has nothing but what was refused.
  absl::Status tooSmall(const std::string &library) const {
    return absl::ResourceExhaustedError(
        absl::StrCat(library, " needs ", *refused, " bytes of workspace, but the plan allows ", most,
                     "; compile the model with --no-libraries, which uses generated kernels instead"));
  }
};

/// Copies `box` between two memories, both of which hold it.
absl::StatusOr<std::unique_ptr<DeviceWork>> copyBetween(const std::shared_ptr<Context> &context,
                                                        const MemoryView &target, const MemoryView &source,
                                                        const layout::Box &box);

/// The same, and writes zeros to all of `target` that is not in `box`, in one launch. `target` has all that it spans,
/// in any order of dimensions. Memory with zeros is kept in `zeros`.
absl::StatusOr<std::unique_ptr<DeviceWork>> copyAmongZeros(const std::shared_ptr<Context> &context,
                                                           const MemoryView &target, const MemoryView &source,
                                                           const layout::Box &box, std::shared_ptr<std::byte> &zeros);

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_STAGING_H
