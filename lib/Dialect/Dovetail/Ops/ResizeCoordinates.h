//===- ResizeCoordinates.h - Which operand coordinates a resize reads -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the coordinate arithmetic of resize, once for the compiler and once as emitted code.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_RESIZECOORDINATES_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_RESIZECOORDINATES_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

// What a rank needs is found while compiling and read at run time. Both must choose the same pixels, and the same as
// other implementations of ONNX do, so the arithmetic is written once, as templates over what computes, and rounds to
// f32 where ONNX Runtime does. It has no product to which something is added, so contraction cannot change it.

namespace dovetail::resize {

/// Coordinates stay in range of i32 and exact in f32.
inline constexpr int64_t maxExtent = int64_t(1) << 24;

/// One dimension of a resize.
struct Dim {
  int64_t operandExtent, resultExtent;
  float scale;
  CoordinateMode mode;
  /// For tf_crop_and_resize.
  float roiStart = 0, roiEnd = 1;
  /// ONNX Runtime leaves dimensions of scale 1 as they are, and all if the shape does not change, whatever the mode.
  bool isCopied = false;
};

/// Computes now.
struct HostArithmetic {
  using Index = int64_t;
  using Real = float;
  using Condition = bool;

  float toReal(int64_t i) { return static_cast<float>(i); }
  double toDouble(float x) { return x; }
  float toReal(double x) { return static_cast<float>(x); }
  int64_t toIndex(float x) { return static_cast<int64_t>(x); }
  float constant(float x) { return x; }

  template <typename T> T add(T a, T b) { return a + b; }
  template <typename T> T sub(T a, T b) { return a - b; }
  template <typename T> T mul(T a, T b) { return a * b; }
  template <typename T> T div(T a, T b) { return a / b; }
  float floor(float x) { return std::floor(x); }
  float ceil(float x) { return std::ceil(x); }
  bool less(float a, float b) { return a < b; }
  bool either(bool a, bool b) { return a || b; }
  float select(bool condition, float a, float b) { return condition ? a : b; }

  int64_t addIndex(int64_t i, int64_t offset) { return i + offset; }
  int64_t clampIndex(int64_t i, int64_t lo, int64_t hi) { return std::min(std::max(i, lo), hi); }
};

/// Emits code.
struct EmittedArithmetic {
  using Index = mlir::Value;
  using Real = mlir::Value;
  using Condition = mlir::Value;

  ElementBuilder &builder;

  mlir::Type f32() { return builder.getBuilder().getF32Type(); }
  mlir::Type i32() { return builder.getBuilder().getI32Type(); }

  mlir::Value toReal(mlir::Value x) {
    if (mlir::isa<mlir::FloatType>(x.getType()))
      return builder.convertFloat(x, builder.getBuilder().getF32Type());
    return builder.create<mlir::arith::SIToFPOp>(f32(), builder.create<mlir::arith::IndexCastOp>(i32(), x));
  }
  mlir::Value toDouble(mlir::Value x) { return builder.convertFloat(x, builder.getBuilder().getF64Type()); }
  mlir::Value toIndex(mlir::Value x) {
    return builder.create<mlir::arith::IndexCastOp>(builder.getBuilder().getIndexType(),
                                                    builder.create<mlir::arith::FPToSIOp>(i32(), x));
  }
  mlir::Value constant(float x) { return builder.constant(f32(), x); }

