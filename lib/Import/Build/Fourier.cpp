//===- Fourier.cpp - Building Fourier transforms --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines FourierBuilder.
//
//===----------------------------------------------------------------------===//

#include "Fourier.h"

#include "dovetail/Dialect/Dovetail/Ops/FourierPlan.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/SpectralOps.h"

#include <cmath>

using namespace dovetail;
using namespace dovetail::importer;

using Table = std::vector<std::complex<double>>;

mlir::Value FourierBuilder::take(mlir::Value value, int64_t dim, int64_t start, int64_t size, int64_t step) {
  if (!value)
    return {};
  llvm::SmallVector<int64_t> starts(builder.getRank(value), 0), sizes(builder.getShape(value)), steps(sizes.size(), 1);
  starts[dim] = size > 0 ? start : 0;
  sizes[dim] = size;
  steps[dim] = step;
  return builder.slice(value, starts, sizes, steps);
}

mlir::Value FourierBuilder::resize(mlir::Value value, int64_t dim, int64_t extent) {
  if (!value)
    return {};
  int64_t missing = extent - builder.getShape(value)[dim];
  if (missing <= 0)
    return take(value, dim, 0, extent);
  llvm::SmallVector<int64_t> low(builder.getRank(value), 0), high(low);
  high[dim] = missing;
  return builder.create<PadOp>(value, OptionalOperand(), low, high, PadMode::Constant);
}

mlir::Value FourierBuilder::multiply(mlir::Value value, llvm::ArrayRef<std::complex<double>> table, int64_t dims) {
  if (!value)
    return {};
  // (a + bi)(c + di): both parts times c, and, exchanged, times -d and d.
  llvm::SmallVector<double> same, other;
  for (std::complex<double> number : table) {
    same.append({number.real(), number.real()});
    other.append({-number.imag(), number.imag()});
  }
  mlir::RankedTensorType type = builder.getType(value);
  llvm::SmallVector<int64_t> shape(type.getShape().drop_front(axis));
  for (size_t dim = dims; dim + 1 < shape.size(); ++dim)
    shape[dim] = 1;
  auto factors = [&](llvm::ArrayRef<double> numbers) { return builder.constantFloats(type.clone(shape), numbers); };
  mlir::Value exchanged = take(value, type.getRank() - 1, 1, 2, -1);
  return builder.create<AddOp>(builder.create<MulOp>(value, factors(same)),
                               builder.create<MulOp>(exchanged, factors(other)));
}

mlir::Value FourierBuilder::createDft(mlir::Value value, int64_t length, bool inverse, bool onesided) {
  std::optional<FourierPlan> plan = FourierPlan::create(length, onesided);
  if (!value || !plan)
    return {};
  auto type = mlir::RankedTensorType::get(2 * plan->getTableSize(), builder.getType(value).getElementType());
  return builder.create<DftOp>(value, builder.constantFloats(type, plan->getTable()), axis, length, inverse, onesided);
}

/// The prime factors of a number, ascending.
static llvm::SmallVector<int64_t> factorize(int64_t number) {
  llvm::SmallVector<int64_t> factors;
  for (int64_t factor = 2; factor * factor <= number; ++factor)
    for (; number % factor == 0; number /= factor)
      factors.push_back(factor);
  if (number > 1)
    factors.push_back(number);
  return factors;
}

mlir::Value FourierBuilder::transform(mlir::Value value, bool inverse) {
  if (!value)
    return {};
  int64_t length = getLength(value);
  if (FourierPlan::create(length, /*onesided=*/false))
    return createDft(value, length, inverse, /*onesided=*/false);
  value = resize(value, builder.getRank(value) - 1, 2);
  llvm::SmallVector<int64_t> factors = factorize(length);
  if (!FourierPlan::create(factors.back(), /*onesided=*/false))
    return transformByConvolution(value, inverse);
  // As even as the factors allow, from below.
  int64_t first = 1;
  for (int64_t factor : llvm::reverse(factors))
    if (first * factor <= static_cast<int64_t>(std::sqrt(static_cast<double>(length))) || first == 1)
      first *= factor;
  return transformInParts(value, first, inverse);
}

