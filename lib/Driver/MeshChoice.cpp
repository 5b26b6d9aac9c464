//===- MeshChoice.cpp - Axes of the mesh that the compiler makes ----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tries meshes on copies of a compilation.
//
//===----------------------------------------------------------------------===//

#include "MeshChoice.h"

#include "Expected.h"

#include "dovetail/Driver/Pipeline.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace dovetail;
using llvm::FailureOr;
using llvm::SmallVector;

/// Meshes of three axes are tried for so many ranks at most.
static constexpr int64_t kMaxRanksOfThreeAxes = 32;

/// All ways to write `number` as a product of one to `most` factors of at least 2.
static void addFactors(int64_t number, size_t most, SmallVector<int64_t> factors,
                       std::vector<SmallVector<int64_t>> &found) {
  if (number == 1) {
    found.push_back(std::move(factors));
    return;
  }
  if (factors.size() == most)
    return;
  for (int64_t factor = 2; factor <= number; ++factor)
    if (number % factor == 0) {
      factors.push_back(factor);
      addFactors(number / factor, most, factors, found);
      factors.pop_back();
    }
}

static layout::Mesh makeMesh(llvm::ArrayRef<int64_t> factors) {
  std::vector<layout::MeshAxis> axes;
  for (auto [number, factor] : llvm::enumerate(factors))
    axes.push_back({std::string(1, static_cast<char>('a' + number)), static_cast<int>(factor)});
  if (axes.empty())
    axes.push_back({"a", 1});
  return layout::Mesh(std::move(axes));
}

FailureOr<layout::Mesh> dovetail::chooseMesh(Compilation &compilation, Diagnostics &diagnostics) {
  CompileOptions options = compilation.getOptions();
  int64_t ranks = *options.autoRanks;
  std::vector<SmallVector<int64_t>> all;
  addFactors(ranks, ranks <= kMaxRanksOfThreeAxes ? 3 : 2, {}, all);
  // Where memory is limited, those come first on which that is expected to suffice.
  double limit = std::numeric_limits<double>::infinity();
  if (!options.memory.empty()) {
    limit = *llvm::min_element(options.memory);
    options.searchMemory = limit;
  }
  // Of meshes that are as good, the simplest.
  llvm::sort(all, [](const auto &a, const auto &b) { return std::tuple(a.size(), a) < std::tuple(b.size(), b); });
  std::pair<double, double> least;
  std::optional<layout::Mesh> best;
  std::string alternatives;
  for (llvm::ArrayRef<int64_t> factors : all) {
    options.mesh = makeMesh(factors);
    std::optional<Expected> expected = tryOptions(compilation, options);
    if (!expected)
      continue;
    std::pair cost(std::max(expected->memory - limit, 0.0), expected->get(options.objective));
    alternatives += (alternatives.empty() ? "" : "; ") + formatMesh(options.mesh) + " " +
                    llvm::formatv("{0:f3} ms, {1}", expected->seconds * 1e3,
                                  tools::formatBytes(static_cast<int64_t>(expected->bytes)))
                        .str();
    if (best && cost >= least)
      continue;
    least = cost;
    best = options.mesh;
  }
  // What is wrong is said when the phase runs.
  if (!best)
    return makeMesh({ranks});
  diagnostics.remark("the mesh is " + formatMesh(*best) + "; expected with others: " + alternatives);
  return *std::move(best);
}
