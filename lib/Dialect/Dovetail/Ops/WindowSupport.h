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
#include "dovetail/Layout/Window.h"

namespace dovetail {

/// The window of one spatial dimension; `padHigh` positions behind the operand count as part of it.
struct WindowDim : layout::Window {
  int64_t padHigh;
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

} // namespace dovetail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_WINDOWSUPPORT_H
