//===- Attention.cpp - Attention steps ------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines attention by the runtime's own kernels. They take operands as they lie in memory.
//
//===----------------------------------------------------------------------===//

#include "../../Memory/Alignment.h"
#include "Kernels/VectorKernels.h"
#include "LibrarySteps.h"

#include "dovetail/Layout/Attention.h"
#include "dovetail/Layout/Window.h"

#include <algorithm>
#include <array>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;

namespace {

class AttentionStep : public LibraryStep {
public:
  AttentionStep(const RankMemory &context, const AttentionCall &call, const Box &loops, ThreadPool *threads)
      : context(context), call(call), loops(loops), threads(threads) {}

  absl::Status plan() override;
  int64_t stagingBytes() const override { return 0; }
  absl::Status create(CallBudget &budget) override;
  absl::Status bind(std::byte *scratch) override;
  absl::Status run() override;

private:
  /// A tensor whose elements differ between batches: where those of the first one lie, and how far apart they are.
  struct Operand {
    Box box;
    std::vector<int64_t> strides; ///< For each dimension of the batch, in elements; 0 where it broadcasts.
    std::byte *data = nullptr;
  };
  /// A multiple of the rows that products of any instruction set take at once.
  static constexpr int64_t rowsOfUnit = 12;

  int numThreads() const { return threads ? threads->size() : 1; }
  int64_t threadBytes() const { return alignedSize(4 * layout::attentionScratch(task.depth, task.columns)); }
  Operand makeOperand(uint32_t tensor, Box box) const;
  /// The first row of a block: products take several rows at once.
  int64_t firstRow(int64_t block) const {
    return std::min((rows + rowsOfUnit - 1) / rowsOfUnit * block / blocks * rowsOfUnit, rows);
  }
  void runPart(int part);

  const RankMemory &context;
  const AttentionCall &call;
  Box loops;
  ThreadPool *threads;
  int rank = 0;                    ///< Of the result.
  std::array<Operand, 5> operands; ///< The result, queries, keys, values, the mask.
  AttentionTask task{};
  int64_t batches = 1, rows = 0, blocks = 1; ///< Each batch has so many blocks of rows.
  std::byte *scratch = nullptr;
};

} // namespace

/// Strides of dimensions of the result before the last two; the task has those of the others.
AttentionStep::Operand AttentionStep::makeOperand(uint32_t tensor, Box box) const {
  const MemoryView &view = context.memory(tensor);
  Operand operand{std::move(box), {}, nullptr};
  int missing = rank - operand.box.rank();
  for (int dim = 0; dim < rank - 2; ++dim) {
    bool moves = dim >= missing && operand.box[dim - missing].size() > 1;
    operand.strides.push_back(moves ? view.strides[dim - missing] : 0);
  }
  return operand;
}

absl::Status AttentionStep::plan() {
  rank = loops.rank() - 2;
  Box result(std::vector<layout::Interval>(loops.begin(), loops.begin() + rank));
  operands[0] = makeOperand(call.output, result);
  size_t number = 1;
  for (const auto &[tensor, access] : call.operands()) {
    Box box = layout::needOf(*access, loops);
    if (absl::Status status = context.checkHeld(tensor, box); !status.ok())
      return status;
    operands[number++] = makeOperand(tensor, std::move(box));
  }
  auto strides = [&](uint32_t tensor) { return context.memory(tensor).strides.end(); };
  task.keys = loops[rank].size();
  task.depth = loops[rank + 1].size();
  task.columns = loops[rank - 1].size();
  task.queryRow = strides(call.query)[-2];
  task.queryDepth = strides(call.query)[-1];
  task.keyRow = strides(call.key)[-2];
  task.keyDepth = strides(call.key)[-1];
  task.valueRow = strides(call.value)[-2];
  task.valueColumn = strides(call.value)[-1];
  task.outputRow = strides(call.output)[-2];
  task.outputColumn = strides(call.output)[-1];
  if (call.mask >= 0) {
    const Box &box = operands[4].box;
    int last = box.rank();
    auto stride = [&](int dim) { return last >= dim && box[last - dim].size() > 1 ? strides(call.mask)[-dim] : 0; };
    task.maskKey = stride(1);
    task.maskRow = stride(2);
  }
  task.scale = call.scale;
  task.fill = call.fill;
  for (int dim = 0; dim < rank - 2; ++dim)
    batches *= loops[dim].size();
  rows = loops[rank - 2].size();
  // Each thread has two blocks at least, so that one that is late holds up the others less.
  blocks = std::max((rows + layout::attentionRows - 1) / layout::attentionRows,
                    std::min((2 * numThreads() + batches - 1) / batches, (rows + rowsOfUnit - 1) / rowsOfUnit));
  return absl::OkStatus();
}

absl::Status AttentionStep::create(CallBudget &budget) {
  return budget.allows(0, threadBytes() * numThreads())
             ? absl::OkStatus()
             : absl::ResourceExhaustedError("too little scratch memory for attention");
}

absl::Status AttentionStep::bind(std::byte *memory) {
  scratch = memory;
  operands[0].data = context.memory(call.output).address(operands[0].box);
  size_t number = 1;
  for (const auto &operand : call.operands()) {
    operands[number].data = context.memory(operand.first).address(operands[number].box);
    ++number;
  }
  return absl::OkStatus();
}

void AttentionStep::runPart(int part) {
  AttentionTask own = task;
  int64_t parts = numThreads(), total = batches * blocks;
  auto *memory = reinterpret_cast<float *>(scratch + threadBytes() * part);
  const VectorKernels &kernels = hostKernels();
  for (int64_t block = total * part / parts; block < total * (part + 1) / parts; ++block) {
    std::array<int64_t, 5> offsets{};
    int64_t batch = block / blocks;
    for (int dim = rank - 3; dim >= 0; --dim) {
      int64_t coordinate = batch % loops[dim].size();
      batch /= loops[dim].size();
      for (size_t i = 0; i < operands.size(); ++i)
        if (operands[i].data)
          offsets[i] += coordinate * operands[i].strides[dim];
    }
    auto at = [&](size_t i) { return reinterpret_cast<float *>(operands[i].data) + offsets[i]; };
    own.output = at(0);
    own.query = at(1);
    own.key = at(2);
    own.value = at(3);
    if (call.mask >= 0 && context.memory(call.mask).type == ElementType::Bool)
      own.choice = reinterpret_cast<const uint8_t *>(operands[4].data) + offsets[4];
    else if (call.mask >= 0)
      own.addend = at(4);
    kernels.runAttention(own, firstRow(block % blocks), firstRow(block % blocks + 1), memory);
  }
}

absl::Status AttentionStep::run() {
  threads->run(numThreads(), [](void *self, int part) { static_cast<AttentionStep *>(self)->runPart(part); }, this);
  return absl::OkStatus();
}

std::unique_ptr<LibraryStep> dovetail::runtime::makeAttention(const RankMemory &context, const AttentionCall &call,
                                                              const Box &loops, ThreadPool *threads) {
  return std::make_unique<AttentionStep>(context, call, loops, threads);
}
