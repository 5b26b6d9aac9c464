//===- ElementwiseActivations.cpp - Activation functions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the activation functions of neural networks, as ONNX defines them.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ScalarSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <numbers>

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// Piecewise linear
//===----------------------------------------------------------------------===//

Value ReluOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::relu(builder, operands[0], isUnsignedElement(getOperand().getType()));
}

Value LeakyReluOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::inWide(builder, operands[0], [&](Value x) {
    Value scaled = builder.mul(x, builder.constant(x.getType(), getAlpha().convertToFloat()));
    return builder.select(scalar::less(builder, x, builder.zero(x.getType())), scaled, x);
  });
}

Value PReluOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  Value x = operands[0];
  Value negative = scalar::less(builder, x, builder.zero(x.getType()), isUnsignedElement(getLhs().getType()));
  return builder.select(negative, builder.mul(x, operands[1]), x);
}

Value ThresholdedReluOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::inWide(builder, operands[0], [&](Value x) {
    Value alpha = builder.constant(x.getType(), getAlpha().convertToFloat());
    return builder.select(scalar::greater(builder, x, alpha), x, builder.zero(x.getType()));
  });
}

/// max(0, min(1, alpha * x + beta)).
static Value hardSigmoid(ElementBuilder &builder, Value x, double alpha, double beta) {
  Value scaled = builder.mul(x, builder.constant(x.getType(), alpha));
  return scalar::clamp(builder, builder.add(scaled, builder.constant(x.getType(), beta)), 0, 1);
}

Value HardSigmoidOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::inWide(builder, operands[0], [&](Value x) {
    return hardSigmoid(builder, x, getAlpha().convertToFloat(), getBeta().convertToFloat());
  });
}

Value HardSwishOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::inWide(builder, operands[0],
                        [&](Value x) { return builder.mul(x, hardSigmoid(builder, x, 1.0 / 6, 0.5)); });
}

Value ShrinkOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  auto shrink = [&](Value x) {
    double lambda = getLambd().convertToFloat();
    Value bias = builder.constant(x.getType(), getBias().convertToFloat());
    Value below = scalar::less(builder, x, builder.constant(x.getType(), -lambda));
    Value above = scalar::greater(builder, x, builder.constant(x.getType(), lambda));
    Value positive = builder.select(above, builder.sub(x, bias), builder.zero(x.getType()));
    return builder.select(below, builder.add(x, bias), positive);
  };
  Value x = operands[0];
  Type type = getElementTypeOrSelf(getOperand().getType());
  if (isa<FloatType>(type))
    return scalar::inWide(builder, x, shrink);
  // The bounds and the bias are floats for integers, too.
  Type wide = builder.getBuilder().getF64Type();
  return scalar::cast(builder, shrink(scalar::cast(builder, x, type, wide)), wide, type);
}

//===----------------------------------------------------------------------===//
// Exponential
//===----------------------------------------------------------------------===//

/// exp(x) - 1, as ONNX writes it.
static Value expMinusOne(ElementBuilder &builder, Value x) {
  return builder.sub(builder.create<math::ExpOp>(x), builder.constant(x.getType(), 1));
}

Value EluOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::inWide(builder, operands[0], [&](Value x) {
    Value alpha = builder.constant(x.getType(), getAlpha().convertToFloat());
    Value negative = builder.mul(alpha, expMinusOne(builder, x));
    return builder.select(scalar::less(builder, x, builder.zero(x.getType())), negative, x);
  });
}

Value CeluOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::inWide(builder, operands[0], [&](Value x) {
    Value alpha = builder.constant(x.getType(), getAlpha().convertToFloat());
    Value negative = builder.mul(alpha, expMinusOne(builder, builder.div(x, alpha)));
    return builder.select(scalar::less(builder, x, builder.zero(x.getType())), negative, x);
  });
}

Value SeluOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::inWide(builder, operands[0], [&](Value x) {
    Value alpha = builder.constant(x.getType(), getAlpha().convertToFloat());
    Value negative = builder.mul(alpha, expMinusOne(builder, x));
    Value inner = builder.select(scalar::less(builder, x, builder.zero(x.getType())), negative, x);
    return builder.mul(builder.constant(x.getType(), getGamma().convertToFloat()), inner);
  });
}

Value SigmoidOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::inWide(builder, operands[0], [&](Value x) { return scalar::sigmoid(builder, x); });
}

Value SwishOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::inWide(builder, operands[0], [&](Value x) {
    Value scaled = builder.mul(x, builder.constant(x.getType(), getAlpha().convertToFloat()));
    return builder.mul(x, scalar::sigmoid(builder, scaled));
  });
}

Value SoftplusOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  // log(1 + exp(x)) with an exponential that cannot overflow.
  return scalar::inWide(builder, operands[0], [&](Value x) {
    Value power = builder.create<math::ExpOp>(builder.create<arith::NegFOp>(builder.create<math::AbsFOp>(x)));
    return builder.add(scalar::relu(builder, x), builder.create<math::Log1pOp>(power));
  });
}

Value SoftsignOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::inWide(builder, operands[0], [&](Value x) {
    Value one = builder.constant(x.getType(), 1);
    return builder.div(x, builder.add(one, builder.create<math::AbsFOp>(x)));
  });
}

Value MishOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  // tanh(log(1 + e)) = n / (n + 2) with e = exp(x) and n = e * (e + 2); from x = 20 on it is 1 in every type.
  return scalar::inWide(builder, operands[0], [&](Value x) {
    Value two = builder.constant(x.getType(), 2);
    Value power = builder.create<math::ExpOp>(x);
    Value n = builder.mul(power, builder.add(power, two));
    Value product = builder.mul(x, builder.div(n, builder.add(n, two)));
    return builder.select(scalar::greater(builder, x, builder.constant(x.getType(), 20)), x, product);
  });
}

//===----------------------------------------------------------------------===//
// Gelu
//===----------------------------------------------------------------------===//

LogicalResult GeluOp::verify() {
  if (getApproximate() != "none" && getApproximate() != "tanh")
    return emitOpError("has approximate = \"") << getApproximate() << "\"; it is \"none\" or \"tanh\"";
  return success();
}

Value GeluOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::inWide(builder, operands[0], [&](Value x) {
    Type type = x.getType();
    Value bent;
    if (getApproximate() == "tanh") {
      Value cube = builder.mul(builder.mul(x, x), x);
      Value inner = builder.add(x, builder.mul(cube, builder.constant(type, 0.044715)));
      bent = builder.create<math::TanhOp>(builder.mul(inner, builder.constant(type, std::sqrt(2 / std::numbers::pi))));
    } else {
      bent = builder.create<math::ErfOp>(builder.mul(x, builder.constant(type, std::sqrt(0.5))));
    }
    Value half = builder.mul(x, builder.constant(type, 0.5));
    return builder.mul(half, builder.add(bent, builder.constant(type, 1)));
  });
}