  mlir::Value add(mlir::Value a, mlir::Value b) { return builder.add(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return builder.sub(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return builder.mul(a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return builder.div(a, b); }
  mlir::Value add(mlir::Value a, double b) { return add(a, builder.constant(a.getType(), b)); }
  mlir::Value sub(mlir::Value a, double b) { return sub(a, builder.constant(a.getType(), b)); }
  mlir::Value mul(mlir::Value a, double b) { return mul(a, builder.constant(a.getType(), b)); }
  mlir::Value div(mlir::Value a, double b) { return div(a, builder.constant(a.getType(), b)); }
  mlir::Value floor(mlir::Value x) { return builder.create<mlir::math::FloorOp>(x); }
  mlir::Value ceil(mlir::Value x) { return builder.create<mlir::math::CeilOp>(x); }
  mlir::Value less(mlir::Value a, mlir::Value b) {
    return builder.create<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::OLT, a, b);
  }
  mlir::Value either(mlir::Value a, mlir::Value b) { return builder.create<mlir::arith::OrIOp>(a, b); }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) { return builder.select(condition, a, b); }

  mlir::Value addIndex(mlir::Value i, int64_t offset) { return builder.addI(i, offset); }
  mlir::Value clampIndex(mlir::Value i, int64_t lo, int64_t hi) { return builder.clampI(i, lo, hi); }
};

/// The operand's coordinate for coordinate `i` of the result.
template <typename A> typename A::Real getSource(A &a, const Dim &dim, typename A::Index i) {
  float operandExtent = static_cast<float>(dim.operandExtent);
  float resultExtent = static_cast<float>(dim.resultExtent);
  auto x = a.toReal(i);
  switch (dim.mode) {
  case CoordinateMode::PytorchHalfPixel:
    if (dim.resultExtent <= 1)
      return a.constant(0.0f);
    [[fallthrough]];
  case CoordinateMode::HalfPixel:
    return a.sub(a.div(a.add(x, 0.5f), dim.scale), 0.5f);
  case CoordinateMode::HalfPixelSymmetric: {
    float width = dim.scale * operandExtent;
    float adjustment = resultExtent / width;
    float centre = operandExtent / 2;
    float offset = centre * (1 - adjustment);
    auto pixel = a.div(a.add(a.toDouble(x), 0.5), static_cast<double>(dim.scale));
    return a.toReal(a.sub(a.add(pixel, static_cast<double>(offset)), 0.5));
  }
  case CoordinateMode::AlignCorners:
    if (dim.resultExtent == 1)
      return a.constant(0.0f);
    return a.div(a.mul(x, operandExtent - 1), resultExtent - 1);
  case CoordinateMode::Asymmetric:
    return a.div(x, dim.scale);
  case CoordinateMode::TfCropAndResize: {
    if (dim.resultExtent <= 1)
      return a.constant(static_cast<float>(0.5 * (dim.roiStart + dim.roiEnd) * (operandExtent - 1)));
    float start = dim.roiStart * (operandExtent - 1);
    float part = dim.roiEnd - dim.roiStart;
    return a.add(a.div(a.mul(a.mul(x, part), operandExtent - 1), resultExtent - 1), start);
  }
  case CoordinateMode::TfHalfPixelForNN:
    return a.div(a.add(x, 0.5f), dim.scale);
  }
  llvm_unreachable("unknown coordinate mode");
}

/// Whether a coordinate is outside of the operand, where tf_crop_and_resize extrapolates.
template <typename A> typename A::Condition isOutside(A &a, const Dim &dim, typename A::Real x) {
  return a.either(a.less(x, a.constant(0.0f)), a.less(a.constant(static_cast<float>(dim.operandExtent - 1)), x));
}

/// `x` limited to [lo, hi].
template <typename A> typename A::Real limit(A &a, typename A::Real x, float lo, float hi) {
  auto least = a.constant(lo), most = a.constant(hi);
  x = a.select(a.less(least, x), x, least);
  return a.select(a.less(x, most), x, most);
}

/// The pixel nearest to coordinate `x`.
template <typename A> typename A::Index getNearest(A &a, const Dim &dim, NearestMode mode, typename A::Real x) {
  auto below = a.floor(x);
  auto fraction = a.sub(x, below);
  auto above = a.add(below, 1.0f);
  auto pixel = below;
  switch (mode) {
  case NearestMode::Floor:
    break;
  case NearestMode::Ceil:
    pixel = a.ceil(x);
    break;
  case NearestMode::RoundPreferFloor:
    pixel = a.select(a.less(a.constant(0.5f), fraction), above, below);
    break;
  case NearestMode::RoundPreferCeil:
    pixel = a.select(a.less(fraction, a.constant(0.5f)), below, above);
    break;
  }
  return a.toIndex(limit(a, pixel, 0.0f, static_cast<float>(dim.operandExtent - 1)));
}

/// The two pixels around a coordinate; `x` is the coordinate, limited to the operand.
template <typename A> struct LinearTaps {
  typename A::Real x;
  typename A::Index first, second;
};
template <typename A> LinearTaps<A> getLinear(A &a, const Dim &dim, typename A::Real x) {
  auto inside = limit(a, x, 0.0f, static_cast<float>(dim.operandExtent - 1));
  auto first = a.toIndex(inside);
  return {inside, first, a.clampIndex(a.addIndex(first, 1), 0, dim.operandExtent - 1)};
}

/// The pixel before coordinate `x`, unlimited, and the distance to it. Cubic interpolation reads it, the one before and
/// the two behind, each limited to the operand.
template <typename A> struct CubicTaps {
  typename A::Index base;
  typename A::Real fraction;

  /// Position number `tap` of four, possibly outside of the operand.
  typename A::Index position(A &a, int tap) { return a.addIndex(base, tap - 1); }
};
template <typename A> CubicTaps<A> getCubic(A &a, typename A::Real x) {
  auto below = a.floor(x);
  // Far outside, where the pixels are all the same, only the range of the conversion matters.
  constexpr float far = float(int64_t(1) << 30);
  return {a.toIndex(limit(a, below, -far, far)), a.sub(x, below)};
}

/// The first and last pixel that each result coordinate reads; last < first where it reads none.
struct Table {
  std::vector<int64_t> first, last;
  /// Whether some coordinate reads none.
  bool extrapolates = false;
};
Table computeTable(const Dim &dim, ResizeMode mode, NearestMode nearest);

} // namespace dovetail::resize

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_RESIZECOORDINATES_H
