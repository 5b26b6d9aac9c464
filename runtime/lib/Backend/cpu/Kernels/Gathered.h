//===- Gathered.h - Convolutions as products over gathered rows -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines convolutions of any form, for the file that includes it; see Vectors.h. Two ways give the same sums:
//
// - Products: what the windows of some results read is copied into rows, which are multiplied with packed weights.
// - Lanes: where groups have few channels, the elements of a vector belong to several groups; see GatheredLanes.h.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_GATHERED_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_GATHERED_H

#include "GatheredLanes.h"
#include "GatheredPlace.h"
#include "Vectors.h"

namespace {

using dovetail::runtime::GatheredWeights;

/// Copies `rows` rows of `count` elements. As many elements as a small type has are copied at once.
template <int count> void copyShortRows(float *to, int64_t toRow, const float *from, int64_t fromRow, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row)
    __builtin_memcpy(to + row * toRow, from + row * fromRow, count * sizeof(float));
}
template <int count = elementsOfVector>
void copyRows(float *to, int64_t toRow, const float *from, int64_t fromRow, int64_t rows, int64_t elements) {
  if constexpr (count > 0) {
    if (elements == count)
      return copyShortRows<count>(to, toRow, from, fromRow, rows);
    if (elements < count)
      return copyRows<count - 1>(to, toRow, from, fromRow, rows, elements);
    for (int64_t row = 0; row < rows; ++row, to += toRow, from += fromRow) {
      int64_t i = 0;
      for (; i + elementsOfVector < elements; i += elementsOfVector)
        store(to + i, load(from + i));
      store(to + elements - elementsOfVector, load(from + elements - elementsOfVector));
    }
  }
}
void clearRows(float *to, int64_t toRow, int64_t rows, int64_t elements) {
  for (int64_t row = 0; row < rows; ++row, to += toRow)
    __builtin_memset(to, 0, elements * sizeof(float));
}

/// Terms of a block: taps of the window, counted with the innermost last, and channels of the input.
struct TermBlock {
  int64_t firstTap, lastTap, firstChannel, lastChannel;
  int64_t channels() const { return lastChannel - firstChannel; }
  int64_t terms() const { return (lastTap - firstTap) * channels(); }
};

/// Writes what the windows of `rows` results from `place` on read at `block` to rows in `to`, zeros for what is not
/// there. `input` is that of the group.
void gatherRows(const GatheredTask &task, const float *input, GatheredPlace place, int64_t rows, const TermBlock &block,
                float *to) {
  constexpr int inner = GatheredTask::numDims - 1;
  const auto &dim = task.dims[inner];
  int64_t terms = block.terms(), channels = block.channels();
  // Taps that read elements which follow each other are copied together.
  bool joins = channels == task.inputs && dim.tapStep * dim.inputStride == channels;
  for (int64_t row = 0; row < rows;) {
    int64_t begin = place.at[inner], end = atMost(dim.results, begin + rows - row);
    float *target = to + row * terms;
    for (int64_t tap = block.firstTap; tap < block.lastTap;) {
      int64_t first = tap % dim.taps, rest = tap / dim.taps;
      int64_t count = joins ? atMost(dim.taps - first, block.lastTap - tap) : 1;
      const float *from = input + place.image * task.inputImage + block.firstChannel;
      bool isThere = true;
      for (int outer = inner; outer-- > 0;) {
        const auto &other = task.dims[outer];
        int64_t index = place.at[outer] * other.step + other.first + rest % other.taps * other.tapStep;
        rest /= other.taps;
        isThere &= index >= 0 && index < other.extent;
        from += index * other.inputStride;
      }
      // Results whose windows have all of these taps, those that have some at most, and the number of elements.
      int64_t position = dim.first + first * dim.tapStep, reach = (count - 1) * dim.tapStep,
              elements = count * channels;
      int64_t low = isThere ? atMost(atLeast(ceilOf(-position, dim.step), begin), end) : end;
      int64_t high = atLeast(atMost(ceilOf(dim.extent - position - reach, dim.step), end), low);
      from += position * dim.inputStride;
      int64_t step = dim.step * dim.inputStride;
      auto copyBorder = [&](int64_t from0, int64_t to0) {
        if (count == 1 || !isThere)
          return clearRows(target + (from0 - begin) * terms, terms, to0 - from0, elements);
        for (int64_t at = from0; at < to0; ++at)
          for (int64_t i = 0; i < count; ++i) {
            int64_t index = at * dim.step + position + i * dim.tapStep;
            float *place = target + (at - begin) * terms + i * channels;
            if (index >= 0 && index < dim.extent)
              copyRows(place, 0, from + at * step + i * channels, 0, 1, channels);
            else
              clearRows(place, 0, 1, channels);
          }
      };
      copyBorder(begin, low);
      copyRows(target + (low - begin) * terms, terms, from + low * step, step, high - low, elements);
      copyBorder(high, end);
      tap += count;
      target += elements;
    }
    row += end - begin;
    place.advance(end - begin);
  }
}

