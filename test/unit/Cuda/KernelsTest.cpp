//===- KernelsTest.cpp - The runtime's own kernels -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backend/cuda/KernelImages.h"
#include "Backend/device/kernels/PostOpKernels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using namespace dovetail::runtime::device;

namespace {

/// ptxas takes the kernels for each architecture, and keeps everything in registers.
TEST(DeviceKernels, AssemblerAcceptsThem) {
  std::string folder = testing::TempDir(), file = folder + "/dovetail-device-kernels.ptx";
  const CodeImage &ptx = kernelImages().front();
  ASSERT_EQ(ptx.kind, SectionKind::Ptx);
  std::ofstream(file).write(reinterpret_cast<const char *>(ptx.bytes.data()), ptx.bytes.size());
  for (const char *arch : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
    // As many registers as for the images in the plug-in.
    const char *registers = arch == std::string("sm_120") ? "80" : "64";
    std::string command = std::string(DOVETAIL_TEST_PTXAS) + " -v -maxrregcount=" + registers + " -arch=" + arch + " " +
                          file + " -o /dev/null 2>&1";
    std::string output;
    FILE *pipe = ::popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    char buffer[4096];
    while (size_t count = std::fread(buffer, 1, sizeof(buffer), pipe))
      output.append(buffer, count);
    EXPECT_EQ(::pclose(pipe), 0) << arch << ": " << output;
    for (const char *kernel : {"dovetail_copy_boxes", "dovetail_combine_boxes", "dovetail_post_ops"})
      EXPECT_THAT(output, testing::HasSubstr(std::string("Compiling entry function '") + kernel));
    for (size_t at = 0; (at = output.find(" bytes stack frame", at)) != std::string::npos; ++at)
      EXPECT_EQ(output.substr(at - 2, 2), " 0") << arch << ": " << output;
    for (size_t at = 0; (at = output.find(" bytes spill ", at)) != std::string::npos; ++at)
      EXPECT_EQ(output.substr(at - 2, 2), " 0") << arch << ": " << output;
  }
}

/// Each architecture that the compiler generates code for by default has machine code, of the kernels in the PTX.
TEST(DeviceKernels, AreMachineCodeToo) {
  std::vector<std::string> archs;
  for (const CodeImage &image : kernelImages().subspan(1)) {
    EXPECT_EQ(image.kind, SectionKind::Cubin);
    archs.push_back(image.arch);
    std::string code(reinterpret_cast<const char *>(image.bytes.data()), image.bytes.size());
    EXPECT_EQ(code.substr(1, 3), "ELF");
    for (const char *kernel : {"dovetail_copy_boxes", "dovetail_combine_boxes", "dovetail_post_ops"})
      EXPECT_THAT(code, testing::HasSubstr(kernel)) << image.arch;
  }
  EXPECT_THAT(archs, testing::IsSupersetOf({"sm_80", "sm_90", "sm_100"}));
}

TEST(DeviceKernels, DivideByMultiplying) {
  std::mt19937 random(3);
  constexpr uint32_t most = uint32_t(1) << 31;
  for (int round = 0; round < 20000; ++round) {
    uint32_t count = round < 2000 ? round + 1 : random() >> random() % 32;
    count = std::clamp<uint32_t>(round % 7 == 0 ? most - count % 1000 : count, 1, most);
    Divisor divisor = Divisor::of(count);
    for (uint32_t number : {uint32_t(0), count - 1, count, count + 1, count * 2 - 1, count * 3, most / count * count,
                            most / count * count - 1, most - 1, static_cast<uint32_t>(random())})
      if (number < most)
        ASSERT_EQ(divisor.quotient(number), number / count) << number << " / " << count;
  }
}

/// The largest error in units in the last place of the exact value.
double largestError(float low, float high, float (*function)(float), double (*exact)(double)) {
  double largest = 0;
  for (int i = 0; i <= 400000; ++i) {
    float x = low + (high - low) * static_cast<float>(i) / 400000.0f;
    double expected = exact(static_cast<double>(x));
    int exponent;
    std::frexp(expected, &exponent);
    double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
    largest = std::max(largest, std::fabs(function(x) - expected) / unit);
  }
  return largest;
}

float applyOne(const PostOpJob::Op &op, float x) {
  float values[] = {x};
  applyToAll(op, values, [](int) { return 0.0f; });
  return values[0];
}

TEST(PostOpFunctions, AreAccurate) {
  EXPECT_LT(largestError(-87, 88.7f, exponential, std::exp), 1.5);
  EXPECT_LT(largestError(-104, -87, exponential, std::exp), 1.5); // Subnormal results.
  EXPECT_LT(largestError(-2, 2, exponentialLess1, std::expm1), 4);
  EXPECT_LT(largestError(-12, 12, hyperbolicTangent, std::tanh), 4);
  EXPECT_LT(largestError(-4, 4, errorFunction, std::erf), 2);
  EXPECT_LT(largestError(-80, 80, sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }), 4);
}

