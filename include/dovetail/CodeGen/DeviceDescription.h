//===- DeviceDescription.h - What kernels rely on of a device ---*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares DeviceDescription.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CODEGEN_DEVICEDESCRIPTION_H
#define DOVETAIL_CODEGEN_DEVICEDESCRIPTION_H

#include "mlir/IR/Diagnostics.h"

#include <cstdint>

namespace dovetail {

/// A device that runs blocks of threads, as far as it matters for how kernels are divided among them. A target gives it
/// to `addBlockPasses`. The defaults are those of NVIDIA's devices; AMD's have warps (wavefronts) of 64.
struct DeviceDescription {
  /// Threads that execute together and may shuffle.
  int64_t warpThreads = 32;
  /// Threads of the blocks that are launched: several warps.
  int64_t blockThreads = 256;
  /// Bytes of the widest access of a thread to memory.
  int64_t accessBytes = 16;
  /// Bytes of shared memory that every block may have.
  int64_t sharedBytes = 48 * 1024;
  /// Banks of shared memory: so many neighbouring words of four bytes are accessed at once.
  int64_t sharedBanks = 32;
  /// Blocks that keep a large device busy.
  int64_t busyBlocks = 512;
};

/// Attribute of a function for blocks of threads: so many of its blocks should find registers on a processor at once.
inline constexpr llvm::StringLiteral blocksAtOnceAttrName = "blocks_at_once";

/// Fails, after an error at `location`, if kernels cannot be divided among the threads of such a device.
llvm::LogicalResult verifyDevice(mlir::Location location, const DeviceDescription &device);

} // namespace dovetail

#endif // DOVETAIL_CODEGEN_DEVICEDESCRIPTION_H
