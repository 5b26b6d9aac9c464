//===- ExchangeCostsTest.cpp - Tests of what exchanges cost ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/ExchangeCosts.h"

#include "../Layout/Random.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Layout/ExchangeKind.h"
#include "mlir/AsmParser/AsmParser.h"

#include <set>

using namespace mlir;
using namespace dovetail;

namespace {

const char *const kAxes[] = {"a", "b", "c"};

/// Each axis splits one of the dimensions, or none.
std::string drawSharding(layout::Random &random, const std::vector<int> &sizes, ArrayRef<int64_t> shape) {
  std::vector<std::string> names(shape.size());
  std::vector<int> parts(shape.size(), 1);
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    int dim = random.below(static_cast<int>(shape.size()) + 1);
    if (dim == static_cast<int>(shape.size()))
      continue;
    names[dim] += std::string(names[dim].empty() ? "\"" : "+\"") + kAxes[axis] + "\"";
    parts[dim] *= sizes[axis];
  }
  std::string text = "#dovetail.sharding<@mesh, [";
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    text += dim == 0 ? "{" : ", {";
    std::vector<int64_t> cuts = random.cuts(shape[dim], parts[dim]);
    for (size_t i = 0; !names[dim].empty() && i < cuts.size(); ++i)
      text += (i == 0 ? names[dim] + " : " : ", ") + std::to_string(cuts[i]);
    text += "}";
  }
  return text + "]>";
}

/// What the ranks with most have to do with ranks that a link's group does not have.
struct Beyond {
  int64_t received = 0, sent = 0, sources = 0, targets = 0;
};

Beyond countBeyond(const layout::ExchangePlanner &planner, int numRanks, int64_t group) {
  Beyond most;
  auto isBeyond = [&](const layout::Transfer &transfer) {
    return transfer.source != transfer.dest && (group == 1 || transfer.source / group != transfer.dest / group);
  };
  for (int rank = 0; rank < numRanks; ++rank) {
    int64_t received = 0, sent = 0;
    std::set<int> sources, targets;
    for (const layout::Transfer &transfer : planner.receives(rank))
      if (isBeyond(transfer)) {
        received += transfer.box.volume();
        sources.insert(transfer.source);
      }
    for (const layout::Transfer &transfer : planner.sends(rank))
      if (isBeyond(transfer)) {
        sent += transfer.box.volume();
        targets.insert(transfer.dest);
      }
    most.received = std::max(most.received, received);
    most.sent = std::max(most.sent, sent);
    most.sources = std::max<int64_t>(most.sources, sources.size());
    most.targets = std::max<int64_t>(most.targets, targets.size());
  }
  return most;
}

} // namespace

TEST(ExchangeCostsProperty, MessagesGoOverEachLinkAsPlanned) {
  MLIRContext context;
  context.loadDialect<DovetailDialect>();
  Device device = Cluster::getBuiltIn("h100")->getDevice(0);
  int found = 0, several = 0;
  layout::forRandomCases(3000, [&](layout::Random &random) {
    // Groups end between axes, or within one.
    std::vector<int> sizes(random.between(1, 3));
    std::vector<layout::MeshAxis> axes;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      sizes[axis] = 1 << random.between(0, 3);
      axes.push_back({kAxes[axis], sizes[axis]});
    }
    layout::Mesh mesh(axes);
    int64_t near = int64_t(1) << random.between(1, 3), middle = near << random.between(1, 2);
    Cluster cluster(
        "random", {device},
        {{"near", near, 2e-6, 1e-6, 1e9}, {"middle", middle, 3e-6, 2e-6, 5e8}, {"far", 0, 5e-6, 4e-6, 1e8}});
    int64_t shape[] = {random.between(1, 40), random.between(1, 40)};
    RankedTensorType types[2];
    for (RankedTensorType &type : types) {
      std::string text = "tensor<" + std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + "xf32, " +
                         drawSharding(random, sizes, shape) + ">";
      type = dyn_cast_or_null<RankedTensorType>(parseType(text, &context));
      ASSERT_TRUE(type) << text;
    }
    auto toSharding = [&](ShardingAttr sharding) {
      return sharding ? toLayout(sharding, mesh, 2) : layout::Sharding::replicated(2);
    };
    ShardingAttr held = getSharding(types[0]), needed = getSharding(types[1]);
    if (!held || !needed)
      return;
    layout::Sharding from = toSharding(held), to = toSharding(needed);
    layout::MemoryFormat rows = layout::MemoryFormat::rowMajor(2);
    layout::ExchangePlace place{mesh, shape, from, to, {from, rows}, {to, rows}};
    if (place.findKind(4) != layout::ExchangeKind::Messages)
      return;
    ExchangeCosts costs(mesh, cluster, ExchangeEngine::Streams);
    std::optional<ExchangeCost> cost = costs.get(types[0], held, needed);
    ASSERT_TRUE(cost);

    layout::ExchangePlanner planner(mesh, shape, from, to);
    Beyond upTo = countBeyond(planner, mesh.numRanks(), 1);
    std::vector<LinkTraffic> traffic;
    for (const Link &link : cluster.getLinks()) {
      Beyond beyond = link.groupSize > 0 ? countBeyond(planner, mesh.numRanks(), link.groupSize) : Beyond();
      auto less = [](int64_t all, int64_t rest) { return static_cast<double>(std::max<int64_t>(all - rest, 0)); };
      traffic.push_back({4 * less(upTo.received, beyond.received), 4 * less(upTo.sent, beyond.sent),
                         less(upTo.sources, beyond.sources), less(upTo.targets, beyond.targets)});
      upTo = beyond;
    }
    EXPECT_DOUBLE_EQ(cost->seconds, getStreamSeconds(traffic, cluster.getLinks(), /*isCollective=*/false))
        << mesh.str() << " in groups of " << near << " and " << middle << "\nfrom " << from.str(mesh) << "\nto "
        << to.str(mesh);
    found += cost->seconds > 0;
    several += llvm::count_if(traffic, [](const LinkTraffic &own) { return own.receivedMessages > 0; }) > 1;
  });
  EXPECT_TRUE(testing::Test::HasFailure() || found > 500) << found << " by messages";
  EXPECT_TRUE(testing::Test::HasFailure() || several > 200) << several << " over several links";
}
