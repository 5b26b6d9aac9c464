//===- PlanCalls.cpp - Library calls in plans written by hand -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the functions of PlanBuilder that add library calls.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <utility>

using namespace dovetail;
using namespace dovetail::test;

PlanBuilder::Loops PlanBuilder::loopsOf(uint32_t output, const Shape &sums, const layout::DimSharding &sum) const {
  Loops loops;
  auto add = [&](int64_t extent, std::unique_ptr<artifact::DimT> dim) {
    loops.push_back(std::make_unique<artifact::LoopT>());
    loops.back()->extent = extent;
    loops.back()->dim = std::move(dim);
  };
  const Shape &shape = shapeOf(output);
  for (size_t i = 0; i < shape.size(); ++i)
    add(shape[i], std::make_unique<artifact::DimT>(*plan.tensors[output]->dims[i]));
  for (int64_t extent : sums)
    add(extent, toDim(sum));
  return loops;
}

static std::unique_ptr<artifact::IndexExprT> toIndex(const layout::IndexExpr &index) {
  auto result = std::make_unique<artifact::IndexExprT>();
  result->constant = index.getConstant();
  for (const layout::IndexExpr::Term &term : index.getTerms()) {
    auto &entry = result->terms.emplace_back(std::make_unique<artifact::IndexTermT>());
    entry->factor = term.factor;
    entry->loop = term.number;
    entry->divisor = term.divisor;
    if (!term.hasOperand())
      continue;
    entry->kind = term.kind == layout::IndexExpr::Kind::Quotient ? artifact::IndexTermKind::Quotient
                                                                 : artifact::IndexTermKind::Remainder;
    entry->operand = toIndex(term.getOperand());
  }
  return result;
}

std::unique_ptr<artifact::AccessT> test::toAccess(const std::vector<layout::AccessDim> &access) {
  auto result = std::make_unique<artifact::AccessT>();
  for (const layout::AccessDim &dim : access) {
    auto &entry = result->dims.emplace_back(std::make_unique<artifact::AccessDimT>());
    entry->index = toIndex(dim.index);
    entry->divisor = dim.divisor;
  }
  return result;
}

template <typename Call>
void PlanBuilder::addLibrary(Call call, bool inPrologue, std::unique_ptr<artifact::CallMemoryT> memory) {
  auto step = std::make_unique<artifact::StepT>();
  artifact::LibraryStepT action;
  action.call.Set(std::move(call));
  action.memory = std::move(memory);
  step->action.Set(std::move(action));
  step->name = "library" + std::to_string(plan.steps.size());
  (inPrologue ? plan.prologue : plan.steps).push_back(std::move(step));
}

/// Adds taps to `loops`.
static void addTaps(std::vector<std::unique_ptr<artifact::LoopT>> &loops, const Shape &extents) {
  for (int64_t extent : extents) {
    auto &loop = loops.emplace_back(std::make_unique<artifact::LoopT>());
    loop->extent = extent;
    loop->dim = std::make_unique<artifact::DimT>();
  }
}

static layout::IndexExpr at(size_t loop) { return layout::IndexExpr::loop(static_cast<int>(loop)); }

void PlanBuilder::library(ConvolutionStep step, bool inPrologue, const layout::DimSharding &sum) {
  const Shape &weights = shapeOf(step.weights), &output = shapeOf(step.output);
  int64_t inPerGroup = shapeOf(step.input)[1] / step.groups, outPerGroup = output[1] / step.groups;
  size_t rank = output.size();
  layout::IndexExpr channel = at(rank), read = channel, written = at(1);
  if (step.groups > 1) {
    read = at(1).floorDiv(outPerGroup) * inPerGroup + channel;
    written = step.transposed ? at(1).mod(outPerGroup) : at(1);
  }
  std::vector<layout::AccessDim> inputAccess = {at(0), read}, weightsAccess = {written, channel};
  if (step.transposed)
    weightsAccess = {read, written};
  for (size_t i = 0; i + 2 < rank; ++i) {
    layout::IndexExpr index = at(2 + i), tap = at(rank + 1 + i);
    if (step.transposed)
      inputAccess.push_back({index + step.pads[i] - tap * step.dilations[i], step.strides[i]});
    else
      inputAccess.push_back(index * step.strides[i] + tap * step.dilations[i] - step.pads[i]);
    weightsAccess.push_back(tap);
  }
  artifact::ConvolutionT call;
  call.input = step.input;
  call.weights = step.weights;
  call.output = step.output;
  call.algorithm = step.algorithm;
  call.post_ops = std::move(step.post_ops);
  call.loops = step.loops.empty() ? loopsOf(step.output, {inPerGroup}, sum) : std::move(step.loops);
  addTaps(call.loops, Shape(weights.begin() + 2, weights.end()));
  call.input_access = toAccess(inputAccess);
  call.weights_access = toAccess(weightsAccess);
  addLibrary(std::move(call), inPrologue, memoryOf(callBytes));
}

