//===- ExchangeTraffic.h - What ranks send each other -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares TrafficCounter, which finds what ranks send each other in the exchanges of a program.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_COST_EXCHANGETRAFFIC_H
#define DOVETAIL_LIB_COST_EXCHANGETRAFFIC_H

#include "dovetail/Cost/PlanSteps.h"

#include <map>

namespace dovetail {

/// Finds the traffic of exchanges over one mesh and cluster, once for those of values that lie alike.
class TrafficCounter {
public:
  TrafficCounter(layout::Mesh mesh, const Cluster &cluster, ExchangeEngine engine)
      : mesh(std::move(mesh)), cluster(cluster), engine(engine) {}

  std::shared_ptr<const ExchangeTraffic> get(plan::ExchangeOp op);

private:
  void addMessages(plan::ExchangeOp op, ExchangeTraffic &traffic) const;
  void addCollective(plan::ExchangeOp op, ExchangeTraffic &traffic) const;

  layout::Mesh mesh;
  const Cluster &cluster;
  ExchangeEngine engine;
  std::map<std::vector<const void *>, std::shared_ptr<const ExchangeTraffic>> known;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_COST_EXCHANGETRAFFIC_H
