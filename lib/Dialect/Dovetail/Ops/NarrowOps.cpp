//===- NarrowOps.cpp - Conversions of elements that are only stored -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.widen` and `dovetail.narrow`: integer arithmetic on the bits of elements, which is exact, has no
// branches, and folds.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/NarrowOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// How the bits of a narrow float are a number: sign, exponent and mantissa, as IEEE 754 has them but for special
/// values.
struct Format {
  explicit Format(FloatType type) : mantissa(type.getFPMantissaWidth() - 1), signBit(type.getWidth() - 1) {
    bias = (1 << (signBit - mantissa - 1)) - 1;
    if (isa<Float8E5M2Type>(type)) {
      infinity = 0x7c, nan = 0x7e;
    } else if (isa<Float8E4M3FNType>(type)) {
      nan = 0x7f;
    } else if (isa<Float8E4M3FNUZType, Float8E5M2FNUZType>(type)) {
      isUnsignedZero = true;
      ++bias;
    }
    largest = infinity ? *infinity - 1 : nan ? *nan - 1 : (1 << signBit) - 1;
  }

  int mantissa; ///< Its bits, and the number of the bit of the sign.
  int signBit;
  int bias;
  int largest; ///< The bits, but for the sign, of the largest number.
  std::optional<int> infinity, nan;
  /// There is one zero, and where there would be another, NaN.
  bool isUnsignedZero = false;

  /// The smallest number, and the smallest one that has an implicit bit.
  double getSmallest() const { return std::ldexp(1.0, 1 - bias - mantissa); }
  int getSmallestNormalBits() const { return (128 - bias) << 23; }
};

/// Scalar code on the bits of floats.
class Bits {
public:
  explicit Bits(ElementBuilder &builder) : builder(builder) {}

  Value constant(int64_t value) { return builder.constantInt(i32(), value); }
  Value shiftLeft(Value a, int by) { return by == 0 ? a : builder.create<arith::ShLIOp>(a, constant(by)); }
  Value shiftRight(Value a, int by) { return by == 0 ? a : builder.create<arith::ShRUIOp>(a, constant(by)); }
  Value mask(Value a, int64_t bits) { return builder.create<arith::AndIOp>(a, constant(bits)); }
  Value combine(Value a, Value b) { return builder.create<arith::OrIOp>(a, b); }
  Value add(Value a, int64_t b) { return builder.create<arith::AddIOp>(a, constant(b)); }
  Value add(Value a, Value b) { return builder.create<arith::AddIOp>(a, b); }
  Value is(arith::CmpIPredicate predicate, Value a, int64_t b) {
    return builder.create<arith::CmpIOp>(predicate, a, constant(b));
  }
  Value select(Value condition, Value onTrue, Value onFalse) { return builder.select(condition, onTrue, onFalse); }
  Value select(Value condition, int64_t onTrue, Value onFalse) { return select(condition, constant(onTrue), onFalse); }
  /// 1 where it is true.
  Value count(Value condition) { return builder.create<arith::ExtUIOp>(i32(), condition); }

  Value ofFloat(Value x) { return builder.create<arith::BitcastOp>(i32(), x); }
  Value toFloat(Value bits) { return builder.create<arith::BitcastOp>(f32(), bits); }
  Value ofByte(Value x) { return builder.create<arith::ExtUIOp>(i32(), x); }
  Value toByte(Value bits) { return builder.create<arith::TruncIOp>(builder.getBuilder().getI8Type(), bits); }
  Type i32() { return builder.getBuilder().getI32Type(); }
  FloatType f32() { return builder.getBuilder().getF32Type(); }

  ElementBuilder &builder;
};
} // namespace

/// The bits of a positive f32 that are an infinity; what is above them is NaN.
static constexpr int64_t kInfinity = 0x7f800000, kNaN = 0x7fc00000, kNegativeNaN = 0xffc00000;

//===----------------------------------------------------------------------===//
// WidenOp
//===----------------------------------------------------------------------===//

/// A power of two, whose exponent the byte is; 255 is NaN.
static Value widenPower(Bits bits, Value code) {
  // The smallest one is not normal in f32.
  Value power = bits.select(bits.is(arith::CmpIPredicate::eq, code, 0), 0x00400000, bits.shiftLeft(code, 23));
  return bits.toFloat(bits.select(bits.is(arith::CmpIPredicate::eq, code, 255), kNaN, power));
}

