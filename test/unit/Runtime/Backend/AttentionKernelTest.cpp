//===- AttentionKernelTest.cpp - Tests of kernels for attention -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares attention by the kernels of all instruction sets that the machine has with sums in f64.
//
//===----------------------------------------------------------------------===//

#include "Backend/cpu/Kernels/VectorKernels.h"
#include "InstructionSets.h"

#include "dovetail/Calls/Attention.h"
#include "dovetail/Calls/AttentionForm.h"
#include "gmock/gmock.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

enum class Mask { None, Addend, AddendOfKeys, AddendOfRows, Causal, FiniteCausal, LastBlock, Choice, FilledChoice };

/// `gap` elements lie between neighbours of the innermost dimension.
struct Case {
  int64_t rows, keys, depth, columns, gap;
  Mask mask;
  float size = 1; ///< Of queries: large ones make one key count alone.
};

class Attention : public testing::TestWithParam<Case> {};

TEST_P(Attention, IsTheSoftmaxOfProducts) {
  const Case &c = GetParam();
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  int64_t step = c.gap + 1;
  auto fill = [&](int64_t size, float factor) {
    std::vector<float> values(size * step);
    for (float &value : values)
      value = uniform(random) * factor;
    return values;
  };
  std::vector<float> query = fill(c.rows * c.depth, c.size), key = fill(c.keys * c.depth, 1),
                     value = fill(c.keys * c.columns, 1);
  const float scale = 1 / std::sqrt(float(c.depth));

  // What the mask makes of a score.
  std::vector<float> addend(c.rows * c.keys);
  std::vector<uint8_t> choice(c.rows * c.keys);
  for (int64_t row = 0; row < c.rows; ++row)
    for (int64_t n = 0; n < c.keys; ++n) {
      float &to = addend[row * c.keys + n];
      bool isLate = n > row + c.keys / 2;
      switch (c.mask) {
      case Mask::Causal:
        to = isLate ? -infinity : 0;
        break;
      case Mask::FiniteCausal:
        to = isLate ? std::numeric_limits<float>::lowest() : 0;
        break;
      case Mask::LastBlock: // What comes first is masked: rows have seen nothing when others come.
        to = n < c.keys - 3 ? std::numeric_limits<float>::lowest() : 0;
        break;
      default:
        to = 2 * uniform(random);
      }
      choice[row * c.keys + n] = uniform(random) > 0.2f && !isLate;
    }
  bool isChoice = c.mask == Mask::Choice || c.mask == Mask::FilledChoice;
  float left = c.mask == Mask::Choice ? -infinity : -2;
  AttentionTask task{};
  task.maskRow = c.mask == Mask::AddendOfKeys ? 0 : c.keys;
  task.maskKey = c.mask == Mask::AddendOfRows ? 0 : 1;
  if (isChoice)
    task.choice = choice.data();
  else if (c.mask != Mask::None)
    task.addend = addend.data();

  std::vector<double> expected(c.rows * c.columns);
  for (int64_t row = 0; row < c.rows; ++row) {
    std::vector<double> scores(c.keys);
    double most = -infinity, total = 0;
    for (int64_t n = 0; n < c.keys; ++n) {
      double sum = 0;
      for (int64_t d = 0; d < c.depth; ++d)
        sum += double(query[(row * c.depth + d) * step]) * key[(n * c.depth + d) * step];
      sum *= scale;
      int64_t at = row * task.maskRow + n * task.maskKey;
      if (isChoice)
        sum = choice[at] ? sum : left;
      else if (c.mask != Mask::None)
        sum += addend[at];
      scores[n] = sum;
      most = std::max(most, sum);
    }
    for (double &score : scores)
      total += score = std::exp(score - most);
    for (int64_t e = 0; e < c.columns; ++e)
      for (int64_t n = 0; n < c.keys; ++n)
        expected[row * c.columns + e] += scores[n] / total * value[(n * c.columns + e) * step];
  }

  task.query = query.data();
  task.key = key.data();
  task.value = value.data();
  task.keys = c.keys;
  task.depth = c.depth;
  task.columns = c.columns;
  task.queryDepth = task.keyDepth = task.valueColumn = task.outputColumn = step;
  task.queryRow = task.keyRow = c.depth * step;
  task.valueRow = task.outputRow = c.columns * step;
  task.scale = scale;
  task.fill = left;
  for (const InstructionSet &set : instructionSets()) {
    SCOPED_TRACE(set.name);
    auto run = [&](int64_t block) {
      std::vector<float> output(c.rows * c.columns * step, -5),
          scratch(calls::attentionScratch(c.depth, c.columns), std::nanf(""));
      task.output = output.data();
      for (int64_t row = 0; row < c.rows; row += block)
        set.kernels->runAttention(task, row, std::min(row + block, c.rows), scratch.data());
      return output;
    };
    std::vector<float> whole = run(calls::attentionRows);
    for (int64_t i = 0; i < c.rows * c.columns; ++i) {
      ASSERT_NEAR(whole[i * step], expected[i], 3e-6 * std::max(c.size, 1.0f)) << "element " << i;
      for (int64_t gap = 1; gap < step; ++gap)
        ASSERT_EQ(whole[i * step + gap], -5);
    }
    // Bit by bit, however rows are divided.
    EXPECT_EQ(run(5), whole);

    // What two parts of the keys come to, the first of which may be empty.
    auto runPart = [&](int64_t first, int64_t count) {
      AttentionTask part = task;
      part.isOfParts = true;
      part.key += first * task.keyRow;
      part.value += first * task.valueRow;
      part.addend = task.addend ? task.addend + first * task.maskKey : nullptr;
      part.choice = task.choice ? task.choice + first * task.maskKey : nullptr;
      part.keys = count;
      part.outputRow = (c.columns + calls::attentionPartColumns) * step;
      std::vector<float> output(c.rows * part.outputRow, -5),
          scratch(calls::attentionScratch(c.depth, c.columns), std::nanf(""));
      part.output = output.data();
      for (int64_t row = 0; row < c.rows; row += calls::attentionRows)
        set.kernels->runAttention(part, row, std::min(row + calls::attentionRows, c.rows), scratch.data());
      return output;
    };
    int64_t cut = c.keys / 3, columns = c.columns + calls::attentionPartColumns;
    std::vector<float> low = runPart(0, cut), high = runPart(cut, c.keys - cut);
    for (int64_t row = 0; row < c.rows; ++row) {
      auto at = [&](const std::vector<float> &part, int64_t column) { return part[(row * columns + column) * step]; };
      float most = std::max(at(low, c.columns), at(high, c.columns));
      float ofLow = std::exp(at(low, c.columns) - most), ofHigh = std::exp(at(high, c.columns) - most);
      float total = ofLow * at(low, c.columns + 1) + ofHigh * at(high, c.columns + 1);
      for (int64_t e = 0; e < c.columns; ++e)
        ASSERT_NEAR((ofLow * at(low, e) + ofHigh * at(high, e)) / total, expected[row * c.columns + e],
                    3e-6 * std::max(c.size, 1.0f))
            << "element " << row * c.columns + e;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Attention,
    testing::Values(Case{1, 1, 1, 1, 0, Mask::None}, Case{7, 130, 64, 64, 0, Mask::None},
                    Case{200, 300, 40, 33, 0, Mask::None}, Case{13, 129, 5, 7, 2, Mask::None},
                    Case{400, 257, 16, 80, 0, Mask::None, 100}, Case{50, 300, 32, 32, 0, Mask::Addend},
                    Case{50, 300, 32, 32, 0, Mask::AddendOfKeys}, Case{50, 300, 32, 32, 0, Mask::AddendOfRows},
                    Case{300, 500, 32, 32, 0, Mask::Causal}, Case{300, 500, 32, 32, 1, Mask::FiniteCausal},
                    Case{20, 500, 32, 32, 0, Mask::LastBlock}, Case{100, 500, 32, 32, 0, Mask::Choice},
                    Case{33, 140, 24, 17, 3, Mask::FilledChoice}));

/// Rows of which a mask leaves nothing are not numbers, as they are of softmax; others are as before. So are those that
/// read something that is no number.
TEST(Attention, RowsOfNothingAreNoNumbers) {
  constexpr int64_t rows = 4, keys = 200, depth = 3;
  std::vector<float> query(rows * depth, 1), key(keys * depth, 1), value(keys, 1), mask(rows * keys, 0);
  std::fill_n(mask.begin() + keys, keys, -infinity);
  // Its last bits go where an exponent is.
  query[2 * depth] = std::nanf("1");
  AttentionTask task{};
  task.query = query.data();
  task.key = key.data();
  task.value = value.data();
  task.addend = mask.data();
  task.keys = keys;
  task.depth = depth;
  task.columns = 1;
  task.queryRow = task.keyRow = depth;
  task.queryDepth = task.keyDepth = task.valueRow = task.valueColumn = task.outputRow = task.outputColumn = 1;
  task.maskRow = keys;
  task.maskKey = 1;
  task.scale = 1;
  for (const InstructionSet &set : instructionSets()) {
    SCOPED_TRACE(set.name);
    std::vector<float> output(rows), scratch(calls::attentionScratch(depth, 1));
    task.output = output.data();
    set.kernels->runAttention(task, 0, rows, scratch.data());
    EXPECT_THAT(output, testing::ElementsAre(testing::FloatNear(1, 1e-6f), testing::IsNan(), testing::IsNan(),
                                             testing::FloatNear(1, 1e-6f)));
  }
}

} // namespace
