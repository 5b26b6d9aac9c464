//===- Feedback.h - Results that are inputs of the next run -----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a function says which of its results are what arguments are to be when it runs again.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_FEEDBACK_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_FEEDBACK_H

#include "llvm/ADT/StringRef.h"

namespace dovetail {

/// The attribute of a result of the main function, and of the output of the plan that it becomes, that is what an
/// argument is to be in the next run: the argument's number, and that of the result by which users know the value.
/// Ranks hold of it what they hold of the argument. These come behind all other results.
inline constexpr llvm::StringLiteral kFeedbackAttrName = "dovetail.feedback";

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_FEEDBACK_H
