//===- RankMemory.cpp - Memory of ranks of a lowered program --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements what is asked of the memory of ranks.
//
//===----------------------------------------------------------------------===//

#include "RankMemory.h"

#include "dovetail/tools/Support.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace dovetail;
using llvm::FailureOr;

/// Of what a rank may have, the part that unequal pieces are meant to take: they are of whole elements, and steps need
/// scratch memory.
static constexpr double kMeantShare = 0.97;
/// Tensors that messages name.
static constexpr size_t kMaxNamed = 4;

FailureOr<RankMemory> dovetail::getMost(const runtime::Plan &plan, llvm::ArrayRef<double> limits, int step) {
  RankMemory most;
  runtime::MemoryEstimator estimator(plan, /*threads=*/1);
  for (int rank = 0; rank < plan.mesh.numRanks(); rank += step) {
    absl::StatusOr<runtime::MemoryUse> use = estimator.estimate(rank);
    if (!use.ok())
      return llvm::failure();
    const runtime::SessionStatistics &memory = use->statistics;
    RankMemory own{rank, static_cast<double>(memory.totalBytes()), limits[rank]};
    if (rank > 0 && own.getShare() <= most.getShare())
      continue;
    int64_t weights = 0;
    for (uint32_t buffer = 0; buffer < plan.buffers.size(); ++buffer)
      if (plan.buffers[buffer].kind == runtime::BufferKind::Constant)
        weights += plan.bufferBox(buffer, rank).volume() * runtime::elementSize(plan.buffers[buffer].type);
    auto kept =
        static_cast<double>(memory.weightBytes + memory.copiedBytes + memory.persistentBytes + memory.packedBytes);
    if (weights > 0)
      own.weightFactor = std::max(kept / static_cast<double>(weights), 1.0);
    most = own;
  }
  return most;
}

FailureOr<std::vector<double>> dovetail::getMostShares(const runtime::Plan &plan, llvm::ArrayRef<double> limits) {
  int numRanks = plan.mesh.numRanks();
  // Of values and of weights that are divided, what ranks have; of weights that they have whole, and of all.
  std::vector<double> divided(numRanks), whole(numRanks), held(numRanks);
  double all = 0;
  for (uint32_t buffer = 0; buffer < plan.buffers.size(); ++buffer) {
    const runtime::BufferInfo &info = plan.buffers[buffer];
    int64_t volume = 1;
    for (int64_t extent : info.shape)
      volume *= extent;
    bool isConstant = info.kind == runtime::BufferKind::Constant;
    for (int rank = 0; rank < numRanks; ++rank) {
      int64_t own = plan.bufferBox(buffer, rank).volume();
      double bytes = static_cast<double>(own * runtime::elementSize(info.type));
      if (isConstant)
        held[rank] += bytes;
      if (isConstant && own == volume) {
        whole[rank] += bytes;
        continue;
      }
      divided[rank] += bytes;
      all += bytes;
    }
  }
  std::vector<double> shares;
  runtime::MemoryEstimator estimator(plan, /*threads=*/1);
  for (int rank = 0; rank < numRanks; ++rank) {
    absl::StatusOr<runtime::MemoryUse> use = estimator.estimate(rank);
    if (!use.ok())
      return llvm::failure();
    auto taken = static_cast<double>(use->statistics.totalBytes());
    auto kept = taken - static_cast<double>(use->statistics.arenaBytes);
    // With what libraries pack of them.
    double constant = held[rank] > 0 ? kept * whole[rank] / held[rank] : 0;
    double growing = taken - constant, share = divided[rank] / all;
    double room = kMeantShare * limits[rank] - constant;
    // A rank that has nothing says nothing about what a part would take it: as much as all others together.
    bool isKnown = all > 0 && share > 0 && growing > 0;
    shares.push_back(isKnown ? std::clamp(share * room / growing, 0.0, 1.0) : room > 0 ? 1.0 : 0.0);
  }
  return shares;
}

std::string dovetail::listLargest(const runtime::Plan &plan, int rank) {
  std::vector<std::pair<int64_t, uint32_t>> buffers;
  for (uint32_t buffer = 0; buffer < plan.buffers.size(); ++buffer)
    buffers.push_back(
        {plan.bufferBox(buffer, rank).volume() * runtime::elementSize(plan.buffers[buffer].type), buffer});
  llvm::sort(buffers, [](const auto &a, const auto &b) {
    return std::pair(-a.first, a.second) < std::pair(-b.first, b.second);
  });
  std::string list;
  for (auto [bytes, buffer] : llvm::ArrayRef(buffers).take_front(kMaxNamed)) {
    std::string name;
    for (const runtime::TensorInfo &tensor : plan.tensors)
      if (tensor.buffer == buffer && name.empty())
        name = tensor.name;
    const runtime::BufferInfo &info = plan.buffers[buffer];
    list += (list.empty() ? "" : ", ") + std::string(info.kind == runtime::BufferKind::Arena ? "value" : "weights") +
            (name.empty() ? "" : " '" + name + "'") + " [" +
            llvm::join(llvm::map_range(info.shape, [](int64_t extent) { return std::to_string(extent); }), ", ") +
            "] " + tools::formatBytes(bytes);
  }
  return list;
}