static Value widenFloat(Bits bits, Value code, const Format &format) {
  ElementBuilder &builder = bits.builder;
  int shift = 23 - format.mantissa;
  Value sign = bits.shiftLeft(bits.mask(code, 1 << format.signBit), 31 - format.signBit);
  Value number = bits.mask(code, (1 << format.signBit) - 1);
  Value normal = bits.add(bits.shiftLeft(number, shift), (127 - format.bias) << 23);
  Value small = builder.mul(builder.create<arith::SIToFPOp>(bits.f32(), number),
                            builder.constant(bits.f32(), format.getSmallest()));
  Value isSmall = bits.is(arith::CmpIPredicate::slt, number, 1 << format.mantissa);
  Value result = bits.select(isSmall, bits.ofFloat(small), normal);
  if (format.infinity) // The mantissa tells infinity and NaN apart, as it does in f32.
    result = bits.select(bits.is(arith::CmpIPredicate::sge, number, *format.infinity),
                         bits.combine(bits.shiftLeft(number, shift), bits.constant(kInfinity)), result);
  else if (format.nan)
    result = bits.select(bits.is(arith::CmpIPredicate::eq, number, *format.nan), kNaN, result);
  result = bits.combine(result, sign);
  if (format.isUnsignedZero)
    result = bits.select(bits.is(arith::CmpIPredicate::eq, code, 1 << format.signBit), kNegativeNaN, result);
  return bits.toFloat(result);
}

Value WidenOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  Type type = getOperand().getType().getElementType();
  Value byte = operands[0];
  if (auto floatType = dyn_cast<FloatType>(type)) {
    Bits bits(builder);
    Value code = bits.mask(bits.ofByte(byte), (1 << floatType.getWidth()) - 1);
    return isa<Float8E8M0FNUType>(type) ? widenPower(bits, code) : widenFloat(bits, code, Format(floatType));
  }
  unsigned width = type.getIntOrFloatBitWidth();
  if (type.isUnsignedInteger())
    return builder.create<arith::AndIOp>(byte, builder.constantInt(byte.getType(), (1 << width) - 1));
  Value unused = builder.constantInt(byte.getType(), 8 - width);
  return builder.create<arith::ShRSIOp>(builder.create<arith::ShLIOp>(byte, unused), unused);
}

//===----------------------------------------------------------------------===//
// NarrowOp
//===----------------------------------------------------------------------===//

LogicalResult NarrowOp::verify() {
  Type from = getOperand().getType().getElementType(), to = getTo();
  if (!isNarrow(to))
    return emitOpError("converts to ") << to << ", which is a type to compute with; that is a 'cast'";
  if (isa<FloatType>(to) ? !from.isF32() && !from.isF64() : !from.isInteger(8))
    return emitOpError("converts ") << from << " to " << to << "; to floats it converts f32 and f64, to integers i8";
  if (!llvm::is_contained({"up", "down", "nearest"}, getRoundMode()))
    return emitOpError("has the unknown 'round_mode' \"") << getRoundMode() << "\"";
  return success();
}

/// An f64 as an f32 that rounds to the same number of fewer digits: where digits are lost, the last one is 1.
static Value roundToOdd(Bits bits, Value x) {
  ElementBuilder &builder = bits.builder;
  FloatType f64 = builder.getBuilder().getF64Type();
  Value code = bits.ofFloat(builder.convertFloat(x, bits.f32()));
  // From the bits: a conversion of a conversion may be taken for the number itself.
  Value back = builder.convertFloat(bits.toFloat(bits.mask(code, 0x7fffffff)), f64);
  Value size = builder.create<math::AbsFOp>(x);
  // Beyond all of f32 infinity is right.
  Value isInexact = builder.andB(
      builder.create<arith::CmpFOp>(arith::CmpFPredicate::ONE, back, size),
      builder.create<arith::CmpFOp>(arith::CmpFPredicate::OLT, size, builder.constant(f64, std::ldexp(1.0, 128))));
  Value isAbove = builder.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, back, size);
  Value odd = bits.combine(bits.select(isAbove, bits.add(code, -1), code), bits.constant(1));
  return bits.toFloat(bits.select(isInexact, odd, code));
}