mlir::Value FourierBuilder::transformInParts(mlir::Value value, int64_t first, bool inverse) {
  // Point n1 * N2 + n2 goes to k1 + N1 * k2.
  int64_t length = getLength(value), second = length / first;
  llvm::SmallVector<int64_t> shape(builder.getShape(value)), whole(shape);
  shape[axis] = second;
  shape.insert(shape.begin() + axis, first);
  mlir::Value parts = transform(builder.reshape(value, shape), inverse);
  Table roots;
  for (int64_t k = 0; k < first; ++k)
    for (int64_t n = 0; n < second; ++n) {
      std::complex<double> root = getRootOfOne(k * n, length);
      roots.push_back(inverse ? std::conj(root) : root);
    }
  parts = FourierBuilder(builder, axis + 1).transform(multiply(parts, roots, 2), inverse);
  llvm::SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  std::swap(order[axis], order[axis + 1]);
  return parts ? builder.reshape(builder.transpose(parts, order), whole) : mlir::Value();
}

/// The transform of a table whose length has small factors only.
static Table transformTable(const Table &table) {
  int64_t length = table.size();
  if (length == 1)
    return table;
  int64_t factor = factorize(length).front(), rest = length / factor;
  std::vector<Table> parts(factor);
  for (int64_t n = 0; n < length; ++n)
    parts[n % factor].push_back(table[n]);
  for (Table &part : parts)
    part = transformTable(part);
  Table result(length);
  for (int64_t k = 0; k < length; ++k)
    for (int64_t n = 0; n < factor; ++n)
      result[k] += parts[n][k % rest] * getRootOfOne(n * k % length, length);
  return result;
}

/// The smallest number from `least` on whose factors are at most 5.
static int64_t roundUp(int64_t least) {
  int64_t best = INT64_MAX;
  for (int64_t fives = 1; fives < 2 * least; fives *= 5)
    for (int64_t threes = fives; threes < 2 * least; threes *= 3) {
      int64_t number = threes;
      while (number < least)
        number *= 2;
      best = std::min(best, number);
    }
  return best;
}

mlir::Value FourierBuilder::transformByConvolution(mlir::Value value, bool inverse) {
  // With b[n] = exp(pi i n^2 / N), kn being (k^2 + n^2 - (k - n)^2) / 2, X[k] is the sum over n of x[n] b*[n] b[k - n],
  // times b*[k]: a cyclic convolution of any length from 2 N - 1 on.
  int64_t length = getLength(value), size = roundUp(2 * length - 1);
  Table chirp, conjugate, kernel(size);
  for (int64_t n = 0; n < length; ++n) {
    // n^2 modulo 2 N, one after the other.
    auto square = static_cast<int64_t>(static_cast<unsigned __int128>(n) * n % (2 * length));
    std::complex<double> root = getRootOfOne(square, 2 * length);
    conjugate.push_back(inverse ? std::conj(root) : root);
    chirp.push_back(std::conj(conjugate.back()));
    kernel[n] = kernel[(size - n) % size] = chirp.back();
  }
  value = resize(multiply(value, conjugate, 1), axis, size);
  value = multiply(transform(value, /*inverse=*/false), transformTable(kernel), 1);
  if (inverse)
    for (std::complex<double> &number : conjugate)
      number /= static_cast<double>(length);
  return multiply(resize(transform(value, /*inverse=*/true), axis, length), conjugate, 1);
}

mlir::Value FourierBuilder::transformReal(mlir::Value value) {
  if (!value)
    return {};
  int64_t length = getLength(value);
  if (FourierPlan::create(length, /*onesided=*/true))
    return createDft(value, length, /*inverse=*/false, /*onesided=*/true);
  return resize(transform(value, /*inverse=*/false), axis, length / 2 + 1);
}

mlir::Value FourierBuilder::invertReal(mlir::Value spectrum, int64_t length) {
  if (!spectrum)
    return {};
  if (FourierPlan::create(length, /*onesided=*/true))
    return createDft(spectrum, length, /*inverse=*/true, /*onesided=*/true);
  // The other half are the conjugates. Imaginary parts of what has no other half stay imaginary.
  int64_t last = builder.getRank(spectrum) - 1, others = (length - 1) / 2;
  mlir::Value mirrored = take(spectrum, axis, others, others, -1);
  auto signs = mlir::RankedTensorType::get(2, builder.getType(spectrum).getElementType());
  mlir::Value conjugates = builder.create<MulOp>(mirrored, builder.constantFloats(signs, {1, -1}));
  if (!conjugates)
    return {};
  mlir::Value whole = others > 0 ? builder.create<ConcatOp>(mlir::ValueRange({spectrum, conjugates}), axis) : spectrum;
  return take(transform(whole, /*inverse=*/true), last, 0, 1);
}
