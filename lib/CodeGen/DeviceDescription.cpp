//===- DeviceDescription.cpp - What kernels rely on of a device -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines verifyDevice.
//
//===----------------------------------------------------------------------===//

#include "dovetail/CodeGen/DeviceDescription.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;

LogicalResult dovetail::verifyDevice(Location location, const DeviceDescription &device) {
  for (auto [what, number] : {std::pair("threads in a warp", device.warpThreads),
                              {"threads in a block", device.blockThreads},
                              {"bytes in an access", device.accessBytes},
                              {"banks of shared memory", device.sharedBanks}})
    if (number < 1 || !llvm::isPowerOf2_64(number))
      return emitError(location) << "expected a power of two of " << what << ", not " << number;
  // Columns and tiles are no wider than a warp, or the banks, and are gone through by whole blocks.
  constexpr int64_t narrowest = 16, most = 1024;
  if (device.warpThreads < narrowest || device.blockThreads > most)
    return emitError(location) << "expected warps of " << narrowest << " threads or more, and blocks of " << most
                               << " or fewer, not " << device.warpThreads << " and " << device.blockThreads;
  if (device.blockThreads < device.warpThreads || device.blockThreads < device.sharedBanks)
    return emitError(location) << "a block of " << device.blockThreads << " threads is smaller than a warp of "
                               << device.warpThreads << " or the " << device.sharedBanks << " banks of shared memory";
  if (device.sharedBytes < device.accessBytes * device.blockThreads)
    return emitError(location) << device.sharedBytes << " bytes of shared memory are too few for "
                               << device.blockThreads << " threads";
  if (device.accessBytes < 8 || device.busyBlocks < 1)
    return emitError(location) << "expected accesses of 8 bytes or more, and at least one block, not "
                               << device.accessBytes << " and " << device.busyBlocks;
  return success();
}
