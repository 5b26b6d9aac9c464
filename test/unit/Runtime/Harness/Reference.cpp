//===- Reference.cpp - Loop nests to compare with -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "dovetail/runtime/HostFeatures.h"

#include <cmath>
#include <cstdlib>
#include <limits>

using namespace dovetail;
using namespace dovetail::test;

static Shape join(Shape head, const Shape &tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

static std::string str(const Shape &shape) {
  std::string result;
  for (int64_t value : shape)
    result += (result.empty() ? "[" : ",") + std::to_string(value);
  return result + "]";
}

Shape ConvolutionCase::inputShape() const { return join({batch, in}, extents); }
Shape ConvolutionCase::weightsShape() const {
  return transposed ? join({in, out / groups}, kernel) : join({out, in / groups}, kernel);
}
Shape ConvolutionCase::outputShape() const { return join({batch, out}, results); }

std::string ConvolutionCase::str() const {
  return std::string(transposed ? "transposed " : "") + "batch " + std::to_string(batch) + " in " + std::to_string(in) +
         " out " + std::to_string(out) + " groups " + std::to_string(groups) + " extents " + ::str(extents) +
         " kernel " + ::str(kernel) + " strides " + ::str(strides) + " dilations " + ::str(dilations) + " pads " +
         ::str(pads) + " results " + ::str(results);
}

int64_t test::linear(const Shape &shape, const Shape &index) {
  int64_t result = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    result = result * shape[dim] + index[dim];
  return result;
}

std::vector<double> test::convolve(const ConvolutionCase &test, const std::vector<float> &input,
                                   const std::vector<float> &weights) {
  Shape inputShape = test.inputShape(), weightsShape = test.weightsShape(), outputShape = test.outputShape();
  std::vector<double> output(volume(outputShape));
  int64_t inGroup = test.in / test.groups, outGroup = test.out / test.groups;
  // Nothing is allocated for a tap: random cases would take seconds.
  Shape in, weight;
  forEachIndex(outputShape, [&](const Shape &out) {
    double sum = 0;
    int64_t group = out[1] / outGroup;
    for (int64_t c = 0; c < inGroup; ++c)
      forEachIndex(test.kernel, [&](const Shape &k) {
        in.assign({out[0], group * inGroup + c});
        for (int i = 0; i < test.spatial(); ++i) {
          int64_t position;
          if (test.transposed) {
            position = out[2 + i] + test.pads[i] - k[i] * test.dilations[i];
            if (position % test.strides[i] != 0)
              return;
            position /= test.strides[i];
          } else {
            position = out[2 + i] * test.strides[i] - test.pads[i] + k[i] * test.dilations[i];
          }
          if (position < 0 || position >= test.extents[i])
            return;
          in.push_back(position);
        }
        weight.assign({test.transposed ? in[1] : out[1], test.transposed ? out[1] % outGroup : c});
        weight.insert(weight.end(), k.begin(), k.end());
        sum += static_cast<double>(input[linear(inputShape, in)]) * weights[linear(weightsShape, weight)];
      });
    output[linear(outputShape, out)] = sum;
  });
  return output;
}

std::vector<double> test::pool(const ConvolutionCase &test, artifact::PoolKind kind, const std::vector<float> &input) {
  Shape inputShape = test.inputShape(), outputShape = test.outputShape();
  std::vector<double> output;
  forEachIndex(outputShape, [&](const Shape &out) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    int64_t count = 0;
    forEachIndex(test.kernel, [&](const Shape &k) {
      Shape in = {out[0], out[1]};
      for (int i = 0; i < test.spatial(); ++i) {
        in.push_back(out[2 + i] * test.strides[i] - test.pads[i] + k[i] * test.dilations[i]);
        if (in.back() < 0 || in.back() >= test.extents[i])
          return;
      }
      double value = input[linear(inputShape, in)];
      largest = std::max(largest, value);
      sum += value;
      ++count;
    });
    if (kind == artifact::PoolKind::Max)
      output.push_back(largest);
    else
      output.push_back(sum / (kind == artifact::PoolKind::AverageIncludePad ? volume(test.kernel) : count));
  });
  return output;
}

double test::applyPostOp(const artifact::PostOpT &op, double x, double operand) {
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  switch (op.kind) {
  case artifact::PostOpKind::AddTensor:
    return x + operand;
  case artifact::PostOpKind::MulTensor:
    return x * operand;
  case artifact::PostOpKind::Relu:
    return std::max(x, 0.0);
  case artifact::PostOpKind::LeakyRelu:
    return x < 0 ? x * op.alpha : x;
  case artifact::PostOpKind::Clip:
    return std::min<double>(std::max<double>(x, op.alpha), op.beta);
  case artifact::PostOpKind::Sigmoid:
    return sigmoid(x);
  case artifact::PostOpKind::Tanh:
    return std::tanh(x);
  case artifact::PostOpKind::Gelu:
    return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  case artifact::PostOpKind::GeluTanh:
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  case artifact::PostOpKind::HardSwish:
    return x * std::min(1.0, std::max(0.0, x / 6 + 0.5));
  case artifact::PostOpKind::Swish:
    return x * sigmoid(op.alpha * x);
  case artifact::PostOpKind::Elu:
    return x < 0 ? op.alpha * (std::exp(x) - 1) : x;
  case artifact::PostOpKind::HardSigmoid:
    return std::min(1.0, std::max(0.0, op.alpha * x + op.beta));
  }
  return 0;
}

std::vector<artifact::ElementType> test::halfTypes() {
  const char *target = std::getenv("DOVETAIL_TEST_TARGET");
  if (target && std::string(target) == "cuda")
    return {artifact::ElementType::F16, artifact::ElementType::BF16};
  if (!target && runtime::hostHasFeature("avx512bf16"))
    return {artifact::ElementType::BF16};
  return {};
}

testing::AssertionResult test::near(const std::vector<double> &expected, const std::vector<float> &actual,
                                    double relative, double largest) {
  if (expected.size() != actual.size())
    return testing::AssertionFailure() << actual.size() << " elements instead of " << expected.size();
  for (double value : expected)
    largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < expected.size(); ++i)
    if (!(std::abs(expected[i] - actual[i]) <= relative * largest))
      return testing::AssertionFailure() << "element " << i << " is " << actual[i] << " instead of " << expected[i];
  return testing::AssertionSuccess();
}