/// Taps from the first one that reads something to the last one, for results in the line of `place`. A line is the
/// innermost dimension.
struct TapRange {
  int64_t first, last;
  bool operator==(const TapRange &other) const { return first == other.first && last == other.last; }
};
TapRange tapsOfLine(const GatheredTask &task, const GatheredPlace &place) {
  constexpr int inner = GatheredTask::numDims - 1;
  TapRange range{0, 0};
  for (int number = 0; number < inner; ++number) {
    const auto &dim = task.dims[number];
    int64_t position = place.at[number] * dim.step + dim.first;
    int64_t low = atLeast(ceilOf(-position, dim.tapStep), 0),
            high = atMost(ceilOf(dim.extent - position, dim.tapStep), dim.taps);
    if (low >= high)
      return {0, 0};
    range = {range.first * dim.taps + low, range.last * dim.taps + high - 1};
  }
  return {range.first * task.dims[inner].taps, (range.last + 1) * task.dims[inner].taps};
}

/// Of `most` results from `place` on, how many follow each other in lines that have the same taps.
int64_t countSameTaps(const GatheredTask &task, GatheredPlace place, int64_t most) {
  constexpr int inner = GatheredTask::numDims - 1;
  TapRange range = tapsOfLine(task, place);
  for (int64_t count = 0;;) {
    int64_t left = task.dims[inner].results - place.at[inner];
    count += left;
    if (count >= most)
      return most;
    place.advance(left);
    if (!(tapsOfLine(task, place) == range))
      return count;
  }
}

/// The function for so many rows, at least 1, and weights that lie without gaps.
template <int vectors, int rows = rowsOfProduct> Multiply multiplyGathered(int64_t count) {
  if constexpr (rows > 1)
    if (count < rows)
      return multiplyGathered<vectors, rows - 1>(count);
  return multiply<rows, vectors, vectors>;
}

/// Stores `count` results of `columns` of the group from `output` on, which is a channel of all; `offsets` says where
/// each result lies. Their sums, `sumsRow` elements apart, may lie there already.
void finishGathered(const GatheredTask &task, const float *sums, int64_t sumsRow, const int64_t *offsets, int64_t count,
                    int64_t output, int64_t columns) {
  const float *bias = task.epilogue.bias ? task.epilogue.bias + output : nullptr;
  // A tensor that is added lies where the output does.
  finishRows(task.epilogue, sums, sumsRow, count, columns, bias,
             [&](int64_t row) { return task.output + offsets[row] + output; });
}

/// How far `count` places are apart, if that is the same for all; else -1.
int64_t findEvenStep(const int64_t *offsets, int64_t count) {
  int64_t step = count > 1 ? offsets[1] - offsets[0] : 0;
  for (int64_t i = 2; i < count; ++i)
    if (offsets[i] - offsets[i - 1] != step)
      return -1;
  return step;
}

