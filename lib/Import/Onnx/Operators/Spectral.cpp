//===- Spectral.cpp - Import of Fourier transforms ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// DFT, STFT and MelWeightMatrix.
//
//===----------------------------------------------------------------------===//

#include "../../Build/Fourier.h"

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/SpectralOps.h"

#include <cmath>

using namespace dovetail;
using namespace dovetail::importer;

/// A number that an operand gives, which must be known; `otherwise` without the operand.
static llvm::FailureOr<int64_t> readNumber(OnnxNode &node, unsigned index, llvm::StringRef what, int64_t otherwise) {
  if (!node.hasInput(index))
    return otherwise;
  auto values = node.getConstantInts(index, what);
  if (failed(values))
    return llvm::failure();
  if (values->size() != 1)
    return node.invalid("'" + what + "' is not a single number");
  return values->front();
}

/// Checks that a transform has this many points.
static llvm::LogicalResult checkLength(OnnxNode &node, int64_t length) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (length < 1 || length > most)
    return node.invalid("a transform of " + llvm::Twine(length) +
                        " points is not possible; the number lies between 1 and 2^31 - 1");
  return llvm::success();
}

static OperatorImport dft("DFT", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  int64_t rank = node.getRank(input);
  if (rank < 2)
    return node.invalid("the operand has only the dimension of complex numbers; a transform needs one more");
  auto given =
      node.getOpset() < 20 ? llvm::FailureOr<int64_t>(node.getInt("axis", 1)) : readNumber(node, 2, "axis", -2);
  if (failed(given))
    return llvm::failure();
  auto axis = node.normalizeAxis(*given, rank);
  if (failed(axis))
    return llvm::failure();
  int64_t parts = node.getShape(input).back(), extent = node.getShape(input)[*axis];
  if (*axis == rank - 1)
    return node.invalid("'axis' is the last dimension, which holds complex numbers");
  if (parts != 1 && parts != 2)
    return node.invalid("the last dimension holds complex numbers, but has " + llvm::Twine(parts) + " elements");
  bool inverse = node.getInt("inverse", 0) != 0, onesided = node.getInt("onesided", 0) != 0;
  if (onesided && parts != (inverse ? 2 : 1))
    return node.invalid(inverse ? "an inverse transform of one side needs complex numbers"
                                : "a transform to one side needs real numbers");
  auto length = readNumber(node, 1, "dft_length", onesided && inverse ? 2 * (extent - 1) : extent);
  if (failed(length) || failed(checkLength(node, *length)))
    return llvm::failure();
  FourierBuilder builder(node, *axis);
  int64_t taken = onesided && inverse ? *length / 2 + 1 : *length;
  mlir::Value value = builder.resize(node.widen(input), *axis, taken);
  if (!onesided)
    value = builder.transform(value, inverse);
  else
    value = inverse ? builder.invertReal(value, *length) : builder.transformReal(value);
  return node.setResult(node.cast(value, node.getType(input).getElementType()));
});

static OperatorImport stft("STFT", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value signal = node.getInput(0), window = node.getInput(2);
  // ONNX Runtime takes real signals without the last dimension, too.
  if (node.getRank(signal) == 2)
    signal = node.reshape(signal, {node.getShape(signal)[0], node.getShape(signal)[1], 1});
  if (node.getRank(signal) != 3)
    return node.invalid("the signal is not of shape [batch, length, 1 or 2]");
  int64_t parts = node.getShape(signal)[2], extent = node.getShape(signal)[1];
  if (parts != 1 && parts != 2)
    return node.invalid("the last dimension holds complex numbers, but has " + llvm::Twine(parts) + " elements");
  bool onesided = node.getInt("onesided", 1) != 0;
  if (onesided && parts == 2)
    return node.invalid("a transform to one side needs real numbers");
  if (window && node.getRank(window) != 1)
    return node.invalid("'window' is not a vector");
  if (!window && !node.hasInput(3))
    return node.invalid("'window' and 'frame_length' are both missing; give one of them");
  auto step = readNumber(node, 1, "frame_step", 0);
  auto length = readNumber(node, 3, "frame_length", window ? node.getShape(window)[0] : 0);
  if (failed(step) || failed(length) || failed(checkLength(node, *length)))
    return llvm::failure();
  if (*step < 1)
    return node.invalid("'frame_step' is " + llvm::Twine(*step) + ", but must be positive");
  if (*length > extent)
    return node.invalid("frames of " + llvm::Twine(*length) + " elements are longer than the signal");
  if (window && node.getShape(window)[0] != *length)
    return node.invalid("'window' must have " + llvm::Twine(*length) + " elements, as many as a frame has");
  mlir::Value frames = node.create<FramesOp>(node.widen(signal), 1, *length, *step);
  if (window)
    frames = node.create<MulOp>(frames, node.reshape(node.widen(window), {*length, 1}));
  FourierBuilder builder(node, 2);
  mlir::Value value = onesided ? builder.transformReal(frames) : builder.transform(frames, /*inverse=*/false);
  return node.setResult(node.cast(value, node.getType(signal).getElementType()));
});

