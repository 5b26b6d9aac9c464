//===- PlanBuilder.cpp - Plans written by hand -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"
#include "Waits.h"

#include "dovetail/runtime/ArtifactFormat.h"

#include <algorithm>
#include <cstdlib>
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

std::unique_ptr<artifact::DimT> test::toDim(const layout::DimSharding &dim) {
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
      return layout::MemoryFormat{{format.order.begin(), format.order.end()}};
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