/// The exponent of the power of two that `size`, the bits of a positive f32, is rounded to.
static Value narrowToPower(Bits bits, Value size, bool saturate, StringRef roundMode) {
  using arith::CmpIPredicate;
  Value result = bits.shiftRight(size, 23);
  if (roundMode != "down") {
    // From where on a number is rounded up: digits of those that f32 has as normal ones, and the others.
    int64_t digits = roundMode == "up" ? 1 : 0x400000, others = roundMode == "up" ? 0x400001 : 0x600000;
    Value isUp = bits.is(CmpIPredicate::sge, bits.mask(size, 0x7fffff), digits);
    Value isOtherUp = bits.is(CmpIPredicate::sge, size, others);
    Value isOther = bits.is(CmpIPredicate::eq, result, 0);
    result = bits.add(result, bits.count(bits.builder.select(isOther, isOtherUp, isUp)));
  }
  if (saturate)
    result = bits.select(bits.is(CmpIPredicate::sgt, result, 254), 254, result);
  else
    result = bits.select(bits.is(CmpIPredicate::slt, size, 0x00400000), 255, result);
  return bits.select(bits.is(CmpIPredicate::sgt, size, kInfinity), 255, result);
}

/// `sign`, and `size`, the bits of a positive f32, as the bits of a narrow float.
static Value narrowFloat(Bits bits, Value sign, Value size, const Format &format, bool saturate) {
  using arith::CmpIPredicate;
  ElementBuilder &builder = bits.builder;
  int shift = 23 - format.mantissa;
  // Half of a last digit, less where that would be a tie between an even number and the next one.
  Value half = bits.add(bits.mask(bits.shiftRight(size, shift), 1), (1 << (shift - 1)) - 1);
  Value normal = bits.add(bits.shiftRight(bits.add(size, half), shift), -((127 - format.bias) << format.mantissa));
  // The last digit of this sum is what the smallest number counts.
  Value one = builder.constant(bits.f32(), std::ldexp(format.getSmallest(), 23));
  Value small = builder.create<arith::SubIOp>(bits.ofFloat(builder.add(bits.toFloat(size), one)), bits.ofFloat(one));
  Value isSmall = bits.is(CmpIPredicate::slt, size, format.getSmallestNormalBits());
  Value result = bits.select(isSmall, small, normal);
  Value isAbove = bits.is(CmpIPredicate::sgt, result, format.largest);
  Value isNaN = bits.is(CmpIPredicate::sgt, size, kInfinity);
  if (format.isUnsignedZero) {
    Value signedResult = bits.combine(bits.select(isAbove, format.largest, result), bits.shiftLeft(sign, 7));
    signedResult = bits.select(bits.is(CmpIPredicate::eq, result, 0), 0, signedResult);
    if (!saturate)
      isNaN = builder.create<arith::OrIOp>(isNaN, isAbove);
    return bits.select(isNaN, 0x80, signedResult);
  }
  int beyond = format.infinity.value_or(format.nan.value_or(0));
  result = bits.select(isAbove, saturate || !format.nan ? format.largest : beyond, result);
  result = bits.select(isNaN, format.nan.value_or(0), result);
  if (!format.nan)
    sign = builder.create<arith::XOrIOp>(sign, bits.count(isNaN));
  return bits.combine(result, bits.shiftLeft(sign, format.signBit));
}

Value NarrowOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  Value x = operands[0];
  auto floatType = dyn_cast<FloatType>(getTo());
  if (!floatType)
    return builder.create<arith::AndIOp>(x,
                                         builder.constantInt(x.getType(), (1 << getTo().getIntOrFloatBitWidth()) - 1));
  Bits bits(builder);
  Value code = bits.ofFloat(x.getType().isF64() ? roundToOdd(bits, x) : x);
  Value sign = bits.shiftRight(code, 31), size = bits.mask(code, 0x7fffffff);
  return bits.toByte(isa<Float8E8M0FNUType>(getTo()) ? narrowToPower(bits, size, getSaturate(), getRoundMode())
                                                     : narrowFloat(bits, sign, size, Format(floatType), getSaturate()));
}
