//===- ExchangeCosts.cpp - What exchanges cost ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements ExchangeCosts.
//
//===----------------------------------------------------------------------===//

#include "ExchangeCosts.h"

#include "dovetail/Layout/ExchangeKind.h"

#include <numeric>

using namespace mlir;
using namespace dovetail;

// Of ranks that are threads of one process: to wake one another, and to copy.
static constexpr double kSecondsPerPhase = 3e-5;
static constexpr double kBytesPerSecond = 1e10;

double ExchangeCost::getSeconds() const { return kSecondsPerPhase * phases + largestBytes / kBytesPerSecond; }

/// Elements of the largest box that a rank has.
static double getLargestBox(const layout::Sharding &sharding, ArrayRef<int64_t> shape) {
  double elements = 1;
  for (auto [dim, extent] : llvm::zip_equal(sharding.dims, shape)) {
    int64_t largest = dim.isSplit() ? 0 : extent;
    for (layout::Interval piece : dim.pieces)
      largest = std::max(largest, piece.size());
    elements *= static_cast<double>(largest);
  }
  return elements;
}

const layout::Sharding &ExchangeCosts::getLayout(ShardingAttr sharding) {
  std::unique_ptr<layout::Sharding> &entry = layouts[sharding];
  if (!entry)
    entry = std::make_unique<layout::Sharding>(toLayout(sharding, mesh, sharding.getDims().size()));
  return *entry;
}

ExchangeCost ExchangeCosts::getGiving(RankedTensorType type, ShardingAttr held) const {
  layout::Sharding sharding = toLayout(held, mesh, type.getRank());
  double elements = mesh.numRanks();
  // Each axis splits one dimension, so that what ranks hold together is a product, too.
  for (auto [dim, extent] : llvm::zip_equal(sharding.dims, type.getShape())) {
    int64_t sum = dim.isSplit() ? 0 : extent;
    for (layout::Interval piece : dim.pieces)
      sum += piece.size();
    elements *= static_cast<double>(sum) / std::max<double>(dim.pieces.size(), 1);
  }
  double elementBytes = static_cast<double>(getElementByteSize(type.getElementType()));
  ExchangeCost cost;
  cost.totalBytes = (elements - static_cast<double>(type.getNumElements())) * elementBytes;
  cost.largestBytes = getLargestBox(sharding, type.getShape()) * elementBytes;
  return cost;
}

std::optional<ExchangeCost> ExchangeCosts::get(RankedTensorType type, ShardingAttr held, ShardingAttr needed) {
  if (!needed)
    needed = held.withoutPartial();
  if (needed.isPartial()) {
    bool isHeldSo = held.getPartialKind() == needed.getPartialKind() &&
                    held.getPartialAxes().size() == needed.getPartialAxes().size() &&
                    llvm::all_of(needed.getPartialAxes(),
                                 [&](StringAttr axis) { return llvm::is_contained(held.getPartialAxes(), axis); });
    if (!isHeldSo)
      return std::nullopt;
  }
  ExchangeCost cost;
  if (held == needed)
    return cost;
  const layout::Sharding &from = getLayout(held), &to = getLayout(needed);
  double elementBytes = static_cast<double>(getElementByteSize(type.getElementType()));
  auto add = [&](const layout::Sharding &source, const layout::Sharding &target) {
    layout::ExchangeVolume volume = layout::getExchangeVolume(mesh, type.getShape(), source, target);
    cost.totalBytes += static_cast<double>(volume.total) * elementBytes;
    cost.largestBytes += static_cast<double>(volume.largest) * elementBytes;
    cost.phases += volume.total != 0;
  };
  add(from, to);
  // As lowering decides, too: a large reduction is scattered first.
  if (held.getPartialAxes().size() != needed.getPartialAxes().size() &&
      getLargestBox(to, type.getShape()) * elementBytes >= static_cast<double>(layout::minScatterBytes)) {
    std::vector<int> order(type.getRank());
    std::iota(order.begin(), order.end(), 0);
    if (auto scattered = layout::scatteredSharding(mesh, type.getShape(), from, to, order)) {
      cost = {};
      add(from, *scattered);
      add(*scattered, to);
    }
  }
  return cost;
}
