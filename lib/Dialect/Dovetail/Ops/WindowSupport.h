//===- WindowSupport.h - Sliding windows over spatial dimensions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what convolutions and pooling share: checked window attributes, and where windows lie.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_WINDOWSUPPORT_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_WINDOWSUPPORT_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {

/// The window of one spatial dimension: result index o reads `o*stride - padLow + t*dilation` for each tap t < extent.
struct WindowDim {
  int64_t extent, stride, dilation, padLow, padHigh;

  /// Extent of the operand that one window spans.
  int64_t span() const { return (extent - 1) * dilation + 1; }
};

/// The windows of an operation over [N, C, spatial...].
using Windows = llvm::SmallVector<WindowDim, 3>;

/// The attributes put together, without checks.
Windows getWindows(llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> dilations,
                   llvm::ArrayRef<int64_t> padsLow, llvm::ArrayRef<int64_t> padsHigh);

/// The attributes put together; fails, with an error at `location` if given, unless there is one of each for each of
/// `spatialRank` dimensions and all are small enough to compute with.
mlir::FailureOr<Windows> inferWindows(std::optional<mlir::Location> location, llvm::StringRef opName,
                                      int64_t spatialRank, llvm::ArrayRef<int64_t> extents,
                                      llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> dilations,
                                      llvm::ArrayRef<int64_t> padsLow, llvm::ArrayRef<int64_t> padsHigh);

/// Checks that `tensor`, named `name` in errors, is [N, C, spatial...] with at least one spatial dimension.
llvm::LogicalResult verifySpatial(std::optional<mlir::Location> location, llvm::StringRef opName, llvm::StringRef name,
                                  mlir::RankedTensorType tensor);

/// Checks that `groups` divides `channels`, which are named `name` in errors.
llvm::LogicalResult verifyGroups(std::optional<mlir::Location> location, llvm::StringRef opName, int64_t groups,
                                 int64_t channels, llvm::StringRef name);

/// Adds taps over the windows; returns their indices.
llvm::SmallVector<layout::IndexExpr> addTaps(Definition &definition, llvm::ArrayRef<WindowDim> windows);

/// Where a window at result index `index` has its tap `tap`.
layout::AccessDim getPosition(const WindowDim &window, const layout::IndexExpr &index, const layout::IndexExpr &tap);

/// From where tap `tap` of a window reaches `index`: that of the convolution whose gradient an operation is.
layout::AccessDim getTransposedPosition(const WindowDim &window, const layout::IndexExpr &index,
                                        const layout::IndexExpr &tap);

/// The channel of an operand that is channel `channel` of the group of the result's channel (loop 1). Both are divided
/// into `groups` groups.
layout::IndexExpr getChannelOfGroup(int64_t resultChannels, const layout::IndexExpr &channel, int64_t operandChannels,
                                    int64_t groups);

} // namespace dovetail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_WINDOWSUPPORT_H