void PlanBuilder::library(MatMulStep step, bool inPrologue, const layout::DimSharding &sum) {
  size_t rank = shapeOf(step.output).size();
  auto accessOf = [&](uint32_t tensor, size_t row, size_t column, bool transpose) {
    const Shape &shape = shapeOf(tensor);
    std::vector<layout::AccessDim> access;
    for (size_t dim = 0; dim + 2 < shape.size(); ++dim)
      access.push_back(shape[dim] == 1 ? layout::IndexExpr(0) : at(rank - shape.size() + dim));
    access.push_back(at(transpose ? column : row));
    access.push_back(at(transpose ? row : column));
    return toAccess(access);
  };
  const Shape &a = shapeOf(step.a);
  artifact::MatMulT call;
  call.a = step.a;
  call.b = step.b;
  call.output = step.output;
  call.row_dims = step.row_dims;
  call.post_ops = std::move(step.post_ops);
  call.loops = step.loops.empty() ? loopsOf(step.output, {a[a.size() - (step.transpose_a ? 2 : 1)]}, sum)
                                  : std::move(step.loops);
  call.a_access = accessOf(step.a, rank - 2, rank, step.transpose_a);
  call.b_access = accessOf(step.b, rank, rank - 1, step.transpose_b);
  addLibrary(std::move(call), inPrologue, memoryOf(callBytes));
}

void PlanBuilder::library(AttentionPartsStep step) {
  artifact::AttentionT call;
  call.query = step.query;
  call.key = step.key;
  call.value = step.value;
  call.output = step.output;
  call.scale = 1;
  call.parts = true;
  // [parts, rows, columns], keys, depth.
  call.loops = loopsOf(step.output, {shapeOf(step.key)[0]}, step.keys);
  call.loops.push_back(std::make_unique<artifact::LoopT>());
  call.loops.back()->extent = shapeOf(step.key)[1];
  call.loops.back()->dim = toDim({});
  call.query_access = toAccess({at(1), at(4)});
  call.key_access = toAccess({at(3), at(4)});
  call.value_access = toAccess({at(3), at(2)});
  addLibrary(std::move(call), /*inPrologue=*/false, memoryOf(callBytes));
}

void PlanBuilder::library(TransformStep step) {
  const Shape &input = shapeOf(step.input);
  size_t rank = input.size();
  std::vector<layout::AccessDim> access;
  for (size_t dim = 0; dim + 1 < rank; ++dim)
    access.push_back(at(dim == step.axis ? rank : dim));
  access.push_back(at(rank + 1));
  artifact::TransformT call;
  call.input = step.input;
  call.output = step.output;
  call.loops = loopsOf(step.output, {input[step.axis]}, {});
  addTaps(call.loops, {input.back()});
  call.input_access = toAccess(access);
  call.inverse = step.inverse;
  addLibrary(std::move(call), /*inPrologue=*/false, memoryOf(callBytes));
}

void PlanBuilder::library(PoolStep step, bool inPrologue) {
  size_t rank = shapeOf(step.output).size();
  std::vector<layout::AccessDim> access = {at(0), at(1)};
  for (size_t i = 0; i + 2 < rank; ++i)
    access.push_back(at(2 + i) * step.strides[i] + at(rank + i) * step.dilations[i] - step.pads[i]);
  artifact::PoolT call;
  call.kind = step.kind;
  call.input = step.input;
  call.output = step.output;
  call.loops = step.loops.empty() ? loopsOf(step.output, {}, {}) : std::move(step.loops);
  addTaps(call.loops, step.kernel);
  call.input_access = toAccess(access);
  addLibrary(std::move(call), inPrologue, memoryOf(callBytes));
}

void PlanBuilder::library(artifact::ReorderT call, bool inPrologue) {
  addLibrary(std::move(call), inPrologue, nullptr);
}

void PlanBuilder::divide(uint32_t loop, int64_t step) {
  auto division = std::make_unique<artifact::DivisionT>();
  division->loop = loop;
  division->step = division->grain = step;
  plan.steps.back()->action.AsLibraryStep()->division = std::move(division);
}

std::unique_ptr<artifact::CallMemoryT> PlanBuilder::memoryOf(int64_t bytes) {
  auto memory = std::make_unique<artifact::CallMemoryT>();
  memory->packed = memory->scratch = memory->thread_scratch = {bytes};
  memory->thread_packed = {0};
  return memory;
}

runtime::RunnerOptions test::divideCalls(std::mt19937_64 &random, PlanBuilder &builder) {
  auto draw = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  runtime::RunnerOptions options;
  options.threads = static_cast<int>(builder.mesh.numRanks() * draw(1, 4));
  if (builder.plan.target != "cpu")
    return options;
  for (auto *steps : {&builder.plan.prologue, &builder.plan.steps})
    for (auto &step : *steps) {
      artifact::LibraryStepT *library = step->action.AsLibraryStep();
      if (!library || !library->memory || draw(0, 4) == 0)
        continue;
      uint32_t output = 0;
      if (auto *convolution = library->call.AsConvolution())
        output = convolution->output;
      else if (auto *product = library->call.AsMatMul())
        output = product->output;
      else
        output = library->call.AsPool()->output;
      int64_t rank = builder.plan.buffers[builder.plan.tensors[output]->buffer]->shape.size();
      library->division = std::make_unique<artifact::DivisionT>();
      library->division->loop = static_cast<uint32_t>(draw(0, rank - 1));
      library->division->step = draw(0, 2) ? 1 : draw(1, 4);
      library->division->grain = library->division->step * draw(1, 2);
    }
  return options;
}
