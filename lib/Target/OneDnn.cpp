//===- OneDnn.cpp - What oneDNN does -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes oneDNN 2.6 on x86-64.
//
//===----------------------------------------------------------------------===//

#include "Factories.h"
#include "Windows.h"

using namespace mlir;
using namespace dovetail;

namespace {
class OneDnn : public Library {
public:
  StringRef getName() const override { return "onednn"; }
  bool hasEpilogue(Operation *op, const PostOp &) const override { return !isa<PoolOp>(op); }
  FormatPreference getFormatPreference(Operation *op) const override {
    return isa<MatMulOp>(op) ? FormatPreference::RowMajor : FormatPreference::ChannelsLast;
  }

protected:
  bool hasOperation(Operation *op) const override;
  FloatType getComputeType(Operation *op, FloatType type) const override { return type.isF32() ? type : FloatType(); }
};
} // namespace

bool OneDnn::hasOperation(Operation *op) const {
  auto pool = dyn_cast<PoolOp>(op);
  if (!pool)
    return isa<MatMulOp>(op) || isModestConvolution(op);
  // Dilated pooling is the library's slow reference, and not right where a window hits padding alone.
  for (auto [kernel, dilation] : llvm::zip_equal(pool.getKernel(), pool.getDilations()))
    if (kernel > 1 && dilation > 1)
      return false;
  return !pool.getCeil() && pool.getKind() != PoolKind::Lp && isModestPool(pool);
}

std::unique_ptr<Library> dovetail::createOneDnn(ArrayRef<std::string>) { return std::make_unique<OneDnn>(); }
