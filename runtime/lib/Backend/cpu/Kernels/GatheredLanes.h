//===- GatheredLanes.h - Convolutions of groups of few channels -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines convolutions of groups of few channels, for the file that includes it; see Vectors.h. The elements of a
// vector belong to several groups. Inputs are read where they lie, and permuted so that each group's input stands
// beside its weights.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_GATHEREDLANES_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_GATHEREDLANES_H

#include "GatheredPlace.h"
#include "Vectors.h"

namespace {

/// Element i of the result is element `places`[i] of `x`.
inline Vector permute(Vector x, Numbers places) {
#if DOVETAIL_VECTOR_ELEMENTS == 16
  return __builtin_ia32_permvarsf512(x, places);
#elif DOVETAIL_VECTOR_ELEMENTS == 8
  return __builtin_ia32_permvarsf256(x, places);
#else
  Vector result;
  for (int i = 0; i < elementsOfVector; ++i)
    result[i] = x[places[i] & (elementsOfVector - 1)];
  return result;
#endif
}

/// How the inputs of a vector of results lie: they are as many channels that follow each other, some channels of
/// several groups, or one channel for all.
enum class LaneKind { Depthwise, Groups, One };

/// A vector of results.
struct Lanes {
  int64_t input, output, results; ///< Channels: the first ones, and how many results there are.
  Mask inputs;                    ///< What is read for a term.
  Numbers places;                 ///< Of each result's input among those.
};

/// A tap that a window has: where it reads, and its weights.
struct LaneTap {
  int64_t input, weights;
};

/// Computes `pixels` results, `vectors` vectors of each, from `taps`. The results' windows lie `step` apart. With
/// `isMasked` there is nothing to be read behind the last input.
template <int pixels, int vectors, LaneKind kind, bool isMasked>
void runLaneTile(const GatheredTask &task, const float *input, int64_t step, const LaneTap *taps, int64_t numTaps,
                 const int64_t *offsets, const float *weights, const Lanes &lanes) {
  constexpr int bases = (pixels + 2) / 3;
  Vector sums[pixels][vectors] = {};
  int64_t slab = task.numTaps() * task.inputs * elementsOfVector,
          inputs = kind == LaneKind::Depthwise ? 1 : task.inputs;
  // As in `addProduct`.
  const float *base[bases];
#pragma unroll
  for (int i = 0; i < bases; ++i) {
    base[i] = input + lanes.input + 3 * i * step;
    asm("" : "+r"(base[i]));
  }
  for (int64_t tap = 0; tap < numTaps; ++tap) {
    const float *factorsOf = weights + taps[tap].weights;
    int64_t offset = taps[tap].input;
    const float *from[bases];
#pragma unroll
    for (int i = 0; i < bases; ++i)
      from[i] = base[i] + offset;
    for (int64_t channel = 0; channel < inputs; ++channel, factorsOf += elementsOfVector) {
      Vector factors[vectors];
#pragma unroll
      for (int vector = 0; vector < vectors; ++vector)
        factors[vector] = load(factorsOf + vector * slab);
#pragma unroll
      for (int pixel = 0; pixel < pixels; ++pixel) {
        const float *data = from[pixel / 3] + pixel % 3 * step;
        Vector x;
        if constexpr (kind == LaneKind::One)
          x = splat(*data);
#pragma unroll
        for (int vector = 0; vector < vectors; ++vector) {
          if constexpr (kind != LaneKind::One)
            x = isMasked ? __builtin_masked_load(lanes.inputs, data, Vector(0.0f))
                         : load(data + vector * elementsOfVector);
          if constexpr (kind == LaneKind::Groups)
            x = permute(x, lanes.places);
          sums[pixel][vector] += x * factors[vector];
        }
      }
#pragma unroll
      for (int i = 0; i < bases; ++i)
        ++from[i];
    }
  }
#pragma unroll
  for (int vector = 0; vector < vectors; ++vector) {
    int64_t first = vector * elementsOfVector, left = lanes.results - first, output = lanes.output + first;
    Vector bias = task.epilogue.bias ? loadFirst(task.epilogue.bias + output, left) : Vector{};
#pragma unroll
    for (int pixel = 0; pixel < pixels; ++pixel) {
      int64_t at = offsets[pixel] + output;
      const float *addend = task.epilogue.addend ? task.epilogue.addend + at : nullptr;
      storeFirst(task.output + at, finish(task.epilogue, sums[pixel][vector] + bias, addend, left), left);
    }
  }
}

/// Vectors of results that are computed at once, at most, and results: as many as registers hold the sums of, and
/// enough to hide how long an addition takes.
constexpr int vectorsOfDepthwise = elementsOfVector == 16 ? 4 : 2, vectorsOfOne = 2;
constexpr int pixelsOf(LaneKind kind, int vectors) {
  if (kind == LaneKind::Depthwise)
    return elementsOfVector == 16 ? 6 : 4;
  if (kind == LaneKind::Groups)
    return elementsOfVector == 16 ? 12 : 8;
  return vectors > 1 ? rowsOfProduct : 12;
}
/// The most of all kinds.
constexpr int mostPixels = 12;
static_assert(pixelsOf(LaneKind::One, 1) <= mostPixels && pixelsOf(LaneKind::One, vectorsOfOne) <= mostPixels &&
              pixelsOf(LaneKind::Groups, 1) <= mostPixels && pixelsOf(LaneKind::Depthwise, 1) <= mostPixels);

using LaneTile = void (*)(const GatheredTask &task, const float *input, int64_t step, const LaneTap *taps,
                          int64_t numTaps, const int64_t *offsets, const float *weights, const Lanes &lanes);
/// The function for so many results, at least 1.
template <int vectors, LaneKind kind, bool isMasked, int pixels = pixelsOf(kind, vectors)>
LaneTile laneTile(int64_t count) {
  if constexpr (pixels > 1)
    if (count < pixels)
      return laneTile<vectors, kind, isMasked, pixels - 1>(count);
  return runLaneTile<pixels, vectors, kind, isMasked>;
}

/// Computes `pixels` results in vectors [first, last).
void runLanesOf(const GatheredTask &task, const float *input, int64_t step, const LaneTap *taps, int64_t numTaps,
                int64_t pixels, const int64_t *offsets, int64_t first, int64_t last, Lanes lanes) {
  int64_t slab = task.numTaps() * task.inputs * elementsOfVector;
  int64_t channels = task.groups * task.inputs;
  for (int64_t vector = first; vector < last;) {
    const float *weights = task.weights + vector * slab;
    LaneTile tile;
    int64_t count = 1;
    if (task.groupsOfVector == 1) {
      int64_t perGroup = (task.outputs + elementsOfVector - 1) / elementsOfVector, group = vector / perGroup;
      int64_t output = vector % perGroup * elementsOfVector;
      lanes.input = group * task.inputs;
      lanes.output = group * task.outputs + output;
      count = atMost(atMost(last - vector, perGroup - vector % perGroup), vectorsOfOne);
      lanes.results = atMost(task.outputs - output, count * elementsOfVector);
      tile =
          count > 1 ? laneTile<vectorsOfOne, LaneKind::One, false>(pixels) : laneTile<1, LaneKind::One, false>(pixels);
    } else {
      int64_t group = vector * task.groupsOfVector, groups = atMost(task.groups - group, task.groupsOfVector);
      lanes.input = group * task.inputs;
      lanes.output = group * task.outputs;
      lanes.results = groups * task.outputs;
      // A vector from the last input of the first group on lies within all channels.
      bool isMasked = channels - lanes.input < task.inputs - 1 + elementsOfVector;
      if (isMasked)
        lanes.inputs = maskFirst((groups - 1) * task.inputs + 1);
      if (task.inputs == 1 && task.outputs == 1) {
        if (vector + vectorsOfDepthwise <= last && lanes.input + vectorsOfDepthwise * elementsOfVector <= channels) {
          count = vectorsOfDepthwise;
          lanes.results = count * elementsOfVector;
        }
        tile = count > 1  ? laneTile<vectorsOfDepthwise, LaneKind::Depthwise, false>(pixels)
               : isMasked ? laneTile<1, LaneKind::Depthwise, true>(pixels)
                          : laneTile<1, LaneKind::Depthwise, false>(pixels);
      } else {
        tile = isMasked ? laneTile<1, LaneKind::Groups, true>(pixels) : laneTile<1, LaneKind::Groups, false>(pixels);
      }
    }
    tile(task, input, step, taps, numTaps, offsets, weights, lanes);
    vector += count;
  }
}

void runLanes(const GatheredTask &task, int64_t begin, int64_t end, int64_t firstVector, int64_t lastVector,
              float *scratch) {
  static_assert(GatheredTask::numDims == 3);
  auto *taps = reinterpret_cast<LaneTap *>(scratch);
  const GatheredTask::Dim &dim = task.dims[2];
  int64_t step = dim.step * dim.inputStride;
  int64_t most = task.groupsOfVector == 1 ? pixelsOf(LaneKind::One, task.outputs > elementsOfVector ? 2 : 1)
                 : task.inputs == 1 && task.outputs == 1 ? pixelsOf(LaneKind::Depthwise, vectorsOfDepthwise)
                                                         : pixelsOf(LaneKind::Groups, 1);
  Lanes lanes{};
  for (int64_t i = 0; i < elementsOfVector; ++i)
    lanes.places[i] = static_cast<int>(i / task.outputs * task.inputs);
  GatheredPlace place(task, begin);
  for (int64_t row = begin; row < end;) {
    // Results whose windows lie within the innermost dimension go together, others alone.
    int64_t low = ceilOf(-dim.first, dim.step);
    int64_t high = ceilOf(dim.extent - dim.first - (dim.taps - 1) * dim.tapStep, dim.step);
    int64_t at = place.at[2], last = atMost(dim.results, at + end - row);
    while (at < last) {
      bool isInside = at >= low && at < high;
      int64_t to = isInside ? atMost(high, last) : at + 1, numTaps = 0;
      for (int64_t a = 0; a < task.dims[0].taps; ++a)
        for (int64_t b = 0; b < task.dims[1].taps; ++b) {
          int64_t i = place.at[0] * task.dims[0].step + task.dims[0].first + a * task.dims[0].tapStep;
          int64_t j = place.at[1] * task.dims[1].step + task.dims[1].first + b * task.dims[1].tapStep;
          if (i < 0 || i >= task.dims[0].extent || j < 0 || j >= task.dims[1].extent)
            continue;
          for (int64_t c = 0; c < dim.taps; ++c) {
            int64_t k = dim.first + c * dim.tapStep;
            if (!isInside && (at * dim.step + k < 0 || at * dim.step + k >= dim.extent))
              continue;
            taps[numTaps++] = {i * task.dims[0].inputStride + j * task.dims[1].inputStride + k * dim.inputStride,
                               ((a * task.dims[1].taps + b) * dim.taps + c) * task.inputs * elementsOfVector};
          }
        }
      for (int64_t parts = (to - at + most - 1) / most; parts > 0; --parts) {
        int64_t pixels = (to - at + parts - 1) / parts, offsets[mostPixels];
        const float *input = task.input + place.image * task.inputImage + at * step;
        for (int64_t pixel = 0; pixel < pixels; ++pixel, place.advance(1))
          offsets[pixel] = place.outputOffset();
        runLanesOf(task, input, step, taps, numTaps, pixels, offsets, firstVector, lastVector, lanes);
        at += pixels;
        row += pixels;
      }
    }
  }
}

} // namespace

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_GATHEREDLANES_H