static OperatorImport melWeightMatrix("MelWeightMatrix", [](OnnxNode &node) -> llvm::LogicalResult {
  auto bands = readNumber(node, 0, "num_mel_bins", 0), length = readNumber(node, 1, "dft_length", 0),
       rate = readNumber(node, 2, "sample_rate", 0);
  auto lower = node.getConstantFloats(3, "lower_edge_hertz"), upper = node.getConstantFloats(4, "upper_edge_hertz");
  if (failed(bands) || failed(length) || failed(rate) || failed(lower) || failed(upper))
    return llvm::failure();
  if (lower->size() != 1 || upper->size() != 1)
    return node.invalid("an edge is not a single number");
  if (*bands < 1 || *length < 1 || *rate < 1)
    return node.invalid("'num_mel_bins', 'dft_length' or 'sample_rate' is not positive");
  int64_t bins = *length / 2 + 1;
  auto count = countElements({bins, *bands});
  if (!count || *count > std::numeric_limits<int32_t>::max())
    return node.invalid("the matrix is too large");
  // As ONNX's reference has it: edges are at equal distances on the mel scale, the last of which is left out.
  auto toMel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double low = toMel(lower->front()), step = (toMel(upper->front()) - low) / static_cast<double>(*bands + 2);
  llvm::SmallVector<int64_t> edges;
  for (int64_t number = 0; number < *bands + 2; ++number) {
    double hertz = 700 * (std::pow(10, (static_cast<double>(number) * step + low) / 2595) - 1);
    double bin = std::floor(static_cast<double>(*length + 1) * hertz / static_cast<double>(*rate));
    // Also false for NaN.
    if (!(bin >= 0 && bin < static_cast<double>(bins)))
      return node.invalid("an edge of band " + llvm::Twine(number) + " is outside of the spectrum");
    edges.push_back(static_cast<int64_t>(bin));
  }
  llvm::SmallVector<double> weights(*count, 0);
  for (int64_t band = 0; band < *bands; ++band) {
    int64_t left = edges[band], center = edges[band + 1], right = edges[band + 2];
    auto at = [&](int64_t bin) -> double & { return weights[bin * *bands + band]; };
    if (left == center)
      at(center) = 1;
    for (int64_t bin = left; bin <= center && left != center; ++bin)
      at(bin) = static_cast<double>(bin - left) / static_cast<double>(center - left);
    for (int64_t bin = center; bin < right; ++bin)
      at(bin) = static_cast<double>(right - bin) / static_cast<double>(right - center);
  }
  int64_t datatype = node.getInt("output_datatype", 1);
  mlir::Type type = convertElementType(datatype, node.getBuilder().getContext());
  if (!type)
    return node.unsupported(OnnxNode::describeUnsupportedElements(datatype));
  mlir::Type exact = type.isF32() ? type : node.getBuilder().getF64Type();
  auto wide = mlir::RankedTensorType::get({bins, *bands}, exact);
  return node.setResult(node.cast(node.constantFloats(wide, weights), type));
});
