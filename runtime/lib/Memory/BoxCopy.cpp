//===- BoxCopy.cpp - Elements from memory to memory -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/BoxCopy.h"

#include "BoxTasks.h"

using namespace dovetail;
using namespace dovetail::runtime;

std::vector<StridedBox> dovetail::runtime::stridedBoxes(const std::vector<BoxPair> &pairs, std::byte *target,
                                                        const std::byte *source) {
  std::vector<StridedBox> boxes;
  for (const BoxPair &pair : pairs)
    boxes.push_back(
        {target + pair.getTargetOffset(), source + pair.getSourceOffset(), pair.getElementBytes(), pair.getLoops()});
  return boxes;
}

void dovetail::runtime::appendCopies(const MemoryView &target, const MemoryView &source, const layout::Box &box,
                                     std::vector<StridedBox> &copies) {
  std::vector<BoxPair> pairs;
  BoxPair::append(target, source, box, pairs);
  for (StridedBox &copy : stridedBoxes(pairs, target.data, source.data))
    copies.push_back(std::move(copy));
}

CombinationDescription dovetail::runtime::describeCombination(layout::ReductionKind kind, const MemoryView &target,
                                                              const MemoryView &source, const layout::Box &box) {
  Combination combination(kind, target, source, box);
  return {kind, target.type, stridedBoxes(combination.getPairs(), target.data, source.data)};
}

CopyTask::CopyTask(const std::vector<StridedBox> &boxes) {
  for (const StridedBox &box : boxes)
    copies.push_back({box.target, box.source, BoxPair(box.elementBytes, box.loops)});
}

absl::Status CopyTask::perform() {
  for (const Copy &copy : copies)
    copy.pair.copy(copy.target, copy.source);
  return absl::OkStatus();
}

CombinationTask::CombinationTask(const CombinationDescription &description) {
  for (const StridedBox &box : description.boxes)
    parts.push_back({box.target, box.source,
                     Combination(description.kind, description.type, {BoxPair(box.elementBytes, box.loops)})});
}

absl::Status CombinationTask::perform() {
  for (const Part &part : parts)
    part.combination.run(part.target, part.source);
  return absl::OkStatus();
}