void runProducts(const GatheredTask &task, int64_t begin, int64_t end, int64_t group, int64_t firstPanel,
                 int64_t lastPanel, float *scratch) {
  int64_t depth = task.numTaps() * task.inputs, vectors = (task.outputs + elementsOfVector - 1) / elementsOfVector;
  const float *weights = task.weights + group * vectors * elementsOfVector * depth;
  const float *input = task.input + group * task.inputs;
  bool isPlain = task.plainRow >= 0, adds = addsTensor(task.epilogue);
  float *rows = scratch, *sums = scratch + (isPlain ? 0 : task.blockRows * task.blockTaps * task.blockChannels);
  float tile[rowsOfProduct * elementsOfPanel];
  int64_t offsets[GatheredTask::mostRows];
  for (int64_t first = begin, count; first < end; first += count) {
    GatheredPlace start(task, first);
    GatheredPlace place = start;
    TapRange taps{0, task.numTaps()};
    count = atMost(end - first, task.blockRows);
    if (task.skipsTaps) {
      taps = tapsOfLine(task, start);
      count = countSameTaps(task, start, count);
    }
    int64_t parts = (count + rowsOfProduct - 1) / rowsOfProduct;
    bool isWhole = taps.last - taps.first <= task.blockTaps && task.blockChannels >= task.inputs;
    for (int64_t row = 0; row < count; ++row, place.advance(1))
      offsets[row] = place.outputOffset();
    TermBlock block{taps.first, atMost(taps.first + task.blockTaps, taps.last), 0,
                    atMost(task.blockChannels, task.inputs)};
    for (bool isFirst = true, isLast = false; !isLast; isFirst = false) {
      if (!isFirst) {
        // The next channels, or the next taps.
        block.firstChannel = block.lastChannel % task.inputs;
        if (block.firstChannel == 0)
          block.firstTap = block.lastTap;
        block.lastTap = atMost(block.firstTap + task.blockTaps, taps.last);
        block.lastChannel = atMost(block.firstChannel + task.blockChannels, task.inputs);
      }
      // Without taps there are no terms, whatever the channels.
      isLast = block.lastTap == taps.last && (block.lastChannel == task.inputs || taps.first == taps.last);
      int64_t done = block.firstTap * task.inputs + block.firstChannel;
      int64_t terms = block.terms(), stride = isPlain ? task.plainRow : terms;
      const float *from = rows;
      if (isPlain)
        from = input + first * task.plainRow + block.firstChannel;
      else
        gatherRows(task, input, start, count, block, rows);
      forPairs(lastPanel - firstPanel, parts, depth * (lastPanel - firstPanel) * elementsOfPanel <= mostCachedWeights,
               [&](int64_t number, int64_t part) {
                 int64_t output = (firstPanel + number) * elementsOfPanel;
                 int64_t columns = atMost(task.outputs - output, elementsOfPanel);
                 bool isNarrow = columns <= elementsOfVector;
                 int64_t width = isNarrow ? elementsOfVector : elementsOfPanel;
                 const float *factors = weights + output * depth + done * width;
                 int64_t low = count * part / parts, high = count * (part + 1) / parts;
                 // Whole panels are computed where they are stored, unless something there is still to be added.
                 int64_t step = isWhole && columns == width ? findEvenStep(offsets + low, high - low) : -1;
                 const float *bias = task.epilogue.bias ? task.epilogue.bias + group * task.outputs + output : nullptr;
                 Ending ending;
                 bool isEnded = step >= 0 && findEnding(task.epilogue, bias, ending);
                 bool isDirect = isEnded || (step >= 0 && !adds);
                 int64_t sumsRow = isDirect ? step : elementsOfPanel;
                 float *to = isDirect  ? task.output + offsets[low] + group * task.outputs + output
                             : isWhole ? tile
                                       : sums + (number * task.blockRows + low) * elementsOfPanel;
                 Multiply multiply =
                     isNarrow ? multiplyGathered<1>(high - low) : multiplyGathered<vectorsOfPanel>(high - low);
                 if (isFirst) {
                   multiply(from + low * stride, stride, factors, terms, to, sumsRow, isEnded ? ending : Ending());
                 } else {
                   multiply(from + low * stride, stride, factors, terms, tile, elementsOfPanel, {});
                   // A narrow panel has one vector of each row.
                   for (int64_t row = 0; row < high - low; ++row)
                     for (int64_t i = 0; i < width; i += elementsOfVector) {
                       int64_t at = row * elementsOfPanel + i;
                       store(to + at, load(to + at) + load(tile + at));
                     }
                 }
                 if (isLast && !isEnded)
                   finishGathered(task, to, sumsRow, offsets + low, high - low, group * task.outputs + output, columns);
               });
    }
  }
}

