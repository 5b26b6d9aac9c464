//===- JobLoopsTest.cpp - Loops that are taken apart ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fake.h"

#include "Backend/cuda/PostOpWork.h"
#include "Backend/device/kernels/JobLoops.h"

#include <random>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using namespace dovetail::runtime::device;
using layout::Box;
using layout::Interval;

namespace {

constexpr int64_t most = int64_t(1) << 31;

/// The parts, after it is clear that they are small enough and make the whole.
std::vector<LoopPart> checkedParts(const std::vector<int64_t> &counts, size_t mostLoops) {
  std::vector<LoopPart> parts = splitLoops(counts, mostLoops);
  int64_t done = 0, all = 1;
  for (const LoopPart &part : parts) {
    int64_t rounds = 1, loops = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      EXPECT_LE(part.first[i] + part.count[i], counts[i]);
      rounds *= part.count[i];
      loops += part.count[i] > 1;
    }
    EXPECT_EQ(rounds, part.rounds());
    EXPECT_LE(rounds, most);
    EXPECT_LE(loops, static_cast<int64_t>(mostLoops));
    done += rounds;
  }
  for (int64_t count : counts)
    all *= count;
  EXPECT_EQ(done, all);
  std::mt19937_64 random(5);
  for (int i = 0; i < 10; ++i) {
    std::vector<int64_t> place;
    for (int64_t count : counts)
      place.push_back(random() % count);
    int found = 0;
    for (const LoopPart &part : parts) {
      bool inside = true;
      for (size_t loop = 0; loop < counts.size(); ++loop)
        inside &= part.first[loop] <= place[loop] && place[loop] < part.first[loop] + part.count[loop];
      found += inside;
    }
    EXPECT_EQ(found, 1);
  }
  return parts;
}

TEST(JobLoops, PartsAreFew) {
  EXPECT_EQ(checkedParts({}, 8).size(), 1u);
  EXPECT_EQ(checkedParts({most}, 8).size(), 1u);
  EXPECT_EQ(checkedParts({most + 1}, 8).size(), 2u);
  EXPECT_EQ(checkedParts({int64_t(1) << 20, 1 << 13}, 8).size(), 4u);
  EXPECT_EQ(checkedParts({3, most}, 8).size(), 3u);
  EXPECT_EQ(checkedParts({3, most + 1}, 8).size(), 6u);
  EXPECT_EQ(checkedParts({5, 2, 4, 3}, 2).size(), 6u);
  EXPECT_EQ(checkedParts({int64_t(1) << 40, 2, 3}, 2).size(), 2u * 1537);
  EXPECT_EQ(checkedParts({2, 1, 3, 1, 4}, 3).size(), 1u);
  EXPECT_EQ(splitLoops({int64_t(1) << 40, 0}, 8).size(), 1u);
}

TEST(JobLoops, RandomLoopsAreCovered) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 100; ++round) {
    std::vector<int64_t> counts(1 + random() % 5);
    for (int64_t &count : counts)
      count = 1 + random() % 10;
    if (round % 2)
      counts[random() % counts.size()] <<= 28;
    checkedParts(counts, counts.size() - random() % std::min<size_t>(counts.size(), 3));
  }
}

/// Ten dimensions whose orders in memory have nothing in common are more loops than a job has. A tensor of the plan
/// is added.
class DeepPostOps : public test::FakeDevice {};

TEST_F(DeepPostOps, AreTakenApart) {
  constexpr int rank = 10, count = 1 << rank;
  std::vector<int> order(rank), reversed(rank), mixed{3, 8, 0, 5, 9, 1, 7, 2, 6, 4};
  for (int dim = 0; dim < rank; ++dim)
    order[dim] = reversed[rank - 1 - dim] = dim;
  std::vector<int64_t> shape(rank, 2);
  Plan plan;
  plan.mesh = layout::Mesh({{"rank", 1}});
  layout::Sharding whole = layout::Sharding::replicated(rank);
  plan.buffers.push_back({BufferKind::Arena, ElementType::F32, shape, whole, {mixed}});
  plan.tensors.push_back({"added", 0, whole});
  RankMemory memory{plan, 0};
  Box box(std::vector<Interval>(rank, {0, 2}));
  MemoryView target = MemoryView::packed(ElementType::F32, box, {order}),
             source = MemoryView::packed(ElementType::F32, box, {reversed}),
             added = MemoryView::packed(ElementType::F32, box, {mixed});
  std::vector<std::shared_ptr<std::byte>> owned;
  for (MemoryView *view : {&target, &source, &added}) {
    owned.push_back(*context->allocate(view->bytes()));
    view->data = owned.back().get();
  }
  memory.buffers = {added};
  auto values = [](const MemoryView &view) { return reinterpret_cast<float *>(view.data); };
  for (int i = 0; i < count; ++i) {
    values(source)[i] = static_cast<float>(i);
    values(added)[i] = static_cast<float>(i) / count;
  }

  std::vector<PostOpInfo> ops = {{PostOpKind::LeakyRelu, -1, 0.5f}, {PostOpKind::AddTensor, 0}};
  PostOpWork work(context, memory, ops, 0, box);
  ASSERT_TRUE(work.prepare(ElementType::F32).ok());
  absl::Status status = work.bind(target, source);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(work.issue(*stream).ok());
  ASSERT_TRUE(stream->synchronize().ok());
  EXPECT_EQ(log->launches, 32);
  for (int i = 0; i < count; ++i) {
    int inSource = 0, inAdded = 0;
    for (int dim = 0; dim < rank; ++dim) {
      int bit = i >> (rank - 1 - dim) & 1;
      inSource |= bit << dim;
      auto at = std::find(mixed.begin(), mixed.end(), dim) - mixed.begin();
      inAdded |= bit << (rank - 1 - at);
    }
    ASSERT_EQ(values(target)[i], static_cast<float>(inSource) + static_cast<float>(inAdded) / count) << i;
  }
}

} // namespace
