//===- RendezvousTree.cpp - Who has a connection with whom ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RendezvousTree.h"

#include <algorithm>

using namespace dovetail::runtime;

TreePlace dovetail::runtime::findPlace(int rank, int size) {
  TreePlace place{{0, size}, -1, {}};
  for (;;) {
    place.children.clear();
    int first = place.own.rank + 1, below = place.own.size() - 1, count = std::min(below, mostChildren);
    auto begin = [&](int child) { return first + static_cast<int>(static_cast<long>(below) * child / count); };
    for (int child = 0; child < count; ++child)
      place.children.push_back({begin(child), begin(child + 1)});
    if (place.own.rank == rank)
      return place;
    place.parent = place.own.rank;
    place.own = *std::find_if(place.children.begin(), place.children.end(),
                              [&](const Subtree &child) { return child.contains(rank); });
  }
}
