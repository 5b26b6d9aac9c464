//===- PlanBuilder.cpp - Plans written by hand -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"
#include "Halves.h"
#include "Processes.h"
#include "Waits.h"

#include "dovetail/runtime/ArtifactFormat.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

using namespace dovetail;
using namespace dovetail::test;

layout::DimSharding test::split(int axis, std::vector<int64_t> cuts) {
  return layout::DimSharding::fromCuts({axis}, cuts);
}

layout::DimSharding test::windows(int axis, std::vector<layout::Interval> pieces) {
  layout::DimSharding dim;
  dim.axes = {axis};
  dim.pieces = std::move(pieces);
  return dim;
}

layout::Sharding test::sharding(int rank, std::vector<std::pair<int, layout::DimSharding>> splits,
                                std::vector<int> partialAxes, layout::ReductionKind kind) {
  layout::Sharding result = layout::Sharding::replicated(rank);
  for (auto &[dim, split] : splits)
    result.dims[dim] = std::move(split);
  result.partialAxes = std::move(partialAxes);
  result.partialKind = kind;
  return result;
}

/// As a tensor of `type` has them in memory.
static std::vector<std::byte> encode(const std::vector<float> &values, artifact::ElementType type) {
  if (type == artifact::ElementType::F64) {
    std::vector<double> doubles(values.begin(), values.end());
    std::vector<std::byte> bytes(doubles.size() * sizeof(double));
    std::copy_n(reinterpret_cast<const std::byte *>(doubles.data()), bytes.size(), bytes.begin());
    return bytes;
  }
  bool isHalf = type != artifact::ElementType::F32;
  std::vector<std::byte> bytes(values.size() * (isHalf ? sizeof(uint16_t) : sizeof(float)));
  std::vector<uint16_t> halves;
  for (float value : values)
    if (isHalf)
      halves.push_back(toHalf(value, type == artifact::ElementType::F16 ? kF16 : kBF16));
  if (!bytes.empty())
    std::memcpy(bytes.data(), isHalf ? static_cast<const void *>(halves.data()) : values.data(), bytes.size());
  return bytes;
}

static std::vector<float> decode(const std::vector<std::byte> &bytes, artifact::ElementType type) {
  if (type == artifact::ElementType::F64) {
    std::vector<double> doubles(bytes.size() / sizeof(double));
    std::copy_n(bytes.begin(), bytes.size(), reinterpret_cast<std::byte *>(doubles.data()));
    return {doubles.begin(), doubles.end()};
  }
  bool isHalf = type != artifact::ElementType::F32;
  std::vector<float> values(bytes.size() / (isHalf ? sizeof(uint16_t) : sizeof(float)));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half;
    if (isHalf) {
      std::memcpy(&half, bytes.data() + i * sizeof(half), sizeof(half));
      values[i] = static_cast<float>(fromHalf(half, type == artifact::ElementType::F16 ? kF16 : kBF16));
    } else {
      std::memcpy(&values[i], bytes.data() + i * sizeof(float), sizeof(float));
    }
  }
  return values;
}

std::vector<float> test::rounded(std::vector<float> values, artifact::ElementType type) {
  return decode(encode(values, type), type);
}

double test::roundingError(artifact::ElementType type) {
  int mantissa = type == artifact::ElementType::F16    ? kF16.mantissa
                 : type == artifact::ElementType::BF16 ? kBF16.mantissa
                                                       : std::numeric_limits<float>::digits - 1;
  return std::ldexp(1, -mantissa - 1);
}

static std::unique_ptr<artifact::DimT> toDim(const layout::DimSharding &dim) {
  auto result = std::make_unique<artifact::DimT>();
  result->axes.assign(dim.axes.begin(), dim.axes.end());
  for (layout::Interval piece : dim.pieces)
    result->pieces.emplace_back(piece.lo, piece.hi);
  return result;
}

PlanBuilder::PlanBuilder(std::vector<int64_t> meshSizes) {
  // The tests of library calls run on a device, too.
  const char *target = std::getenv("DOVETAIL_TEST_TARGET");
  plan.target = target ? target : "cpu";
  codePath = DOVETAIL_TEST_KERNELS;
  std::vector<layout::MeshAxis> axes;
  for (size_t i = 0; i < meshSizes.size(); ++i) {
    auto axis = std::make_unique<artifact::MeshAxisT>();
    axis->name = std::string(1, static_cast<char>('a' + i));
    axis->size = meshSizes[i];
    axes.push_back({axis->name, static_cast<int>(axis->size)});
    plan.mesh.push_back(std::move(axis));
  }
  mesh = layout::Mesh(axes);
}

