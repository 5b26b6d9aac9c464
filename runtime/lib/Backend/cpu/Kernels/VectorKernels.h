//===- VectorKernels.h - Kernels written by hand -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the kernels that the runtime brings along, in a form for each instruction set.
//
// They are compiled for instructions that the machine may lack, so what they share with other code are these plain
// structures only: a function of the standard library that both use could be linked in the form that the machine lacks.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_VECTORKERNELS_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_VECTORKERNELS_H

#include <cstdint>

namespace dovetail::runtime {

/// A step of an epilogue, in the order of application.
struct EpilogueStep {
  enum Kind {
    AddTensor, ///< Adds the element of `Epilogue::addend`.
    Relu,      ///< Negative values times `alpha`.
    Clip,      ///< To [alpha, beta].
    Linear,    ///< alpha * x + beta.
    HardSwish, ///< x * clip(x / 6 + 1/2, 0, 1).
  };
  Kind kind;
  float alpha, beta;
};

/// What is done with the sums of a convolution before they are stored.
struct Epilogue {
  static constexpr int maxSteps = 6;
  const float *bias = nullptr;   ///< One for each output channel, or null.
  const float *addend = nullptr; ///< The element that goes with the output's first; strides are those of the output.
  EpilogueStep steps[maxSteps];
  int numSteps = 0;
};

/// A convolution of 3 x 3 with stride 1 by Winograd's algorithm: of a tile of 4 x 4 results, the 6 x 6 inputs that they
/// need are transformed, multiplied element by element with transformed weights, summed up over channels, which are 36
/// matrix products over many tiles, and transformed back. That takes a quarter of the multiplications. Channels are
/// innermost in memory. All strides are in elements.
struct WinogradTask {
  static constexpr int64_t tile = 4, taps = 36;

  const float *input; ///< Of the first row and column that there are; what lies outside is zero.
  int64_t inputImageStride, inputRowStride, inputColumnStride;
  int64_t inputRows, inputColumns;
  int64_t padRows, padColumns; ///< How much the first result's window begins before that.
  float *output;
  int64_t outputImageStride, outputRowStride, outputColumnStride;
  int64_t images, outputRows, outputColumns;
  int64_t inputs, outputs; ///< Channels.
  const float *weights;    ///< As `packWinograd` makes them.
  Epilogue epilogue;
  int64_t tilesOfBlock; ///< How many tiles go through all steps at once.

  int64_t rowsOfTiles() const { return (outputRows + tile - 1) / tile; }
  int64_t columnsOfTiles() const { return (outputColumns + tile - 1) / tile; }
  int64_t numTiles() const { return images * rowsOfTiles() * columnsOfTiles(); }
};

/// Weights of 3 x 3 in memory, with strides in elements.
struct WinogradWeights {
  const float *data;
  int64_t outputs, inputs;
  int64_t outputStride, inputStride, rowStride, columnStride;
};

/// A product of matrices, of which the second one is packed: output = epilogue(input * weights). All strides are in
/// elements; columns of input and output follow each other.
struct ProductTask {
  const float *input;   ///< [rows, depth].
  const float *weights; ///< As `packProduct` makes them.
  float *output;        ///< [rows, columns].
  int64_t rows, depth, columns;
  int64_t inputRow, outputRow;
  Epilogue epilogue; ///< Its bias is one for each column. With an addend, what lies in `output` is added.
};

/// A second factor [depth, columns] in memory, with strides in elements.
struct ProductWeights {
  const float *data;
  int64_t depth, columns;
  int64_t termStride, columnStride;
};

/// A convolution of any form in which windows step evenly. Results of a transposed one whose windows begin alike are a
/// task of their own. Channels are innermost in memory. All strides are in elements.
struct GatheredTask {
  static constexpr int numDims = 3;
  /// Rows of a block, at most.
  static constexpr int64_t mostRows = 192;
  /// A spatial dimension. Tap t of result r reads input first + r * step + t * tapStep, or zero if there is none.
  struct Dim {
    int64_t results = 1, outputStride = 0;
    int64_t extent = 1, inputStride = 0;
    int64_t first = 0, step = 1;
    int64_t taps = 1, tapStep = 1;
  };

  Dim dims[numDims]; ///< Outermost in memory first; the first ones may be of one element.
  const float *input;
  float *output;
  int64_t inputImage, outputImage; ///< Strides of the batch.
  int64_t images, groups;
  int64_t inputs, outputs; ///< Channels of a group. Those of the next one follow them.
  const float *weights;    ///< As `packGathered` makes them.
  Epilogue epilogue;
  /// What goes through all steps at once: results, taps and inputs; more than one tap only with all inputs.
  int64_t blockRows, blockTaps, blockChannels;
  int64_t plainRow = -1; ///< If rows need not be gathered, as each is what one element has: how far they are apart.
  int64_t groupsOfVector = 0; ///< Where lanes are groups: groups whose results are in a vector.
  bool skipsTaps = false; ///< Whether taps that read nothing for whole lines are left out. Else they are factors of 0.

  int64_t numTaps() const { return dims[0].taps * dims[1].taps * dims[2].taps; }
  int64_t numRows() const { return images * dims[0].results * dims[1].results * dims[2].results; }
};

/// Weights of a convolution in memory, with strides in elements.
struct GatheredWeights {
  struct Dim {
    int64_t taps = 1, stride = 0;
  };

