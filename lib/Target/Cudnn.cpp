//===- Cudnn.cpp - What cuDNN does -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes cuDNN 9, of which convolutions are used.
//
//===----------------------------------------------------------------------===//

#include "Factories.h"
#include "Windows.h"

using namespace mlir;
using namespace dovetail;

namespace {
class Cudnn : public Library {
public:
  StringRef getName() const override { return "cudnn"; }
  // What a graph cannot fuse is applied behind it, by a kernel of the runtime.
  bool hasEpilogue(Operation *, const PostOp &) const override { return true; }
  FormatPreference getFormatPreference(Operation *) const override { return FormatPreference::ChannelsLast; }

protected:
  bool hasOperation(Operation *op) const override { return isModestConvolution(op); }
  // Sums are in f32 for all of them.
  FloatType getComputeType(Operation *, FloatType type) const override {
    return type.isF32() || type.isF16() || type.isBF16() ? type : FloatType();
  }
};
} // namespace

std::unique_ptr<Library> dovetail::createCudnn(ArrayRef<std::string>) { return std::make_unique<Cudnn>(); }
