//===- PostOps.cpp - Steps of epilogues -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what elementwise operations are as steps of a library call's epilogue.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;

using MaybePostOp = std::optional<PostOp>;

/// The value of a constant of floats whose elements are all equal, if f32 has it.
static std::optional<float> getSplat(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements || !elements.isSplat() || !isa<FloatType>(elements.getElementType()))
    return std::nullopt;
  auto number = elements.getSplatValue<APFloat>();
  bool losesInfo;
  number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &losesInfo);
  return losesInfo ? std::nullopt : std::optional(number.convertToFloat());
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
MaybePostOp LeakyReluOp::getPostOp(unsigned) {
  float alpha = getAlpha().convertToFloat();
  // Minus infinity times zero is NaN, which libraries make zero.
  return alpha != 0 ? MaybePostOp(with(PostOpKind::LeakyRelu, alpha)) : std::nullopt;
}
MaybePostOp EluOp::getPostOp(unsigned) { return with(PostOpKind::Elu, getAlpha().convertToFloat()); }
MaybePostOp SwishOp::getPostOp(unsigned) { return with(PostOpKind::Swish, getAlpha().convertToFloat()); }
MaybePostOp HardSigmoidOp::getPostOp(unsigned) {
  return with(PostOpKind::HardSigmoid, getAlpha().convertToFloat(), getBeta().convertToFloat());
}