uint32_t PlanBuilder::buffer(Shape shape, const layout::Sharding &sharding, Order order, artifact::BufferKind kind,
                             std::optional<artifact::ElementType> type) {
  auto buffer = std::make_unique<artifact::BufferT>();
  buffer->kind = kind;
  buffer->type = type.value_or(floats);
  for (const layout::DimSharding &dim : sharding.dims)
    buffer->dims.push_back(toDim(dim));
  buffer->format = std::make_unique<artifact::FormatT>();
  for (size_t dim = 0; dim < shape.size(); ++dim)
    buffer->format->order.push_back(order.empty() ? dim : order[dim]);
  buffer->shape = std::move(shape);
  plan.buffers.push_back(std::move(buffer));
  return plan.buffers.size() - 1;
}

uint32_t PlanBuilder::constant(Shape shape, const layout::Sharding &sharding, const std::vector<float> &values,
                               Order order) {
  uint32_t index = buffer(std::move(shape), sharding, order, artifact::BufferKind::Constant);
  weights.resize((weights.size() + 63) / 64 * 64);
  plan.buffers[index]->data_offset = weights.size();
  std::vector<std::byte> bytes = encode(values, floats);
  plan.buffers[index]->data_size = bytes.size();
  weights.insert(weights.end(), bytes.begin(), bytes.end());
  return index;
}

void PlanBuilder::setBlocks(uint32_t tensor, int dim, int block) {
  artifact::FormatT &format = *plan.buffers[plan.tensors[tensor]->buffer]->format;
  format.block_dim = static_cast<int8_t>(dim);
  format.block = block;
}

uint32_t PlanBuilder::reorderToBlocks(uint32_t source, Order order, int dim, int block) {
  uint32_t target = value(shapeOf(source), shardingOf(source), std::move(order));
  setBlocks(target, dim, block);
  artifact::ReorderT call;
  call.source = source;
  call.target = target;
  library(std::move(call));
  return target;
}

uint32_t PlanBuilder::tensor(uint32_t buffer, const layout::Sharding &sharding, std::string name) {
  auto tensor = std::make_unique<artifact::TensorT>();
  tensor->name = std::move(name);
  tensor->buffer = buffer;
  for (const layout::DimSharding &dim : sharding.dims)
    tensor->dims.push_back(toDim(dim));
  tensor->partial_axes.assign(sharding.partialAxes.begin(), sharding.partialAxes.end());
  tensor->partial_kind = static_cast<artifact::Reduction>(sharding.partialKind);
  plan.tensors.push_back(std::move(tensor));
  return plan.tensors.size() - 1;
}

uint32_t PlanBuilder::value(Shape shape, const layout::Sharding &sharding, Order order, std::string name,
                            std::optional<artifact::ElementType> type) {
  return tensor(buffer(std::move(shape), sharding, order, artifact::BufferKind::Arena, type), sharding, name);
}

uint32_t PlanBuilder::constantValue(Shape shape, const layout::Sharding &sharding, const std::vector<float> &values,
                                    Order order) {
  return tensor(constant(std::move(shape), sharding, values, order), sharding, "constant");
}

static std::unique_ptr<artifact::PortT> makePort(const artifact::PlanT &plan, std::string name, uint32_t tensor) {
  auto port = std::make_unique<artifact::PortT>();
  port->name = std::move(name);
  port->tensor = tensor;
  const artifact::BufferT &buffer = *plan.buffers[plan.tensors[tensor]->buffer];
  port->type = buffer.type;
  port->shape = buffer.shape;
  return port;
}

void PlanBuilder::input(std::string name, uint32_t tensor) { plan.inputs.push_back(makePort(plan, name, tensor)); }

void PlanBuilder::output(std::string name, uint32_t tensor) { plan.outputs.push_back(makePort(plan, name, tensor)); }

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

void PlanBuilder::kernel(std::string symbol, std::vector<uint32_t> reads, std::vector<uint32_t> writes,
                         std::vector<std::pair<int64_t, layout::DimSharding>> loops, int parallel, bool inPrologue) {
  artifact::KernelStepT action;
  action.symbol = symbol;
  action.reads = std::move(reads);
  action.writes = std::move(writes);
  for (const auto &[extent, dim] : loops) {
    auto loop = std::make_unique<artifact::LoopT>();
    loop->extent = extent;
    loop->dim = toDim(dim);
    action.loops.push_back(std::move(loop));
  }
  action.parallel_loop = parallel;
  if (!loops.empty())
    action.skip_loops.push_back(0);
  auto step = std::make_unique<artifact::StepT>();
  step->name = symbol;
  step->action.Set(std::move(action));
  (inPrologue ? plan.prologue : plan.steps).push_back(std::move(step));
}

