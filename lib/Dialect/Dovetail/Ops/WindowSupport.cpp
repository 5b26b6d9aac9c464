//===- WindowSupport.cpp - Sliding windows over spatial dimensions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what convolutions and pooling share: checked window attributes, and where windows lie.
//
//===----------------------------------------------------------------------===//

#include "WindowSupport.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Windows dovetail::getWindows(ArrayRef<int64_t> extents, ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                             ArrayRef<int64_t> padsLow, ArrayRef<int64_t> padsHigh) {
  Windows windows;
  for (auto [extent, stride, dilation, low, high] : llvm::zip_equal(extents, strides, dilations, padsLow, padsHigh))
    windows.push_back({{extent, stride, dilation, low, /*isTransposed=*/false}, high});
  return windows;
}

FailureOr<Windows> dovetail::inferWindows(std::optional<Location> location, StringRef opName, int64_t spatialRank,
                                          ArrayRef<int64_t> extents, ArrayRef<int64_t> strides,
                                          ArrayRef<int64_t> dilations, ArrayRef<int64_t> padsLow,
                                          ArrayRef<int64_t> padsHigh) {
  // Products of two such numbers stay far from the end of 64 bits.
  constexpr int64_t limit = int64_t(1) << 30;
  auto check = [&](StringRef name, ArrayRef<int64_t> values, int64_t least) -> LogicalResult {
    if (static_cast<int64_t>(values.size()) != spatialRank)
      return emitOptionalError(location, "'", opName, "' op has ", values.size(), " ", name, " for ", spatialRank,
                               " spatial dimensions");
    for (int64_t value : values)
      if (value < least || value > limit)
        return emitOptionalError(location, "'", opName, "' op has ", value, " among its ", name, ", not in ", least,
                                 " .. ", limit);
    return success();
  };
  if (failed(check("window extents", extents, 1)) || failed(check("strides", strides, 1)) ||
      failed(check("dilations", dilations, 1)) || failed(check("pads_low", padsLow, -limit)) ||
      failed(check("pads_high", padsHigh, -limit)))
    return failure();
  return getWindows(extents, strides, dilations, padsLow, padsHigh);
}

LogicalResult dovetail::verifySpatial(std::optional<Location> location, StringRef opName, StringRef name,
                                      RankedTensorType tensor) {
  if (tensor.getRank() >= 3)
    return success();
  return emitOptionalError(location, "'", opName, "' op has ", name, " of rank ", tensor.getRank(),
                           ", but needs [N, C, spatial...] with a spatial dimension at least");
}

LogicalResult dovetail::verifyGroups(std::optional<Location> location, StringRef opName, int64_t groups,
                                     int64_t channels, StringRef name) {
  // No channels are no reason for a group without any.
  if (groups == 1 || (groups > 1 && channels > 0 && channels % groups == 0))
    return success();
  return emitOptionalError(location, "'", opName, "' op cannot divide ", channels, " ", name, " into ", groups,
                           " groups");
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

SmallVector<IndexExpr> dovetail::addTaps(Definition &definition, ArrayRef<WindowDim> windows) {
  return llvm::map_to_vector(windows,
                             [&](const WindowDim &window) { return definition.addLoop(window.kernel, LoopKind::Tap); });
}
