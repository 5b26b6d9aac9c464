//===- NearSizes.cpp - Sizes with which less is exchanged -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes programs with sizes near those that are asked for.
//
//===----------------------------------------------------------------------===//

#include "NearSizes.h"

#include "Expected.h"

#include "dovetail/tools/Support.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace dovetail;

/// Programs that are made at most.
static constexpr int kMaxTries = 4;

/// The extents of pieces between cuts.
static std::vector<int64_t> getSizes(ArrayRef<int64_t> cuts) {
  std::vector<int64_t> sizes;
  for (auto [begin, end] : llvm::zip(cuts, cuts.drop_front()))
    sizes.push_back(end - begin);
  return sizes;
}

std::vector<std::string> dovetail::findNearSizes(Compilation &unsplit, Compilation &lowered,
                                                 ArrayRef<DictionaryAttr> unalignedSizes) {
  const CompileOptions &options = lowered.getOptions();
  std::vector<std::string> found;
  Diagnostics quiet(llvm::nulls());
  FailureOr<PredictedRun> own = predictRun(lowered, *options.cluster, /*threads=*/1, quiet, /*estimatesMemory=*/false);
  std::vector<bool> isTried(options.sizes.size());
  int tries = 0;
  for (DictionaryAttr unaligned : unalignedSizes) {
    std::vector<int64_t> sizes = getSizes(unaligned.getAs<DenseI64ArrayAttr>("cuts"));
    size_t number = 0;
    while (number < isTried.size() && (isTried[number] || options.sizes[number].sizes != sizes))
      ++number;
    if (failed(own) || number == isTried.size())
      continue;
    isTried[number] = true;
    std::optional<PredictedRun> best;
    std::string option;
    for (auto cuts : unaligned.getAs<ArrayAttr>("alternatives").getAsRange<DenseI64ArrayAttr>()) {
      if (tries++ == kMaxTries)
        break;
      CompileOptions others = makeAside(unsplit.getOptions());
      SizesRequest &other = others.sizes[number];
      other.sizes = getSizes(cuts);
      std::string list = llvm::join(llvm::map_range(other.sizes, [](int64_t n) { return std::to_string(n); }), ",");
      std::string text = llvm::formatv("--sizes {0}:{1}={2}", other.tensor, other.dim, list).str();
      Compilation copy = unsplit.fork(std::move(others), quiet);
      std::optional<PredictedRun> run = tryProgram(copy, *options.cluster, /*estimatesMemory=*/false);
      if (!run || run->getReceivedBytes() >= (best ? *best : *own).getReceivedBytes())
        continue;
      best = std::move(run);
      option = std::move(text);
    }
    if (!best)
      continue;
    auto getBytes = [](const PredictedRun &run) { return tools::formatBytes(run.getReceivedBytes()); };
    auto getTime = [](const PredictedRun &run) { return formatSeconds(run.simulation.getSeconds()); };
    found.push_back("ranks receive " + getBytes(*own) + ", and " + getBytes(*best) + " with '" + option +
                    "' (predicted times " + getTime(*own) + " and " + getTime(*best) +
                    "): " + unaligned.getAs<StringAttr>("text").str());
  }
  return found;
}
