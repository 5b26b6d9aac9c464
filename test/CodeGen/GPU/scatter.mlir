// RUN: dovetail-opt %s --plan-generate-block-kernels | FileCheck %s

// All of the result is one line. Threads own an element of it each, goes through all updates, and write what they own.

// CHECK-LABEL: plan.kernel @line
// CHECK-SAME: blocks = #plan.blocks<threads = 256, loops = [0], steps = [1], tiles = 256, shared = 0>
plan.kernel @line(%data: tensor<20000xf32>, %indices: tensor<500x1xi64>, %updates: tensor<500xf32>)
    layouts [<[0], [20000]>, <[0, 1], [500, 1]>, <[0], [500]>] -> [<[0], [20000]>] attributes {static_loops = array<i64: 0>} {
  %0 = dovetail.scatter_nd %data, %indices, %updates {reduction = #dovetail.reduce_kind<sum>}
      : (tensor<20000xf32>, tensor<500x1xi64>, tensor<500xf32>) -> tensor<20000xf32>
  plan.yield %0 : tensor<20000xf32>
}

// Larger ones own several elements: 31 rows of a column, so that neighbouring threads have neighbours in memory. The
// dimension that no index names is not part of the line.

// CHECK-LABEL: plan.kernel @plane
// CHECK-SAME: loops = [0, 1], steps = [32, 1], tiles = 256
plan.kernel @plane(%data: tensor<1000x1000xf32>, %indices: tensor<500x2xi64>, %updates: tensor<500xf32>)
    layouts [<[0, 1], [1000, 1000]>, <[0, 1], [500, 2]>, <[0], [500]>] -> [<[0, 1], [1000, 1000]>] attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.scatter_nd %data, %indices, %updates : (tensor<1000x1000xf32>, tensor<500x2xi64>, tensor<500xf32>) -> tensor<1000x1000xf32>
  plan.yield %0 : tensor<1000x1000xf32>
}
