//===- Reference.h - Loop nests to compare with -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines library operations as plain loops over full tensors in double precision.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_RUNTIME_REFERENCE_H
#define DOVETAIL_TEST_RUNTIME_REFERENCE_H

#include "PlanBuilder.h"

namespace dovetail::test {

struct ConvolutionCase {
  int64_t batch = 1, in = 1, out = 1, groups = 1;
  Shape extents, kernel, strides, dilations, pads, results; ///< Spatial; `results` are the extents of the result.
  bool transposed = false;

  int spatial() const { return static_cast<int>(extents.size()); }
  Shape inputShape() const;
  Shape weightsShape() const;
  Shape outputShape() const;
  std::string str() const;
};

/// In [batch, channels, spatial...] order.
std::vector<double> convolve(const ConvolutionCase &test, const std::vector<float> &input,
                             const std::vector<float> &weights);

/// Largest pooling or average; `test.in` channels, no weights.
std::vector<double> pool(const ConvolutionCase &test, artifact::PoolKind kind, const std::vector<float> &input);

/// Calls `body(index)` for each index of a tensor of `shape`, in row-major order.
template <typename Body> void forEachIndex(const Shape &shape, Body body) {
  Shape index(shape.size());
  for (int64_t i = 0, n = volume(shape); i < n; ++i) {
    body(index);
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

/// The position of `index` in a row-major tensor of `shape`.
int64_t linear(const Shape &shape, const Shape &index);

/// One post-op on one element; `operand` is the element of its tensor.
double applyPostOp(const artifact::PostOpT &op, double value, double operand);

/// The types with 16 bits that libraries of the target that tests run on have.
std::vector<artifact::ElementType> halfTypes();

/// Whether all elements are equal up to `relative` of the largest, or of `largest` if that is more; if not, says where.
testing::AssertionResult near(const std::vector<double> &expected, const std::vector<float> &actual,
                              double relative = 1e-5, double largest = 1e-30);

} // namespace dovetail::test

#endif // DOVETAIL_TEST_RUNTIME_REFERENCE_H
