//===- PostOpWorkTest.cpp - Post-ops in vectors of elements ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fake.h"

#include "Backend/cuda/PostOpWork.h"

#include <cstring>
#include <random>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using layout::Box;
using layout::Interval;

namespace {

/// An operation on one value, as ONNX defines it, with the rounding of the type.
template <typename T> T reference(const PostOpInfo &op, T x, T operand) {
  T alpha = static_cast<T>(op.alpha), beta = static_cast<T>(op.beta);
  auto clip = [](T value, T low, T high) { return std::min(std::max(value, low), high); };
  float f = static_cast<float>(x);
  switch (op.kind) {
  case PostOpKind::AddTensor:
    return x + operand;
  case PostOpKind::MulTensor:
    return x * operand;
  case PostOpKind::Relu:
    return std::max(x, T(0));
  case PostOpKind::LeakyRelu:
    return x < 0 ? x * alpha : x;
  case PostOpKind::Clip:
    return clip(x, alpha, beta);
  case PostOpKind::HardSwish:
    return x * clip(x / T(6) + T(0.5), T(0), T(1));
  case PostOpKind::HardSigmoid:
    return clip(x * alpha + beta, T(0), T(1));
  case PostOpKind::Sigmoid:
    return sigmoid(f);
  case PostOpKind::Tanh:
    return hyperbolicTangent(f);
  case PostOpKind::Gelu:
    return 0.5f * f * (1.0f + errorFunction(f * 0.707106781f));
  case PostOpKind::GeluTanh:
    return 0.5f * f * (1.0f + hyperbolicTangent(0.797884561f * (f + 0.044715f * f * f * f)));
  case PostOpKind::Swish:
    return f * sigmoid(op.alpha * f);
  case PostOpKind::Elu:
    return f < 0 ? op.alpha * exponentialLess1(f) : f;
  }
  return x;
}

/// Chains of random operations on parts of tensors, whose operands are read whole or repeated along some dimensions.
class RandomPostOps : public test::FakeDevice {
protected:
  int64_t random(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(generator); }

  MemoryView hold(ElementType type, const Box &box, std::vector<int> order) {
    MemoryView view = MemoryView::packed(type, box, {std::move(order)});
    // At times without the alignment of whole allocations.
    int64_t offset = random(0, 5) == 0 ? elementSize(type) : 0;
    owned.push_back(*context->allocate(view.bytes() + offset));
    view.data = owned.back().get() + offset;
    return view;
  }

  template <typename Access> void fill(const MemoryView &view) {
    using Stored = typename Access::Stored;
    for (int64_t i = 0; i < view.bytes() / static_cast<int64_t>(sizeof(Stored)); ++i) {
      Stored value = Access::store(static_cast<typename Access::Value>(random(-400, 400)) / 64);
      std::memcpy(view.data + i * sizeof(Stored), &value, sizeof(value));
    }
  }

  /// Runs a chain, and returns whether vectors were used.
  template <typename Access> bool check(ElementType type, int round);

