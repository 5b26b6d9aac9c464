//===- PostOpRead.cpp - What post-ops read --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PostOpRead.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::Interval;

MemoryView PostOpRead::repeated(const Box &result) const {
  MemoryView whole = view;
  for (int dim = 0; dim < result.rank(); ++dim)
    if (!(box[dim] == result[dim])) {
      whole.box[dim] = result[dim];
      whole.strides[dim] = 0;
    }
  return whole;
}

absl::StatusOr<PostOpRead> dovetail::runtime::postOpRead(const RankMemory &memory, const PostOpInfo &op,
                                                         const Box &result) {
  auto tensor = static_cast<uint32_t>(op.tensor);
  const std::vector<int64_t> &shape = memory.plan.bufferOf(tensor).shape;
  int missing = result.rank() - static_cast<int>(shape.size());
  PostOpRead read;
  read.repeats.assign(missing, true);
  std::vector<Interval> part(missing, {0, 1}), held = part, stored = part;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    read.repeats.push_back(shape[dim] == 1);
    part.push_back(shape[dim] == 1 ? Interval{0, 1} : result[missing + dim]);
    held.push_back(memory.box(tensor)[dim]);
    stored.push_back(memory.memory(tensor).box[dim]);
  }
  read.box = Box(part);
  if (!Box(held).contains(read.box))
    return absl::DataLossError(absl::StrCat("damaged plan: the post-op needs ", read.box.str(), " of ",
                                            memory.name(tensor), ", but this rank holds ", Box(held).str()));
  read.isFull = true;
  for (int dim = 0; dim < result.rank(); ++dim)
    read.isFull &= part[dim].size() == result[dim].size();
  read.view = memory.memory(tensor);
  read.view.box = Box(stored);
  read.view.strides.insert(read.view.strides.begin(), missing, 0);
  return read;
}

bool dovetail::runtime::readsResult(const RankMemory &memory, const PostOpInfo &op, uint32_t output) {
  return op.readsTensor() && memory.plan.tensors[op.tensor].buffer == memory.plan.tensors[output].buffer;
}

bool dovetail::runtime::readsResult(const RankMemory &memory, std::span<const PostOpInfo> ops, uint32_t output) {
  return std::any_of(ops.begin(), ops.end(), [&](const PostOpInfo &op) { return readsResult(memory, op, output); });
}
