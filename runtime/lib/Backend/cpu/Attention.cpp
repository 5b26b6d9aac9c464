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

#include "dovetail/Calls/Attention.h"
#include "dovetail/Calls/AttentionForm.h"
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
      : context(context), call(call), loops(loops), reads(loops), threads(threads) {}

  absl::Status plan() override;
  int64_t stagingBytes() const override { return 0; }
  absl::Status create(CallBudget &budget) override;
  absl::Status bind(std::byte *scratch) override;
  absl::Status run() override;

private:
  /// An operand or the result: where the elements of the first iterations lie, and how far apart others are, in
  /// elements.
  struct Operand {
    Box box;
    std::vector<int64_t> batch, heads; ///< For each dimension of the batch, and for each head.
    int64_t row = 0, key = 0, depth = 0, column = 0;
    std::byte *data = nullptr;
  };
  /// A head of the result, or what the rank has of its columns.
  struct Head {
    int64_t begin, end;
  };
  /// A multiple of the rows that products of any instruction set take at once.
  static constexpr int64_t rowsOfUnit = 12;

  int numThreads() const { return threads ? threads->size() : 1; }
  int64_t threadBytes() const {
    return alignedSize(4 * calls::attentionScratch(task.depth, std::min(form.columns, reads[rank - 1].size())));
  }
  Operand makeOperand(uint32_t tensor, const Access &access) const;
  /// The first row of a block: products take several rows at once.
  int64_t firstRow(int64_t block) const {
    return std::min((rows + rowsOfUnit - 1) / rowsOfUnit * block / blocks * rowsOfUnit, rows);
  }
  void runPart(int part);

  const RankMemory &context;
  const AttentionCall &call;
  Box loops;
  Box reads; ///< The same with the columns of values alone.
  ThreadPool *threads;
  int rank = 0; ///< Of the result.
  calls::AttentionForm form;
  std::vector<Head> heads;
  std::array<Operand, 5> operands; ///< The result, queries, keys, values, the mask.
  AttentionTask task{};
  int64_t batches = 1, rows = 0, blocks = 1; ///< Each head of a batch has so many blocks of rows.
  std::byte *scratch = nullptr;
};

} // namespace

AttentionStep::Operand AttentionStep::makeOperand(uint32_t tensor, const Access &access) const {
  const MemoryView &view = context.memory(tensor);
  std::vector<int64_t> first;
  for (const layout::Interval &range : loops)
    first.push_back(range.lo);
  auto offset = [&](const std::vector<int64_t> &point) {
    int64_t sum = 0;
    for (size_t dim = 0; dim < access.size(); ++dim)
      sum += (access[dim].index.evaluate(point) - access[dim].index.evaluate(first)) * view.strides[dim];
    return sum;
  };
  // Where it is read is the sum of what follows from each loop.
  auto step = [&](int loop, int64_t begin) {
    std::vector<int64_t> point = first, next = first;
    point[loop] = begin;
    next[loop] = begin + 1;
    return offset(next) - offset(point);
  };
  Operand operand{layout::needOf(access, reads), {}, {}};
  for (int dim = 0; dim < rank - 2; ++dim)
    operand.batch.push_back(step(dim, first[dim]));
  for (const Head &head : heads) {
    std::vector<int64_t> point = first;
    point[rank - 1] = head.begin;
    operand.heads.push_back(offset(point));
    // The first of two columns of a head is as good as any other.
    if (head.end - head.begin > 1 || call.isOfParts)
      operand.column = step(rank - 1, head.begin);
  }
  operand.row = step(rank - 2, first[rank - 2]);
  operand.key = step(rank, first[rank]);
  operand.depth = step(rank + 1, first[rank + 1]);
  return operand;
}

absl::Status AttentionStep::plan() {
  rank = loops.rank() - 2;
  std::vector<int64_t> extents;
  for (const LoopInfo &loop : call.loops)
    extents.push_back(loop.extent);
  std::vector<calls::AccessDims> accesses;
  for (const auto &operand : call.operands())
    accesses.emplace_back(*operand.second);
  std::optional<calls::AttentionForm> found = calls::AttentionForm::find(accesses, extents);
  if (!found)
    return absl::DataLossError("damaged plan: it reads its operands as no attention does");
  form = *found;
  if (call.isOfParts) {
    form.columns -= calls::attentionPartColumns;
    reads[rank - 1].hi -= calls::attentionPartColumns;
    if (form.columns != reads[rank - 1].size() || form.columns == 0)
      return absl::DataLossError("damaged plan: it gives parts of several heads");
  }
  const layout::Interval &columns = reads[rank - 1];
  for (int64_t begin = columns.lo, end; begin < columns.hi; begin = end) {
    end = std::min(begin / form.columns * form.columns + form.columns, columns.hi);
    heads.push_back({begin, end});
  }
  Access result;
  for (int dim = 0; dim < rank; ++dim)
    result.emplace_back(layout::IndexExpr::loop(dim));
  operands[0] = makeOperand(call.output, result);
  size_t number = 1;
  for (const auto &[tensor, access] : call.operands()) {
    if (absl::Status status = context.checkHeld(tensor, layout::needOf(*access, reads)); !status.ok())
      return status;
    operands[number++] = makeOperand(tensor, *access);
  }
  task.keys = loops[rank].size();
  task.depth = loops[rank + 1].size();
  task.queryRow = operands[1].row;
  task.queryDepth = operands[1].depth;
  task.keyRow = operands[2].key;
  task.keyDepth = operands[2].depth;
  task.valueRow = operands[3].key;
  task.valueColumn = operands[3].column;
  task.outputRow = operands[0].row;
  task.outputColumn = operands[0].column;
  task.maskRow = operands[4].row;
  task.maskKey = operands[4].key;
  task.scale = call.scale;
  task.fill = call.fill;
  task.isOfParts = call.isOfParts;
  for (int dim = 0; dim < rank - 2; ++dim)
    batches *= loops[dim].size();
  rows = loops[rank - 2].size();
  // Each thread has two blocks at least, so that one that is late holds up the others less.
  int64_t parts = batches * static_cast<int64_t>(heads.size());
  blocks = std::max((rows + calls::attentionRows - 1) / calls::attentionRows,
                    std::min((2 * numThreads() + parts - 1) / parts, (rows + rowsOfUnit - 1) / rowsOfUnit));
  return absl::OkStatus();
}

absl::Status AttentionStep::create(CallBudget &budget) {
  int64_t bytes = threadBytes() * numThreads();
  budget.takeScratch(bytes);
  return budget.allows(0, bytes) ? absl::OkStatus()
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
  int64_t parts = numThreads(), numHeads = static_cast<int64_t>(heads.size()), total = batches * numHeads * blocks;
  auto *memory = reinterpret_cast<float *>(scratch + threadBytes() * part);
  const VectorKernels &kernels = hostKernels();
  for (int64_t block = total * part / parts; block < total * (part + 1) / parts; ++block) {
    std::array<int64_t, 5> offsets{};
    int64_t head = block / blocks % numHeads, batch = block / blocks / numHeads;
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i].data)
        offsets[i] = operands[i].heads[head];
    for (int dim = rank - 3; dim >= 0; --dim) {
      int64_t coordinate = batch % loops[dim].size();
      batch /= loops[dim].size();
      for (size_t i = 0; i < operands.size(); ++i)
        if (operands[i].data)
          offsets[i] += coordinate * operands[i].batch[dim];
    }
    auto at = [&](size_t i) { return reinterpret_cast<float *>(operands[i].data) + offsets[i]; };
    own.columns = heads[head].end - heads[head].begin;
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