  const float *data; ///< Of the first tap of all.
  int64_t groups, outputs, inputs;
  int64_t groupStride, outputStride, inputStride;
  Dim dims[GatheredTask::numDims];
  int64_t groupsOfVector = 0;
};

/// A transposed convolution of few output channels. Channels are innermost in memory. All strides are in elements.
struct ScatteredTask {
  static constexpr int numDims = 3;
  /// Of scratch memory.
  static constexpr int64_t bytesOfTap = 80;
  /// A spatial dimension. Tap t of input i belongs to result i * stride - first + t * dilation, if there is one.
  struct Dim {
    int64_t results = 1, outputStride = 0;
    int64_t extent = 1, inputStride = 0;
    int64_t first = 0, stride = 1;
    int64_t taps = 1, dilation = 1;
  };

  Dim dims[numDims]; ///< Outermost in memory first.
  int lineDim;       ///< The one whose results are called lines.
  const float *input;
  float *output;
  int64_t inputImage, outputImage; ///< Strides of the batch.
  int64_t images;
  int64_t inputs, outputs; ///< Channels.
  const float *weights;    ///< [taps, outputs, inputs], with the last tap first.
  Epilogue epilogue;
  int64_t blockLines; ///< That are summed up together.

  int64_t numTaps() const { return dims[0].taps * dims[1].taps * dims[2].taps; }
};

/// Attention of some queries to all keys: values weighed by the softmax of products. Keys are gone through once, a
/// block at a time, and what was summed is scaled where a larger score is found, so that no more than a block of scores
/// is ever stored. All strides are in elements; those of masks are 0 where they broadcast.
struct AttentionTask {
  const float *query, *key, *value;
  float *output;
  const float *addend;   ///< Of the scores, or null.
  const uint8_t *choice; ///< Scores are `fill` where it is 0; or null.
  int64_t keys, depth, columns;
  int64_t queryRow, queryDepth, keyRow, keyDepth, valueRow, valueColumn, outputRow, outputColumn, maskRow, maskKey;
  float scale, fill;
  bool isOfParts; ///< Behind its columns, each row of the output has its largest score and the sum of its weights.
};

/// Kernels for one instruction set.
struct VectorKernels {
  /// Raised whenever packed weights change, which artifacts may have.
  static constexpr int packedVersion = 2;

  const char *name; ///< Of the instruction set, which decides how weights are packed.
  int64_t vector;   ///< Elements of a vector.
  int64_t panel;    ///< Output channels that are computed together: packed weights have whole panels.
  /// Transforms weights of panels [begin, end).
  void (*packWinograd)(const WinogradWeights &weights, float *packed, int64_t begin, int64_t end);
  /// Computes tiles [begin, end) of output channels in panels [firstPanel, lastPanel).
  void (*runWinograd)(const WinogradTask &task, int64_t begin, int64_t end, int64_t firstPanel, int64_t lastPanel,
                      float *scratch);

  /// Packs groups [begin, end) or, where lanes are groups, vectors of them.
  void (*packGathered)(const GatheredWeights &weights, float *packed, int64_t begin, int64_t end);
  /// Computes results [begin, end), counted over images and dimensions with the innermost last: where lanes are groups,
  /// of vectors [first, last), else of panels [first, last) of `group`. `scratch` has `calls::gatheredScratchBytes`.
  void (*runGathered)(const GatheredTask &task, int64_t begin, int64_t end, int64_t group, int64_t first, int64_t last,
                      float *scratch);

  /// Computes lines [begin, end), counted over images. `scratch` has `calls::scatteredScratchBytes`.
  void (*runScattered)(const ScatteredTask &task, int64_t begin, int64_t end, float *scratch);

  void (*packProduct)(const ProductWeights &weights, float *packed);
  void (*runProduct)(const ProductTask &task);
  /// Computes rows [begin, end) of the result, `calls::attentionRows` at most. `scratch` has
  /// `calls::attentionScratch` elements.
  void (*runAttention)(const AttentionTask &task, int64_t begin, int64_t end, float *scratch);

  /// Applies the epilogue's steps, which add no tensor, to `count` elements.
  void (*finish)(const Epilogue &epilogue, float *data, int64_t count);
  /// Makes `count` elements 1 / (1 + exp(-x)), within 1e-6.
  void (*sigmoid)(float *data, int64_t count);
  /// Whether none of `count` elements is NaN or an infinity.
  bool (*isFinite)(const float *data, int64_t count);

  int64_t panelsOf(int64_t outputs) const { return (outputs + panel - 1) / panel; }
  /// Elements of packed weights.
  int64_t winogradWeights(int64_t outputs, int64_t inputs) const {
    return panelsOf(outputs) * panel * inputs * WinogradTask::taps;
  }
  int64_t productWeights(int64_t depth, int64_t columns) const { return panelsOf(columns) * panel * depth; }
  /// Elements of scratch memory that `runWinograd` takes.
  int64_t winogradScratch(int64_t inputs, int64_t tilesOfBlock) const {
    int64_t padded = (inputs + vector - 1) / vector * vector;
    return WinogradTask::taps * (tilesOfBlock * (padded + panel) + 2 * vector);
  }
};

extern const VectorKernels genericKernels;
#ifdef __x86_64__
extern const VectorKernels avx2Kernels;
extern const VectorKernels avx512Kernels;
#endif

/// Those that the machine runs fastest.
const VectorKernels &hostKernels();

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_VECTORKERNELS_H
