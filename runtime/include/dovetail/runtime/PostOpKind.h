//===- PostOpKind.h - What is applied to results ----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the steps of the epilogues of library calls. Code for devices includes this header, too.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_POSTOPKIND_H
#define DOVETAIL_RUNTIME_POSTOPKIND_H

namespace dovetail::runtime {

/// What a library call applies to each element of its result.
enum class PostOpKind : unsigned char {
  AddTensor,
  MulTensor,
  Relu,
  LeakyRelu,
  Clip,
  Sigmoid,
  Tanh,
  Gelu,
  GeluTanh,
  HardSwish,
  Swish,
  Elu,
  HardSigmoid
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_POSTOPKIND_H