/// Computes results [begin, end), counted over images and dimensions with the innermost last. Where lanes are groups,
/// of vectors [first, last) of channels, else of panels of group `group`.
void runGathered(const GatheredTask &task, int64_t begin, int64_t end, int64_t group, int64_t first, int64_t last,
                 float *scratch) {
  if (task.groupsOfVector > 0)
    runLanes(task, begin, end, first, last, scratch);
  else
    runProducts(task, begin, end, group, first, last, scratch);
}

/// Packs groups [begin, end), or vectors of groups.
void packGathered(const GatheredWeights &weights, float *packed, int64_t begin, int64_t end) {
  int64_t taps = weights.dims[0].taps * weights.dims[1].taps * weights.dims[2].taps, depth = taps * weights.inputs;
  auto addressOf = [&](int64_t group, int64_t output, int64_t input, int64_t tap) {
    const float *from =
        weights.data + group * weights.groupStride + output * weights.outputStride + input * weights.inputStride;
    for (int dim = GatheredTask::numDims; dim-- > 0; tap /= weights.dims[dim].taps)
      from += tap % weights.dims[dim].taps * weights.dims[dim].stride;
    return from;
  };
  if (weights.groupsOfVector > 0) {
    // A vector has results of some groups, or some results of one.
    int64_t perGroup = weights.groupsOfVector > 1 ? 1 : (weights.outputs + elementsOfVector - 1) / elementsOfVector;
    packed += begin * depth * elementsOfVector;
    for (int64_t vector = begin; vector < end; ++vector) {
      int64_t first = vector / perGroup * weights.groupsOfVector, skipped = vector % perGroup * elementsOfVector;
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t input = 0; input < weights.inputs; ++input)
          for (int64_t i = 0; i < elementsOfVector; ++i) {
            int64_t group = (skipped + i) / weights.outputs, output = (skipped + i) % weights.outputs;
            bool isThere = group < weights.groupsOfVector && first + group < weights.groups;
            *packed++ = isThere ? *addressOf(first + group, output, input, tap) : 0;
          }
    }
    return;
  }
  int64_t width = (weights.outputs + elementsOfVector - 1) / elementsOfVector * elementsOfVector;
  packed += begin * depth * width;
  for (int64_t group = begin; group < end; ++group)
    for (int64_t column = 0; column < weights.outputs; column += elementsOfPanel) {
      int64_t filled = atMost(weights.outputs - column, elementsOfPanel);
      int64_t panel = filled <= elementsOfVector ? elementsOfVector : elementsOfPanel;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const float *from = addressOf(group, column, 0, tap);
        for (int64_t input = 0; input < weights.inputs; ++input, from += weights.inputStride)
          for (int64_t i = 0; i < panel; ++i)
            *packed++ = i < filled ? from[i * weights.outputStride] : 0;
      }
    }
}

} // namespace

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_GATHERED_H
