//===- TransposedKernelsTest.cpp - Kernels that read across what they write -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Transposes of shapes around those of tiles and squares, in parts, of all sizes of elements, by counting.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <sstream>

using namespace dovetail::test;

namespace {
struct Case {
  Index source, permutation;
  /// The part of the result that is computed.
  Index lo, hi;
};

const Case cases[] = {
    {{8, 8}, {1, 0}, {0, 0}, {8, 8}},
    {{16, 16}, {1, 0}, {0, 0}, {16, 16}},
    {{64, 64}, {1, 0}, {0, 0}, {64, 64}},
    {{5, 7}, {1, 0}, {0, 0}, {7, 5}},
    {{130, 67}, {1, 0}, {0, 0}, {67, 130}},
    {{130, 67}, {1, 0}, {3, 0}, {66, 130}},
    {{130, 67}, {1, 0}, {0, 65}, {67, 129}},
    {{130, 67}, {1, 0}, {66, 1}, {67, 2}},
    {{3, 100}, {1, 0}, {0, 0}, {100, 3}},
    {{100, 3}, {1, 0}, {0, 0}, {3, 100}},
    {{2, 33, 5, 70}, {0, 2, 3, 1}, {0, 0, 0, 0}, {2, 5, 70, 33}},
    {{2, 5, 70, 33}, {0, 3, 1, 2}, {1, 4, 1, 7}, {2, 31, 5, 70}},
    {{20, 6, 90}, {2, 1, 0}, {0, 0, 0}, {90, 6, 20}},
    {{20, 6, 90}, {2, 1, 0}, {17, 2, 3}, {90, 5, 20}},
    {{9, 65, 11}, {1, 0, 2}, {0, 0, 0}, {65, 9, 11}},
};

std::string typeOf(const Index &shape, const std::string &element) {
  std::ostringstream text;
  text << "tensor<";
  for (int64_t extent : shape)
    text << extent << "x";
  text << element << ">";
  return text.str();
}

std::string layoutOf(const Index &shape) {
  std::ostringstream text;
  text << "<[";
  for (size_t dim = 0; dim < shape.size(); ++dim)
    text << (dim ? ", " : "") << dim;
  text << "], [";
  for (size_t dim = 0; dim < shape.size(); ++dim)
    text << (dim ? ", " : "") << "?";
  text << "]>";
  return text.str();
}

/// The number of an element.
template <typename T> T count(const Index &index) {
  uint64_t number = 1;
  for (int64_t coordinate : index)
    number = number * 131 + static_cast<uint64_t>(coordinate);
  return static_cast<T>(number * 0x9e3779b97f4a7c15 >> 40);
}

template <typename T> void check(const Case &test, const std::string &element, const std::string &cpu, bool isFused) {
  Index result;
  for (int64_t dim : test.permutation)
    result.push_back(test.source[dim]);
  std::ostringstream permutation, range;
  for (size_t dim = 0; dim < result.size(); ++dim)
    permutation << (dim ? ", " : "") << test.permutation[dim];
  // With the whole tensor, bounds are constants.
  bool isWhole = test.hi == result && std::all_of(test.lo.begin(), test.lo.end(), [](int64_t lo) { return lo == 0; });
  for (size_t dim = 0; isWhole && dim < result.size(); ++dim)
    range << (dim ? ", " : ": ") << dim;
  std::string from = typeOf(test.source, element), to = typeOf(result, element);
  // A second transposed operand and one that is read along the result.
  std::string body = isFused ? "%1 = dovetail.transpose %b {permutation = array<i64: " + permutation.str() + ">} : (" +
                                   from + ") -> " + to + " %2 = dovetail.sub %0, %1 : (" + to + ", " + to + ") -> " +
                                   to + " %3 = dovetail.add %2, %c : (" + to + ", " + to + ") -> " + to +
                                   " plan.yield %3 : " + to
                             : "plan.yield %0 : " + to;
  std::string in = layoutOf(test.source), out = layoutOf(result);
  LoadedKernels kernels("plan.kernel @k(%a: " + from + (isFused ? ", %b: " + from + ", %c: " + to : "") +
                            ") layouts [" + in + (isFused ? ", " + in + ", " + out : "") + "] -> [" + out +
                            "] attributes {static_loops = array<i64" + range.str() +
                            ">} { %0 = dovetail.transpose %a {permutation = array<i64: " + permutation.str() +
                            ">} : (" + from + ") -> " + to + " " + body + " }",
                        cpu);
  Piece<T> a(test.source), b(test.source), c(result), y(result);
  a.fill(count<T>);
  b.fill([](const Index &index) { return static_cast<T>(count<T>(index) / 2); });
  c.fill([](const Index &index) { return static_cast<T>(index.back()); });
  Index loops;
  for (size_t dim = 0; dim < result.size(); ++dim)
    loops.insert(loops.end(), {test.lo[dim], test.hi[dim]});
  Call call(loops);
  call.with(a);
  if (isFused)
    call.with(b).with(c);
  call.with(y).run(kernels.get("k"));
  Piece<T>::forEachIn(y.lo, y.hi, [&](const Index &index) {
    Index at(index.size());
    bool isInside = true;
    for (size_t dim = 0; dim < index.size(); ++dim) {
      at[test.permutation[dim]] = index[dim];
      isInside &= test.lo[dim] <= index[dim] && index[dim] < test.hi[dim];
    }
    T expected = !isInside ? T(77) : isFused ? static_cast<T>(static_cast<T>(a[at] - b[at]) + c[index]) : a[at];
    ASSERT_EQ(y[index], expected) << from << " at " << testing::PrintToString(index);
  });
}

class TransposedKernelsTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Cpus, TransposedKernelsTest, testing::ValuesIn(runnableCpus({"native", "x86-64-v3"})),
                         [](const auto &info) { return testName(info.param); });
} // namespace

TEST_P(TransposedKernelsTest, MovesElementsOfAllSizes) {
  for (const Case &test : cases) {
    check<uint8_t>(test, "ui8", GetParam(), /*isFused=*/false);
    check<int16_t>(test, "i16", GetParam(), /*isFused=*/false);
    check<float>(test, "f32", GetParam(), /*isFused=*/false);
    check<double>(test, "f64", GetParam(), /*isFused=*/false);
  }
}

TEST_P(TransposedKernelsTest, ComputesWithSeveralOperands) {
  for (const Case &test : cases) {
    check<uint8_t>(test, "ui8", GetParam(), /*isFused=*/true);
    check<float>(test, "f32", GetParam(), /*isFused=*/true);
    check<int64_t>(test, "i64", GetParam(), /*isFused=*/true);
  }
}