layout::Sharding PlanBuilder::shardingOf(const std::vector<std::unique_ptr<artifact::DimT>> &dims) const {
  layout::Sharding result;
  for (const auto &dim : dims) {
    layout::DimSharding &split = result.dims.emplace_back();
    split.axes.assign(dim->axes.begin(), dim->axes.end());
    for (const artifact::Interval &piece : dim->pieces)
      split.pieces.push_back({piece.lo(), piece.hi()});
  }
  return result;
}

layout::Sharding PlanBuilder::shardingOf(uint32_t tensor) const {
  const artifact::TensorT &value = *plan.tensors[tensor];
  layout::Sharding result = shardingOf(value.dims);
  result.partialAxes.assign(value.partial_axes.begin(), value.partial_axes.end());
  result.partialKind = static_cast<layout::ReductionKind>(value.partial_kind);
  return result;
}

static artifact::ExchangeKind toSchema(layout::ExchangeKind kind) {
  switch (kind) {
  case layout::ExchangeKind::Messages:
    return artifact::ExchangeKind::Messages;
  case layout::ExchangeKind::AllReduce:
    return artifact::ExchangeKind::AllReduce;
  case layout::ExchangeKind::ReduceScatter:
    return artifact::ExchangeKind::ReduceScatter;
  case layout::ExchangeKind::AllGather:
    return artifact::ExchangeKind::AllGather;
  case layout::ExchangeKind::PackedGather:
    return artifact::ExchangeKind::PackedGather;
  }
  return artifact::ExchangeKind::Messages;
}

