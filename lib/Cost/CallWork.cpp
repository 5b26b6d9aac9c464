//===- CallWork.cpp - What library calls compute -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements getCallWork.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/CallWork.h"

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Layout/Window.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace dovetail;

static double getProduct(ArrayRef<int64_t> extents) {
  double product = 1;
  for (int64_t extent : extents)
    product *= double(extent);
  return product;
}

/// Scalar operations that post-operations take for an element, counted as those of kernels are.
static double countOperations(ArrayAttr postOps) {
  double total = 0;
  for (auto op : postOps.getAsRange<plan::PostOpAttr>()) {
    switch (op.getKind()) {
    // The tensor is loaded.
    case PostOpKind::AddTensor:
    case PostOpKind::MulTensor:
      total += 2;
      break;
    case PostOpKind::Relu:
    case PostOpKind::LeakyRelu:
    case PostOpKind::Clip:
      total += 1;
      break;
    case PostOpKind::HardSigmoid:
      total += 4;
      break;
    case PostOpKind::HardSwish:
      total += 6;
      break;
    case PostOpKind::Sigmoid:
    case PostOpKind::Swish:
    case PostOpKind::Elu:
      total += 15;
      break;
    case PostOpKind::Tanh:
    case PostOpKind::Gelu:
    case PostOpKind::GeluTanh:
      total += 22;
      break;
    }
  }
  return total;
}

/// Bits of the factors of products in the program of `call`.
static unsigned getFactorBits(plan::CallOpInterface call) {
  unsigned bits = plan::getTensor(call.getStepReads().front()).getElementTypeBitWidth();
  if (bits != 32)
    return bits;
  switch (call->getParentOfType<plan::ProgramOp>().getMath()) {
  case plan::MathMode::F32:
  case plan::MathMode::F32Strict:
    return 32;
  case plan::MathMode::TF32:
    return 19;
  case plan::MathMode::BF16:
    return 16;
  }
  llvm_unreachable("covered switch");
}

/// A product of `loops`, of which the first ones are those of the output.
static StepWork getProductWork(plan::CallOpInterface call, RankedTensorType output, ArrayRef<int64_t> loops) {
  StepWork work;
  double elements = getProduct(loops.take_front(output.getRank()));
  if (elements == 0)
    return work;
  work.kind = StepWork::Kind::Product;
  work.bits = getFactorBits(call);
  work.depth = getProduct(loops.drop_front(output.getRank()));
  work.operations = elements * work.depth;
  work.resultOperations = elements * countOperations(call.getPostOps());
  return work;
}

static StepWork getWork(const calls::ConvolutionForm &form, plan::CallOpInterface call, RankedTensorType output,
                        ArrayRef<int64_t> loops) {
  StepWork work = getProductWork(call, output, loops);
  if (work.kind != StepWork::Kind::Product)
    return work;
  double elements = getProduct(loops.take_front(output.getRank()));
  // Products of groups are apart.
  work.columns = std::min(double(loops[1]), double(output.getDimSize(1)) / double(form.groups));
  work.batch = double(loops[1]) / work.columns;
  work.rows = elements / double(loops[1]);
  // Of the taps of a transposed convolution only those count that hit an element.
  if (form.isTransposed)
    for (const layout::Window &window : form.windows)
      work.depth /= double(window.stride);
  work.operations = elements * work.depth;
  return work;
}

static StepWork getWork(const ProductCall &form, plan::CallOpInterface call, RankedTensorType output,
                        ArrayRef<int64_t> loops) {
  StepWork work = getProductWork(call, output, loops);
  if (work.kind != StepWork::Kind::Product)
    return work;
  size_t columns = output.getRank() - 1, rowDims = form.rowDims;
  work.batch = getProduct(loops.take_front(columns - rowDims));
  work.rows = getProduct(loops.slice(columns - rowDims, rowDims));
  work.columns = double(loops[columns]);
  return work;
}

static StepWork getWork(const PoolCall &, plan::CallOpInterface, RankedTensorType output, ArrayRef<int64_t> loops) {
  StepWork work;
  work.bits = output.getElementTypeBitWidth();
  work.operations = getProduct(loops);
  return work;
}

