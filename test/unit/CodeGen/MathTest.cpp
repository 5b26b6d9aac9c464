//===- MathTest.cpp - Accuracy of mathematical functions in kernels -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <functional>

using namespace dovetail::test;

namespace {
struct Function {
  const char *name;
  std::function<double(double)> exact;
  /// Units in the last place that the result may be off.
  double ulps = 4;
};

const Function functions[] = {
    {"exp", [](double x) { return std::exp(x); }, 1},
    {"log", [](double x) { return std::log(x); }},
    {"sqrt", [](double x) { return std::sqrt(x); }, 0.5},
    {"erf", [](double x) { return std::erf(x); }},
    {"sin", [](double x) { return std::sin(x); }},
    {"cos", [](double x) { return std::cos(x); }},
    {"tan", [](double x) { return std::tan(x); }},
    {"asin", [](double x) { return std::asin(x); }},
    {"acos", [](double x) { return std::acos(x); }},
    {"atan", [](double x) { return std::atan(x); }},
    {"sinh", [](double x) { return std::sinh(x); }},
    {"cosh", [](double x) { return std::cosh(x); }},
    {"tanh", [](double x) { return std::tanh(x); }, 5},
    {"asinh", [](double x) { return std::asinh(x); }},
    {"acosh", [](double x) { return std::acosh(x); }},
    {"atanh", [](double x) { return std::atanh(x); }},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"softplus", [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); }},
};

/// Arguments of all magnitudes and signs, dense around 1, and the special ones.
std::vector<float> arguments() {
  std::vector<float> values = {0.0f,  -0.0f, INFINITY, -INFINITY, NAN,     1.0f,
                               -1.0f, 88.7f, 88.8f,    -87.4f,    -103.9f, -104.1f};
  for (uint32_t bits = 0x00800000; bits < 0x7f800000; bits += 0x0000d431) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    values.push_back(value);
    values.push_back(-value);
  }
  for (int i = -20000; i < 20000; ++i)
    values.push_back(i * 0.0007f);
  return values;
}

float ulpOf(float value) { return std::nextafter(std::fabs(value), INFINITY) - std::fabs(value); }

class MathTest : public testing::TestWithParam<std::tuple<Function, std::string>> {};
INSTANTIATE_TEST_SUITE_P(Functions, MathTest,
                         testing::Combine(testing::ValuesIn(functions),
                                          testing::ValuesIn(runnableCpus({"native", "x86-64-v2"}))),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) + "_" + testName(std::get<1>(info.param));
                         });
} // namespace

TEST_P(MathTest, IsWithinAFewUnitsInTheLastPlace) {
  auto [function, cpu] = GetParam();
  std::vector<float> inputs = arguments();
  std::string type = "tensor<" + std::to_string(inputs.size()) + "xf32>";
  LoadedKernels kernels("plan.kernel @k(%a: " + type + ") layouts [<[0], [?]>] -> [<[0], [?]>] { %0 = dovetail." +
                            function.name + " %a : (" + type + ") -> " + type + " plan.yield %0 : " + type + " }",
                        cpu);
  int64_t size = inputs.size();
  Piece<float> a({size}), y({size});
  a.data = inputs;
  Call({0, size}).with(a).with(y).run(kernels.get("k"));
  double worst = 0;
  float worstAt = 0;
  for (int64_t i = 0; i < size; ++i) {
    double exact = function.exact(inputs[i]);
    float rounded = static_cast<float>(exact);
    if (std::isnan(rounded)) {
      ASSERT_TRUE(std::isnan(y.data[i])) << function.name << "(" << inputs[i] << ") = " << y.data[i];
      continue;
    }
    // Numbers next to overflow and underflow may fall on either side.
    if (std::isinf(rounded) || std::isinf(y.data[i])) {
      ASSERT_GE(std::fabs(y.data[i]), 3.40e38f) << function.name << "(" << inputs[i] << ")";
      ASSERT_GE(std::fabs(rounded), 3.40e38f) << function.name << "(" << inputs[i] << ")";
      ASSERT_EQ(std::signbit(rounded), std::signbit(y.data[i]));
      continue;
    }
    double error = std::fabs(y.data[i] - exact) / std::max(ulpOf(rounded), 1.2e-38f * 1.2e-7f);
    if (std::fabs(exact) < 1.2e-38 && std::fabs(y.data[i]) < 1.2e-38)
      continue; // Denormal results may be flushed.
    if (!(error <= worst)) {
      worst = error;
      worstAt = inputs[i];
    }
  }
  EXPECT_LE(worst, function.ulps) << function.name << "(" << worstAt << ")";
  RecordProperty("worst_ulps", std::to_string(worst));
  if (std::getenv("DOVETAIL_SHOW_ACCURACY"))
    std::printf("%s: %.2f ulp at %g\n", function.name, worst, worstAt);
}
