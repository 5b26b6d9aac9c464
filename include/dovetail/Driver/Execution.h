//===- Execution.h - Running compiled programs in process -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how the driver runs the programs that it has compiled.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_EXECUTION_H
#define DOVETAIL_DRIVER_EXECUTION_H

#include "dovetail/Driver/Diagnostics.h"
#include "dovetail/runtime/ElementType.h"

#include "absl/status/status.h"

#include <cstddef>
#include <string>
#include <vector>

namespace dovetail {

/// A tensor in memory, row-major.
struct TensorData {
  std::string name;
  runtime::ElementType type = runtime::ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  int64_t getNumElements() const;
  /// Makes `bytes` as large as the tensor is.
  void allocate();
};

/// Fills a tensor with random elements that depend on `seed` alone: floating-point numbers between -1 and 1, integers
/// between 0 and 3, which most models take without overflow.
void fillRandom(TensorData &tensor, uint64_t seed);

/// What an error of the runtime means for the user.
ExitCode getExitCode(const absl::Status &status);

/// Runs the artifact `bytes` on all of its ranks, as threads of this process. `inputs` come in the order of the
/// program's, as its outputs do. Errors are reported as errors of `what`, such as "the partitioned program".
llvm::FailureOr<std::vector<TensorData>> execute(llvm::ArrayRef<std::byte> bytes, llvm::ArrayRef<TensorData> inputs,
                                                 int threads, const llvm::Twine &what, Diagnostics &diagnostics);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_EXECUTION_H
