//===- WindowSupport.h - Sliding windows over spatial dimensions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what convolutions and pooling share: checked window attributes and the fold over a window.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_WINDOWSUPPORT_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_WINDOWSUPPORT_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {

/// Windows of at most this extent are unrolled.
inline constexpr int64_t maxUnrolledWindow = 3;

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

/// Relation of an operand's channels to the loop over result channels (loop 1): the channels of the same group. Both
/// are divided into `groups` groups.
DimRelation relateGroups(int64_t operandChannels, int64_t resultChannels, int64_t groups);

/// The channel of an operand that is channel `channel` of the group of result channel `resultChannel`.
mlir::Value getChannelOfGroup(ElementBuilder &builder, mlir::Value resultChannel, int64_t resultChannels,
                              mlir::Value channel, int64_t operandChannels, int64_t groups);

/// What convolutions say of `ProductOpInterface::countSharing`: the channels of a group share the input's factors, and
/// all positions the weights'.
int64_t countSharing(mlir::RankedTensorType result, int64_t groups, unsigned operand, unsigned loop);

/// The position in the operand that a window has at result index `index`, at its tap `tap`.
mlir::Value getPosition(ElementBuilder &builder, const WindowDim &window, mlir::Value index, mlir::Value tap);

/// i1: `position`, that of tap `tap`, is inside the operand. Only the bounds that some result index can violate are
/// tested.
mlir::Value isInsideOperand(ElementBuilder &builder, const WindowDim &window, int64_t operandExtent,
                            int64_t resultExtent, mlir::Value tap, mlir::Value position);

/// Emits a fold over the positions of a window that are inside the operand; those outside are padding and are skipped.
/// `operandShape`, `resultShape` and `index` are spatial. `body` gets the position in the operand, the tap, and the
/// accumulator, and returns the next accumulator.
mlir::Value foldWindow(ElementBuilder &builder, llvm::ArrayRef<WindowDim> windows, llvm::ArrayRef<int64_t> operandShape,
                       llvm::ArrayRef<int64_t> resultShape, llvm::ArrayRef<mlir::Value> index, mlir::Value init,
                       llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::Value> position,
                                                      llvm::ArrayRef<mlir::Value> tap, mlir::Value accumulator)>
                           body);

} // namespace dovetail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_WINDOWSUPPORT_H
