//===- LoopShardingsTest.cpp - Programs with stated loop shardings -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// However the loops of operations are split, windows that overlap included, the program computes what it does whole.
//
//===----------------------------------------------------------------------===//

#include "../Layout/Random.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Driver/Compare.h"
#include "dovetail/Driver/Compilation.h"
#include "dovetail/Driver/Execution.h"
#include "dovetail/Driver/Requests.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace dovetail;
using layout::Interval;
using layout::Random;

namespace {

/// Library calls of all kinds, with groups and epilogues, kernels, and what is decomposed.
const char *const network = R"onnx(
<ir_version: 8, opset_import: ["" : 18]>
network (float[1, 4, 12, 10] image, float[1, 1, 12, 1] column, float[6, 4, 3, 3] first, float[6, 4, 2, 2] up,
         float[4, 2, 3, 3] grouped, float[10, 7] factor, float[7] scale)
  => (float[1, 5, 12, 7] result, float[1, 6, 6, 5] pooled)
<int64[1] channels = {1}>
{
  a = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(image, first)
  b = Relu(a)
  pooled = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(b)
  c = ConvTranspose<kernel_shape = [2, 2], strides = [2, 2]>(pooled, up)
  d = Add(c, column)
  e = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1], group = 2>(d, grouped)
  f = Add(e, image)
  g = Softmax<axis = 3>(f)
  h = MatMul(g, factor)
  i = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(h)
  j = LayerNormalization<axis = -1>(i, scale)
  k = ReduceMean<keepdims = 1>(j, channels)
  result = Concat<axis = 1>(j, k)
}
)onnx";

/// Splits a loop at random: a reduction into cuts, another into windows that cover it.
DimShardingAttr split(Random &random, const Loop &loop, StringAttr axis, int parts) {
  std::vector<int64_t> cuts = random.cuts(loop.extent, parts);
  if (loop.kind == LoopKind::Reduction || random.chance(30))
    return DimShardingAttr::getCuts(axis, cuts);
  std::vector<Interval> windows;
  for (int i = 0; i < parts; ++i) {
    Interval piece{cuts[i], cuts[i + 1]};
    if (random.chance(80))
      piece = {std::max<int64_t>(0, piece.lo - random.below(3)), std::min(loop.extent, piece.hi + random.below(3))};
    windows.push_back(piece);
  }
  if (random.chance(20))
    random.shuffle(windows);
  return DimShardingAttr::getWindows(axis, windows);
}

/// States how the loops of most operations are split over the axes of `mesh`. Returns how many are in windows.
int stateLoops(func::FuncOp main, const layout::Mesh &mesh, Random &random) {
  MLIRContext *context = main.getContext();
  int numWindows = 0;
  main.walk([&](SplitOpInterface op) {
    if (random.chance(25))
      return;
    SmallVector<Loop> loops = op.getRelation().loops;
    SmallVector<DimShardingAttr> shardings(loops.size(), DimShardingAttr::getUnsplit(context));
    for (const layout::MeshAxis &axis : mesh.getAxes()) {
      int loop = random.below(static_cast<int>(loops.size()));
      if (shardings[loop].isSplit() || random.chance(20) ||
          (loops[loop].kind != LoopKind::Parallel && loops[loop].kind != LoopKind::Reduction) || !loops[loop].reduction)
        continue;
      shardings[loop] = split(random, loops[loop], StringAttr::get(context, axis.name), axis.size);
      numWindows += !shardings[loop].coversOnce(loops[loop].extent);
    }
    op.setLoopShardings(LoopShardingsAttr::get(context, FlatSymbolRefAttr::get(context, "mesh"), shardings));
  });
  return numWindows;
}

} // namespace

TEST(LoopShardings, AnyAreExact) {
  SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("network", "onnxtxt", path));
  llvm::scope_exit removal([&] { llvm::sys::fs::remove(path); });
  std::error_code error;
  llvm::raw_fd_ostream(path, error) << network;
  ASSERT_FALSE(error) << error.message();

  std::string messages;
  llvm::raw_string_ostream stream(messages);
  Diagnostics diagnostics(stream);
  std::unique_ptr<MLIRContext> context = createContext();
  Compilation unsplit(*context, {}, diagnostics);
  ASSERT_TRUE(succeeded(unsplit.import(path)) && succeeded(unsplit.runTo(Phase::Legalize))) << messages;
  auto run = [&](Compilation &compilation, int seed) -> FailureOr<std::vector<tools::NamedTensor>> {
    FailureOr<std::vector<std::byte>> artifact = compilation.serialize();
    if (failed(artifact))
      return failure();
    auto program = load(*artifact, "the program", diagnostics);
    if (failed(program))
      return failure();
    auto inputs = tools::readInputs((*program)->getPlan(), {}, /*randomDefault=*/true, seed);
    EXPECT_TRUE(inputs.ok()) << inputs.status();
    return execute(*program, *inputs, /*threads=*/1, "the program", diagnostics);
  };
  Compilation whole = unsplit.fork({});
  auto expected = run(whole, /*seed=*/1);
  ASSERT_TRUE(succeeded(expected)) << messages;

  int numWindows = 0;
  layout::forRandomCases(12, [&](Random &random) {
    CompileOptions options;
    options.libraries = random.chance(70);
    options.mesh = layout::Mesh(random.chance(50) ? std::vector<layout::MeshAxis>{{"y", 3}}
                                                  : std::vector<layout::MeshAxis>{{"y", 2}, {"x", 2}});
    if (random.chance(60))
      options.shards.push_back({"image", {{}, {}, {"y"}, {}}});
    Compilation partitioned = unsplit.fork(options);
    numWindows += stateLoops(getMain(partitioned.getModule()), options.mesh, random);
    auto actual = run(partitioned, /*seed=*/1);
    ASSERT_TRUE(succeeded(actual)) << messages;
    for (auto [a, e] : llvm::zip_equal(*actual, *expected)) {
      Difference difference = compare(a, e);
      EXPECT_EQ(difference.numDifferent, 0) << a.name << " is off by " << difference.largest;
    }
  });
  EXPECT_GT(numWindows, 12) << "hardly any windows were tried";
}