/// Two products, of queries and keys and of weights and values, as one whose depth is theirs.
static StepWork getWork(const AttentionCall &form, plan::CallOpInterface call, RankedTensorType output,
                        ArrayRef<int64_t> loops) {
  StepWork work;
  size_t rank = output.getRank();
  // Heads that follow each other in columns are products of their own.
  double all = double(form.getValueColumns(loops[rank - 1])), columns = std::min(double(form.columns), all);
  double heads = columns == 0 ? 0 : std::ceil(all / columns);
  double rows = heads * getProduct(loops.take_front(rank - 1)), keys = double(loops[rank]);
  if (rows * keys == 0)
    return work;
  work.kind = StepWork::Kind::Product;
  work.bits = getFactorBits(call);
  work.depth = columns + double(loops[rank + 1]);
  work.batch = heads * getProduct(loops.take_front(rank - 2));
  work.rows = double(loops[rank - 2]);
  work.columns = keys;
  work.operations = rows * keys * work.depth;
  // An exponential, scale, maximum and sum for each score.
  work.resultOperations = rows * keys * (call.getReads().size() > 3 ? 15 : 13);
  return work;
}

/// The customary count, of 5 n log2(n) for a line of n complex points, and half of that where they are real.
static StepWork getWork(const TransformCall &form, plan::CallOpInterface, RankedTensorType output,
                        ArrayRef<int64_t> loops) {
  StepWork work;
  work.bits = output.getElementTypeBitWidth();
  double points = double(form.length), lines = 1;
  for (int64_t dim = 0; dim + 1 < output.getRank(); ++dim)
    lines *= dim == static_cast<int64_t>(form.axis) ? 1 : double(loops[dim]);
  work.operations = lines * (form.readsReal || form.writesReal ? 2.5 : 5) * points * std::max(std::log2(points), 1.0);
  return work;
}

StepWork dovetail::getCallWork(plan::CallOpInterface call, ArrayRef<int64_t> loops, ArrayRef<double> bytes) {
  RankedTensorType output = plan::getTensor(call.getOutput());
  CallForm form = *call.getCallForm();
  StepWork work = std::visit([&](const auto &each) { return getWork(each, call, output, loops); }, form);
  double elements = getProduct(loops.take_front(output.getRank()));
  if (elements == 0)
    return work;
  if (work.operations > 0 || work.kind == StepWork::Kind::Product)
    work.readBytes = std::accumulate(bytes.begin(), bytes.end(), 0.0);
  work.writtenBytes = elements * double(getElementByteSize(output.getElementType()));
  // Spectra of real numbers are copied, since libraries overwrite them.
  if (auto *transform = std::get_if<TransformCall>(&form); transform && transform->writesReal) {
    work.writtenBytes += work.readBytes;
    work.readBytes *= 2;
  }
  const calls::AlgorithmEntry *algorithm = calls::findAlgorithm(plan::toCalls(call.getAlgorithm()));
  return algorithm && algorithm->getWork ? work.by(*algorithm, loops) : work;
}

StepWork dovetail::getCallWork(plan::CallOpInterface call, const layout::Box &loops) {
  ArrayAttr reads = call.getReads();
  int64_t rank = plan::getTensor(call.getOutput()).getRank();
  SmallVector<double> bytes;
  for (auto [number, ref] : llvm::enumerate(call.getStepReads())) {
    RankedTensorType type = plan::getTensor(ref);
    double volume = 1;
    if (number < reads.size()) {
      const auto &access = cast<plan::AccessAttr>(reads[number]).getDims();
      layout::Box need = layout::needOf(access.get(), std::vector<layout::Interval>(loops.begin(), loops.end()));
      for (auto [dim, extent] : llvm::enumerate(type.getShape()))
        volume *= double(need[static_cast<int>(dim)].intersect({0, extent}).size());
    } else {
      // Tensors of the epilogue broadcast to the output.
      for (auto [dim, extent] : llvm::enumerate(type.getShape()))
        volume *= double(std::min(extent, loops[static_cast<int>(rank - type.getRank() + dim)].size()));
    }
    bytes.push_back(volume * double(getElementByteSize(type.getElementType())));
  }
  return getCallWork(call, loops.shape(), bytes);
}