void PlanBuilder::exchangeInTwo(uint32_t source, uint32_t target) {
  uint32_t buffer = plan.tensors[target]->buffer;
  std::vector<int> order(plan.buffers[buffer]->format->order.begin(), plan.buffers[buffer]->format->order.end());
  auto parts = layout::scatteredSharding(mesh, shapeOf(source), shardingOf(source), shardingOf(target), order);
  ASSERT_TRUE(parts);
  uint32_t part = tensor(buffer, *parts);
  exchange(source, part);
  exchange(part, target);
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

void PlanBuilder::exchange(uint32_t source, uint32_t target, bool inPrologue) {
  artifact::ExchangeStepT action;
  auto &move = action.moves.emplace_back(std::make_unique<artifact::MoveT>());
  move->source = source;
  move->target = target;
  const artifact::BufferT &in = *plan.buffers[plan.tensors[source]->buffer];
  const artifact::BufferT &out = *plan.buffers[plan.tensors[target]->buffer];
  move->order = in.format->order;
  layout::Sharding from = shardingOf(source), to = shardingOf(target), inHeld = shardingOf(in.dims),
                   outHeld = shardingOf(out.dims);
  // Plans that are meant to be refused may say anything.
  if (in.shape == out.shape && layout::verifyExchange(mesh, in.shape, from, to)) {
    auto formatOf = [](const artifact::FormatT &format) {
      return layout::MemoryFormat{{format.order.begin(), format.order.end()}, format.block_dim, format.block};
    };
    layout::MemoryFormat inFormat = formatOf(*in.format), outFormat = formatOf(*out.format);
    layout::ExchangePlace place{mesh, in.shape, from, to, {inHeld, inFormat}, {outHeld, outFormat}};
    action.kind = toSchema(place.findKind(runtime::elementSize(static_cast<runtime::ElementType>(in.type))));
  }
  auto step = std::make_unique<artifact::StepT>();
  step->name = "exchange" + std::to_string(plan.steps.size());
  step->action.Set(std::move(action));
  (inPrologue ? plan.prologue : plan.steps).push_back(std::move(step));
}

void PlanBuilder::addMove(uint32_t source, uint32_t target) {
  artifact::ExchangeStepT &exchange = *plan.steps.back()->action.AsExchangeStep();
  exchange.kind = artifact::ExchangeKind::Messages;
  auto &move = exchange.moves.emplace_back(std::make_unique<artifact::MoveT>());
  move->source = source;
  move->target = target;
  move->order = plan.buffers[plan.tensors[source]->buffer]->format->order;
}

void PlanBuilder::packMoves() {
  plan.steps.back()->action.AsExchangeStep()->kind = artifact::ExchangeKind::PackedGather;
}

void PlanBuilder::repeat(uint32_t condition) {
  artifact::RepeatStepT repeat;
  repeat.condition = condition;
  plan.steps.push_back(std::make_unique<artifact::StepT>());
  plan.steps.back()->name = "repeat" + std::to_string(plan.steps.size() - 1);
  plan.steps.back()->action.Set(std::move(repeat));
}

void PlanBuilder::end() {
  plan.steps.push_back(std::make_unique<artifact::StepT>());
  plan.steps.back()->name = "end";
  plan.steps.back()->action.Set(artifact::EndStepT());
}

void PlanBuilder::wait(std::vector<uint32_t> complete, std::vector<uint32_t> read) {
  artifact::WaitStepT call;
  call.complete = std::move(complete);
  call.read = std::move(read);
  auto step = std::make_unique<artifact::StepT>();
  step->name = "wait";
  step->action.Set(std::move(call));
  plan.steps.push_back(std::move(step));
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

std::vector<std::byte> test::readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_FALSE(bytes.empty()) << path;
  const auto *begin = reinterpret_cast<const std::byte *>(bytes.data());
  return std::vector<std::byte>(begin, begin + bytes.size());
}

std::vector<std::byte> PlanBuilder::artifact() const {
  std::vector<std::byte> code = readBytes(codePath);
  artifact::PlanT complete = plan;
  if (placesWaits)
    addWaits(complete);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(artifact::Plan::Pack(builder, &complete));
  std::vector<runtime::Section> sections;
  sections.push_back(
      {runtime::SectionKind::Plan,
       {absl::MakeConstSpan(reinterpret_cast<const std::byte *>(builder.GetBufferPointer()), builder.GetSize())}});
  // Other devices are for library calls alone: the kernels are the CPU's and the emulated device's.
  if (plan.target == "cpu" || plan.target == "emulated")
    sections.push_back({runtime::SectionKind::Code, {code}});
  sections.push_back({runtime::SectionKind::Weights, {weights}});
  auto bytes = runtime::serializeArtifact(sections);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *bytes;
}

std::shared_ptr<const runtime::Program> PlanBuilder::program() const {
  auto program = runtime::Program::load(artifact());
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : nullptr;
}

namespace {

using Floats = std::vector<std::vector<float>>;

bool reducesByCollectives(const runtime::Plan &plan) {
  for (const std::vector<runtime::StepInfo> *list : {&plan.prologue, &plan.steps})
    for (const runtime::StepInfo &step : *list)
      if (const auto *call = std::get_if<runtime::ExchangeCall>(&step.action))
        if (call->kind == layout::ExchangeKind::AllReduce || call->kind == layout::ExchangeKind::ReduceScatter)
          return true;
  return false;
}

absl::StatusOr<Floats> runHere(std::shared_ptr<const runtime::Program> program, const Floats &inputs,
                               const runtime::RunnerOptions &options) {
  auto runner = runtime::ProgramRunner::create(program, options);
  if (!runner.ok())
    return runner.status();
  const runtime::Plan &plan = program->getPlan();
  for (int rank = 0; rank < program->numRanks(); ++rank)
    if (!options.process || options.process->rank == rank) {
      auto planned = runtime::estimateStatistics(plan, rank, (*runner)->threadsOf(rank));
      EXPECT_TRUE(planned.ok()) << planned.status();
      // Threads send no messages, and collectives that reduce do without memory for them, as does what is read where it
      // is.
      int64_t messages = (*runner)->statistics(rank).messageBytes;
      if (planned.ok() && !options.process)
        planned->messageBytes = 0;
      const char *shared = std::getenv("DOVETAIL_SHARED_MEMORY");
      bool sendsAll = shared && std::string(shared) == "0";
      if (planned.ok() && (reducesByCollectives(plan) || !sendsAll) && messages < planned->messageBytes)
        planned->messageBytes = messages;
      EXPECT_TRUE(!planned.ok() || *planned == (*runner)->statistics(rank)) << "memory of rank " << rank;
    }
  auto typeOf = [](const runtime::PortInfo &port) { return static_cast<artifact::ElementType>(port.type); };
  std::vector<std::vector<std::byte>> given, zeros, results, first;
  for (size_t i = 0; i < inputs.size(); ++i) {
    given.push_back(encode(inputs[i], typeOf(plan.inputs[i])));
    zeros.emplace_back(given.back().size());
  }
  for (const runtime::PortInfo &port : plan.outputs)
    results.push_back(encode(std::vector<float>(volume(port.shape), -12345.0f), typeOf(port)));
  // The last run must give the bits of the first one, whatever others have left in memory, and although its steps are
  // replayed on devices.
  for (auto *bytes : {&given, &zeros, &given}) {
    std::vector<runtime::FullTensor> in, out;
    for (size_t i = 0; i < bytes->size(); ++i)
      in.push_back({(*bytes)[i].data(), plan.inputs[i].type, plan.inputs[i].shape});
    for (size_t i = 0; i < results.size(); ++i)
      out.push_back({results[i].data(), plan.outputs[i].type, plan.outputs[i].shape});
    if (absl::Status status = (*runner)->run(in, out); !status.ok())
      return status;
    if (first.empty())
      first = results;
  }
  Floats decoded;
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(first[i], results[i]) << "output " << i << " differs between two runs";
    decoded.push_back(decode(results[i], typeOf(plan.outputs[i])));
  }
  return decoded;
}

/// The same with a process for each rank.
absl::StatusOr<Floats> runInProcesses(std::shared_ptr<const runtime::Program> program, const Floats &inputs,
                                      runtime::RunnerOptions options) {
  const runtime::Plan &plan = program->getPlan();
  options.communicator = plan.target == "cuda" ? "nccl" : "sockets";
  // First the code of the status, then its message or the results.
  auto outcomes = inProcesses(program->numRanks(), [&](const runtime::LaunchEnvironment &environment) {
    options.process = environment;
    absl::StatusOr<Floats> results = runHere(program, inputs, options);
    std::string text(1, static_cast<char>(results.status().code()));
    if (!results.ok())
      return text + std::string(results.status().message());
    for (const std::vector<float> &result : *results)
      text.append(reinterpret_cast<const char *>(result.data()), result.size() * sizeof(float));
    return text;
  });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.code, 0);
    if (outcome.text.empty())
      return absl::InternalError("a process has ended without a word");
    EXPECT_EQ(outcome.text[0], outcomes[0].text[0]) << outcome.text.substr(1) << "; " << outcomes[0].text.substr(1);
  }
  std::string text = outcomes[0].text.substr(1);
  if (outcomes[0].text[0] != 0)
    return absl::Status(static_cast<absl::StatusCode>(outcomes[0].text[0]), text);
  Floats results;
  size_t at = 0;
  for (const runtime::PortInfo &port : plan.outputs) {
    std::vector<float> &result = results.emplace_back(volume(port.shape));
    if (!result.empty())
      std::memcpy(result.data(), text.data() + at, result.size() * sizeof(float));
    at += result.size() * sizeof(float);
  }
  return results;
}

} // namespace

