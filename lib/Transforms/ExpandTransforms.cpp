//===- ExpandTransforms.cpp - Fourier transforms as libraries have them ---===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces Fourier transforms by those that libraries do and elementwise operations around them.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/SpectralOps.h"
#include "dovetail/Transforms/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_EXPANDTRANSFORMS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
/// A value times a number.
struct Scaled {
  Value value;
  double factor = 1;
};

struct ExpandTransforms : dovetail::impl::ExpandTransformsBase<ExpandTransforms> {
  using ExpandTransformsBase::ExpandTransformsBase;

  void runOnOperation() override;
  void expand(DftOp op);

  /// The products that came behind transforms.
  DenseMap<Value, Scaled> products;
};
} // namespace

/// `x` with imaginary parts of zero.
static Value addImaginary(OpBuilder &builder, Location loc, Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> low(type.getRank(), 0), high(low);
  high.back() = 1;
  return PadOp::create(builder, loc, x, /*value=*/Value(), low, high, PadMode::Constant);
}

static Value scale(OpBuilder &builder, Location loc, Scaled scaled) {
  auto scalar = RankedTensorType::get({}, getElementTypeOrSelf(scaled.value.getType()));
  Attribute factor = FloatAttr::get(scalar.getElementType(), scaled.factor);
  return MulOp::create(builder, loc, scaled.value,
                       ConstantOp::create(builder, loc, DenseElementsAttr::get(scalar, factor)));
}

/// Onesided spectra with zeros for the imaginary parts of the first and last element along `axis`.
static Value clearEnds(OpBuilder &builder, Location loc, Value x, int64_t axis) {
  auto type = cast<RankedTensorType>(x.getType());
  int64_t count = type.getDimSize(axis);
  SmallVector<int64_t> shape(type.getRank(), 1);
  shape[axis] = count;
  shape.back() = 2;
  SmallVector<bool> isCleared(2 * count, false);
  isCleared[1] = isCleared[2 * count - 1] = true;
  auto mask = DenseElementsAttr::get(RankedTensorType::get(shape, builder.getI1Type()), isCleared);
  Attribute zero = FloatAttr::get(type.getElementType(), 0.0);
  Value zeros =
      ConstantOp::create(builder, loc, DenseElementsAttr::get(RankedTensorType::get({}, type.getElementType()), zero));
  return SelectOp::create(builder, loc, ConstantOp::create(builder, loc, mask), zeros, x);
}

void ExpandTransforms::expand(DftOp op) {
  if (op.getUnscaled() || (op.isPlain() && !products.contains(op.getOperand())))
    return;
  OpBuilder builder(op);
  // Only what computes the result has its name.
  Location loc = withoutTensorName(op.getLoc());
  Scaled operand{op.getOperand()};
  // Scales go behind transforms, of which there may be one after the other.
  if (auto product = products.find(operand.value); product != products.end() && operand.value.hasOneUse())
    operand = product->second;
  if (op.readsReal() && !op.getOnesided())
    operand.value = addImaginary(builder, loc, operand.value);
  if (op.getInverse())
    operand.factor /= static_cast<double>(op.getLength());
  // There is an operation on the spectra of real numbers in any case.
  if (op.getInverse() && op.getOnesided()) {
    operand.value = clearEnds(builder, loc, scale(builder, loc, operand), op.getAxis());
    operand.factor = 1;
  }
  Value result = DftOp::create(builder, loc, operand.value, op.getTable(), op.getAxis(), op.getLength(),
                               op.getInverse(), op.getOnesided(), /*unscaled=*/op.getInverse());
  if (operand.factor != 1) {
    Scaled scaled{result, operand.factor};
    result = scale(builder, loc, scaled);
    products[result] = scaled;
  }
  result.getDefiningOp()->setLoc(op.getLoc());
  auto before = op.getOperand().getDefiningOp<MulOp>();
  op.replaceAllUsesWith(result);
  op.erase();
  // A product that has gone behind.
  if (before && before->use_empty() && products.erase(before.getResult())) {
    Operation *factor = before.getRhs().getDefiningOp();
    before.erase();
    factor->erase();
  }
}

void ExpandTransforms::runOnOperation() {
  products.clear();
  SmallVector<DftOp> transforms;
  getOperation()->walk([&](DftOp op) { transforms.push_back(op); });
  for (DftOp op : transforms)
    expand(op);
}
