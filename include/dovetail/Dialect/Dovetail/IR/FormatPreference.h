//===- FormatPreference.h - Memory formats around operations ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines FormatPreference.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_FORMATPREFERENCE_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_FORMATPREFERENCE_H

namespace dovetail {

/// The memory format that an operation is best served by, for its operands of the result's rank and its result.
enum class FormatPreference {
  /// Whatever its operands have.
  Any,
  /// Channels (dimension 1) innermost.
  ChannelsLast,
  /// Dimensions in order.
  RowMajor
};

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_FORMATPREFERENCE_H
