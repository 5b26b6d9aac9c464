//===- NvidiaLibrary.h - What NVIDIA's libraries share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines NvidiaLibrary: the element types and epilogues that cuDNN and cuBLASLt have in common.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_LIBRARY_NVIDIALIBRARY_H
#define DOVETAIL_LIB_LIBRARY_NVIDIALIBRARY_H

#include "dovetail/Library/Library.h"

namespace dovetail {

class NvidiaLibrary : public Library {
public:
  // What a call cannot fuse is applied behind it, by a kernel of the runtime.
  bool hasEpilogue(const CallShape &, const PostOp &) const override { return true; }

protected:
  // Sums are in f32 for all of them.
  mlir::FloatType getComputeType(const CallShape &, mlir::FloatType type) const override {
    return type.isF32() || type.isF16() || type.isBF16() ? type : mlir::FloatType();
  }
};

} // namespace dovetail

#endif // DOVETAIL_LIB_LIBRARY_NVIDIALIBRARY_H
