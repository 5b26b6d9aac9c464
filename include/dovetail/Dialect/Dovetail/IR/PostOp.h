//===- PostOp.h - What libraries apply to results -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what an elementwise operation says of itself as a step of a library call's epilogue.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_POSTOP_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_POSTOP_H

#include "dovetail/Dialect/Dovetail/Definition/Enums.h"

#include <optional>

namespace dovetail {

/// What a library can apply to each element of a call's result.
struct PostOp {
  PostOpKind kind;
  /// The operand that it reads besides the result.
  std::optional<unsigned> operand = std::nullopt;
  /// The function's parameters as ONNX defines them (clip: minimum and maximum), for functions that have some.
  struct Parameters {
    float alpha, beta;
  };
  std::optional<Parameters> parameters = std::nullopt;
};

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_POSTOP_H