TEST(PostOpFunctions, KnowTheLimits) {
  float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_EQ(exponential(infinity), infinity);
  EXPECT_EQ(exponential(-infinity), 0);
  EXPECT_EQ(hyperbolicTangent(infinity), 1);
  EXPECT_EQ(hyperbolicTangent(-infinity), -1);
  EXPECT_EQ(errorFunction(infinity), 1);
  EXPECT_EQ(sigmoid(-infinity), 0);
  EXPECT_EQ(sigmoid(infinity), 1);
  for (auto *function : {exponential, exponentialLess1, hyperbolicTangent, errorFunction, sigmoid})
    EXPECT_TRUE(std::isnan(function(nan)));
  for (PostOpKind kind : {PostOpKind::Relu, PostOpKind::LeakyRelu, PostOpKind::Clip, PostOpKind::HardSwish,
                          PostOpKind::HardSigmoid, PostOpKind::Elu, PostOpKind::Swish, PostOpKind::Gelu}) {
    PostOpJob::Op op = {};
    op.kind = kind;
    op.alpha = 0.5f;
    op.beta = 2;
    EXPECT_TRUE(std::isnan(applyOne(op, nan))) << static_cast<int>(kind);
  }
}

/// Against the definitions of ONNX in double precision.
TEST(PostOpFunctions, AreThoseOfOnnx) {
  struct Case {
    PostOpKind kind;
    float alpha, beta;
    std::function<double(double)> expected;
  };
  auto clip = [](double x, double low, double high) { return std::fmin(std::fmax(x, low), high); };
  const Case cases[] = {
      {PostOpKind::Relu, 0, 0, [](double x) { return std::fmax(x, 0); }},
      {PostOpKind::LeakyRelu, 0.25f, 0, [](double x) { return x < 0 ? 0.25 * x : x; }},
      {PostOpKind::Clip, -1, 2, [&](double x) { return clip(x, -1, 2); }},
      {PostOpKind::Sigmoid, 0, 0, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {PostOpKind::Tanh, 0, 0, [](double x) { return std::tanh(x); }},
      {PostOpKind::Gelu, 0, 0, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
      {PostOpKind::GeluTanh, 0, 0,
       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {PostOpKind::HardSwish, 0, 0, [&](double x) { return x * clip(x / 6 + 0.5, 0, 1); }},
      {PostOpKind::Swish, 1.5f, 0, [](double x) { return x / (1 + std::exp(-1.5 * x)); }},
      {PostOpKind::Elu, 0.75f, 0, [](double x) { return x < 0 ? 0.75 * std::expm1(x) : x; }},
      {PostOpKind::HardSigmoid, 0.25f, 0.5f, [&](double x) { return clip(0.25 * x + 0.5, 0, 1); }},
  };
  for (const Case &test : cases)
    for (int i = -400; i <= 400; ++i) {
      PostOpJob::Op op = {};
      op.kind = test.kind;
      op.alpha = test.alpha;
      op.beta = test.beta;
      float x = static_cast<float>(i) / 64;
      double expected = test.expected(x);
      EXPECT_NEAR(applyOne(op, x), expected, 4e-7 * std::fmax(1, std::fabs(expected)))
          << static_cast<int>(test.kind) << " of " << x;
    }
}

} // namespace
