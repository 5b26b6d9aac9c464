//===- Libraries.cpp - What libraries have -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which operations are library calls, and which can be part of the epilogue of one.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

using namespace mlir;
using namespace dovetail;

using MaybePostOp = std::optional<PostOp>;

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// True if a library has windows over as many spatial dimensions as `op` has, and the plan can state them. Larger ones
/// are mistakes that a generated kernel gets right, too.
template <typename OpT> static bool hasModestWindows(OpT op) {
  constexpr int64_t limit = int64_t(1) << 20;
  auto isModest = [](ArrayRef<int64_t> values) {
    return llvm::all_of(values, [](int64_t value) { return -limit <= value && value <= limit; });
  };
  int64_t rank = op.getType().getRank();
  return rank >= 3 && rank <= 5 && isModest(op.getStrides()) && isModest(op.getDilations()) &&
         isModest(op.getPadsLow()) && isModest(op.getPadsHigh());
}

StringRef ConvOp::getLibraryCall() { return hasModestWindows(*this) ? "convolution" : ""; }
StringRef ConvTransposeOp::getLibraryCall() { return hasModestWindows(*this) ? "convolution" : ""; }
StringRef MatMulOp::getLibraryCall() { return "matmul"; }

StringRef PoolOp::getLibraryCall() {
  // The library's dilated pooling is its slow reference, and not right where a window hits padding alone.
  for (auto [kernel, dilation] : llvm::zip_equal(getKernel(), getDilations()))
    if (kernel > 1 && dilation > 1)
      return "";
  return !getCeil() && getKind() != PoolKind::Lp && hasModestWindows(*this) ? "pool" : "";
}

bool PoolOp::hasEpilogue() { return false; }

//===----------------------------------------------------------------------===//
// Post-operations
//===----------------------------------------------------------------------===//

/// The value of a constant of f32 whose elements are all equal.
static std::optional<float> getSplat(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements || !elements.isSplat() || !elements.getElementType().isF32())
    return std::nullopt;
  return elements.getSplatValue<APFloat>().convertToFloat();
}

static PostOp plain(PostOpKind kind) { return {.kind = kind}; }
static PostOp with(PostOpKind kind, float alpha, float beta = 0) {
  return {.kind = kind, .parameters = PostOp::Parameters{alpha, beta}};
}

MaybePostOp AddOp::getPostOp(unsigned operand) { return PostOp{.kind = PostOpKind::AddTensor, .operand = 1 - operand}; }
MaybePostOp MulOp::getPostOp(unsigned operand) { return PostOp{.kind = PostOpKind::MulTensor, .operand = 1 - operand}; }

MaybePostOp MaxOp::getPostOp(unsigned operand) {
  std::optional<float> bound = getSplat(getOperand(1 - operand));
  return bound ? MaybePostOp(with(PostOpKind::Clip, *bound, std::numeric_limits<float>::infinity())) : std::nullopt;
}
MaybePostOp MinOp::getPostOp(unsigned operand) {
  std::optional<float> bound = getSplat(getOperand(1 - operand));
  return bound ? MaybePostOp(with(PostOpKind::Clip, -std::numeric_limits<float>::infinity(), *bound)) : std::nullopt;
}

MaybePostOp ReluOp::getPostOp(unsigned) { return plain(PostOpKind::Relu); }
MaybePostOp SigmoidOp::getPostOp(unsigned) { return plain(PostOpKind::Sigmoid); }
MaybePostOp TanhOp::getPostOp(unsigned) { return plain(PostOpKind::Tanh); }
MaybePostOp HardSwishOp::getPostOp(unsigned) { return plain(PostOpKind::HardSwish); }
MaybePostOp GeluOp::getPostOp(unsigned) {
  return plain(getApproximate() == "tanh" ? PostOpKind::GeluTanh : PostOpKind::Gelu);
}
MaybePostOp LeakyReluOp::getPostOp(unsigned) { return with(PostOpKind::LeakyRelu, getAlpha().convertToFloat()); }
MaybePostOp EluOp::getPostOp(unsigned) { return with(PostOpKind::Elu, getAlpha().convertToFloat()); }
MaybePostOp SwishOp::getPostOp(unsigned) { return with(PostOpKind::Swish, getAlpha().convertToFloat()); }
MaybePostOp HardSigmoidOp::getPostOp(unsigned) {
  return with(PostOpKind::HardSigmoid, getAlpha().convertToFloat(), getBeta().convertToFloat());
}
