//===- CallSizes.h - Sizes that libraries have -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares which sizes of calls libraries have in common.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_LIBRARY_CALLSIZES_H
#define DOVETAIL_LIB_LIBRARY_CALLSIZES_H

#include "dovetail/Library/CallShape.h"

namespace dovetail {

/// True if `call` has as many dimensions as libraries have. Windows are those that the plan can state.
bool isModest(const CallShape &call);
/// True if each tap of a convolution is a product of matrices. Its windows have one element and no pads, or are
/// transposed and lie side by side.
bool isProductOfTaps(const CallShape &call);

} // namespace dovetail

#endif // DOVETAIL_LIB_LIBRARY_CALLSIZES_H