absl::StatusOr<std::vector<std::vector<float>>> test::runFloats(std::shared_ptr<const runtime::Program> program,
                                                                const std::vector<std::vector<float>> &inputs,
                                                                runtime::RunnerOptions options) {
  if (!program)
    return absl::InternalError("no program");
  if (std::getenv("DOVETAIL_TEST_AUTOTUNE")) {
    options.autotune = true;
    // Imitated libraries are slow, with sanitizers above all, and each call is tried forty times when a session starts.
    options.timeout = std::max<std::chrono::milliseconds>(options.timeout, std::chrono::minutes(10));
  }
  if (std::getenv("DOVETAIL_TEST_PROCESSES"))
    return runInProcesses(std::move(program), inputs, std::move(options));
  return runHere(std::move(program), inputs, options);
}

std::vector<float> test::randomFloats(std::mt19937_64 &random, int64_t count) {
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(random);
  return values;
}

int64_t test::volume(const Shape &shape) {
  int64_t result = 1;
  for (int64_t extent : shape)
    result *= extent;
  return result;
}

std::vector<int64_t> test::randomCuts(std::mt19937_64 &random, int64_t extent, int parts) {
  std::vector<int64_t> cuts = {0, extent};
  for (int i = 1; i < parts; ++i)
    cuts.push_back(std::uniform_int_distribution<int64_t>(0, extent)(random));
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

layout::DimSharding test::withSlack(std::mt19937_64 &random, std::vector<layout::Interval> pieces, int64_t extent) {
  std::uniform_int_distribution<int64_t> more(0, 2);
  for (layout::Interval &piece : pieces)
    if (!piece.empty())
      piece = {std::max<int64_t>(0, piece.lo - more(random)), std::min(extent, piece.hi + more(random))};
  return windows(0, pieces);
}