  std::mt19937 generator{11};
  std::vector<std::shared_ptr<std::byte>> owned;
};

template <typename Access> bool RandomPostOps::check(ElementType type, int round) {
  using Stored = typename Access::Stored;
  using Value = typename Access::Value;
  owned.clear();
  int rank = static_cast<int>(random(1, 4));
  std::vector<int> order(rank);
  for (int dim = 0; dim < rank; ++dim)
    order[dim] = dim;
  std::shuffle(order.begin(), order.end(), generator);
  std::vector<int64_t> shape;
  std::vector<Interval> inside, all;
  for (int dim = 0; dim < rank; ++dim) {
    int64_t size = round % 2 ? 8 * random(1, rank < 3 ? 9 : 3) : random(1, rank < 3 ? 60 : 12), first = 0;
    if (random(0, 4) == 0)
      first = random(0, size - 1);
    shape.push_back(size);
    all.push_back({0, size});
    inside.push_back({first, size});
  }
  Box box(inside);
  std::vector<int> other = order;
  if (random(0, 5) == 0)
    std::shuffle(other.begin(), other.end(), generator);
  MemoryView target = hold(type, Box(all), order), source = hold(type, Box(all), other);
  fill<Access>(target);
  fill<Access>(source);
  if (random(0, 4) == 0)
    source = target; // In place.
  if (random(0, 9) == 0)
    source.data = nullptr;

  Plan plan;
  plan.mesh = layout::Mesh({{"rank", 1}});
  RankMemory memory{plan, 0};
  std::vector<PostOpInfo> ops;
  int mostKinds = type == ElementType::F64 ? 1 : 2;
  const PostOpKind kinds[] = {PostOpKind::Relu,        PostOpKind::LeakyRelu, PostOpKind::Clip, PostOpKind::HardSwish,
                              PostOpKind::HardSigmoid, PostOpKind::Sigmoid,   PostOpKind::Tanh, PostOpKind::Gelu,
                              PostOpKind::GeluTanh,    PostOpKind::Swish,     PostOpKind::Elu};
  for (int64_t i = 0, count = random(0, 11); i < count; ++i) {
    if (random(0, 1)) {
      ops.push_back(
          {kinds[random(0, mostKinds == 1 ? 4 : 10)], -1, static_cast<float>(random(1, 8)) / 8 - 0.25f, 1.5f});
      continue;
    }
    std::vector<int64_t> read = shape;
    for (int64_t &size : read)
      if (random(0, 3) == 0)
        size = 1;
    std::vector<Interval> part;
    for (int64_t size : read)
      part.push_back({0, size});
    layout::Sharding whole = layout::Sharding::replicated(rank);
    plan.buffers.push_back({BufferKind::Arena, type, read, whole, {order}});
    plan.tensors.push_back({"operand", static_cast<uint32_t>(plan.buffers.size() - 1), whole});
    memory.buffers.push_back(hold(type, Box(part), order));
    fill<Access>(memory.buffers.back());
    ops.push_back(
        {random(0, 1) ? PostOpKind::AddTensor : PostOpKind::MulTensor, static_cast<int64_t>(plan.tensors.size() - 1)});
  }

  auto at = [](const MemoryView &view, const std::vector<int64_t> &place) {
    std::byte *address = view.data;
    for (int dim = 0; dim < view.box.rank(); ++dim)
      address +=
          (view.box[dim].size() == 1 ? 0 : place[dim]) * view.strides[dim] * static_cast<int64_t>(sizeof(Stored));
    return reinterpret_cast<Stored *>(address);
  };
  std::vector<std::byte> expected(target.data, target.data + target.bytes());
  std::vector<int64_t> place;
  for (const Interval &interval : inside)
    place.push_back(interval.lo);
  for (bool isOver = false; !isOver;) {
    Value value = source.data ? Access::load(*at(source, place)) : Value(0);
    for (size_t i = 0; i < ops.size(); ++i) {
      // Where a job ends, the value is stored.
      if (i > 0 && i % PostOpJob::maxOps == 0)
        value = Access::load(Access::store(value));
      Value operand = ops[i].readsTensor() ? Access::load(*at(memory.buffers[ops[i].tensor], place)) : Value(0);
      value = reference<Value>(ops[i], value, operand);
    }
    Stored stored = Access::store(value);
    std::memcpy(&expected[reinterpret_cast<std::byte *>(at(target, place)) - target.data], &stored, sizeof(stored));
    int dim = rank - 1;
    while (dim >= 0 && ++place[dim] == inside[dim].hi)
      place[dim] = inside[dim].lo, --dim;
    isOver = dim < 0;
  }

  PostOpWork work(context, memory, ops, 0, box);
  EXPECT_TRUE(work.prepare(type).ok());
  absl::Status status = work.bind(target, source);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(work.issue(*stream).ok());
  EXPECT_TRUE(stream->synchronize().ok());
  EXPECT_EQ(std::memcmp(target.data, expected.data(), expected.size()), 0) << "round " << round << ": " << box.str();
  return log->postOpWidth > 1;
}

TEST_F(RandomPostOps, AreThoseOfEachElement) {
  int wide = 0, narrow = 0;
  for (int round = 0; round < 400 && !HasFailure(); ++round) {
    bool isWide = round % 8 < 2   ? check<PlainAccess<float>>(ElementType::F32, round)
                  : round % 8 < 4 ? check<HalfAccess>(ElementType::F16, round)
                  : round % 8 < 6 ? check<BrainFloatAccess>(ElementType::BF16, round)
                                  : check<PlainAccess<double>>(ElementType::F64, round);
    ++(isWide ? wide : narrow);
  }
  EXPECT_GT(wide, 80);
  EXPECT_GT(narrow, 80);
}

/// A long row whose length is no multiple of a vector's has a launch of its own for the last elements.
TEST_F(RandomPostOps, TheLastElementsAreApart) {
  constexpr int64_t count = (1 << 18) + 3;
  Plan plan;
  plan.mesh = layout::Mesh({{"rank", 1}});
  RankMemory memory{plan, 0};
  std::vector<PostOpInfo> ops = {{PostOpKind::LeakyRelu, -1, 0.5f}};
  for (int64_t size : {count, count - 3, int64_t(1023)}) {
    Box box({{0, size}});
    owned.clear();
    MemoryView view = MemoryView::packed(ElementType::F32, box, {{0}});
    owned.push_back(*context->allocate(view.bytes()));
    view.data = owned.back().get();
    auto *values = reinterpret_cast<float *>(view.data);
    for (int64_t i = 0; i < size; ++i)
      values[i] = i % 2 ? static_cast<float>(i) : -static_cast<float>(i);
    PostOpWork work(context, memory, ops, 0, box);
    ASSERT_TRUE(work.bind(view, view).ok());
    log->launches = 0;
    ASSERT_TRUE(work.issue(*stream).ok());
    EXPECT_EQ(log->launches, size == count ? 2 : 1);
    for (int64_t i = 0; i < size; ++i)
      ASSERT_EQ(values[i], i % 2 ? static_cast<float>(i) : -0.5f * static_cast<float>(i)) << i;
  }
}

} // namespace
