// RUN: dovetail-opt %s --plan-generate-block-kernels=warp-threads=64 | FileCheck %s
// RUN: dovetail-opt %s --plan-generate-block-kernels='warp-threads=64 block-threads=512 access-bytes=8' | FileCheck %s --check-prefix=LARGE

// Kernels are divided among the threads of the device that is described: a row for each warp of 64.

// CHECK-LABEL: plan.kernel @sum
// CHECK-SAME: blocks = #plan.blocks<threads = 256, loops = [0, 1], steps = [1, 1], tiles = 4, shared = 0>
// LARGE-LABEL: plan.kernel @sum
// LARGE-SAME: blocks = #plan.blocks<threads = 512, loops = [0, 1], steps = [1, 1], tiles = 8, shared = 0>
plan.kernel @sum(%x: tensor<300x600xf32>) layouts [<[0, 1], [300, 600]>] -> [<[0, 1], [300, 1]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<300x600xf32>) -> tensor<300x1xf32>
  plan.yield %0 : tensor<300x1xf32>
}

// Neighbours in memory are neighbouring results: as many columns as a warp has threads.

// CHECK-LABEL: plan.kernel @columns
// CHECK-SAME: loops = [0, 1], steps = [1, 1], tiles = 64, shared = 1024
// LARGE-LABEL: plan.kernel @columns
// LARGE-SAME: loops = [0, 1], steps = [1, 1], tiles = 64, shared = 2048
plan.kernel @columns(%x: tensor<600x300xf32>) layouts [<[0, 1], [600, 300]>] -> [<[0, 1], [1, 300]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.reduce %x {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>} : (tensor<600x300xf32>) -> tensor<1x300xf32>
  plan.yield %0 : tensor<1x300xf32>
}

// CHECK-LABEL: plan.kernel @double
// CHECK-SAME: loops = [0, 1], steps = [1, 4], tiles = 256
// LARGE-LABEL: plan.kernel @double
// LARGE-SAME: loops = [0, 1], steps = [1, 2], tiles = 512
plan.kernel @double(%x: tensor<300x600xf32>) layouts [<[0, 1], [300, 600]>] -> [<[0, 1], [300, 600]>] attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.add %x, %x : (tensor<300x600xf32>, tensor<300x600xf32>) -> tensor<300x600xf32>
  plan.yield %0 : tensor<300x600xf32>
}

// CHECK: gpu.func @sum
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK: %[[WARP:.*]] = arith.constant 64 : index
// CHECK: arith.remui %{{.*}}, %[[WARP]] : index
// CHECK: gpu.shuffle xor %{{.*}}, %c32_i32, %c64_i32
// CHECK: gpu.shuffle xor %{{.*}}, %c16_i32, %c64_i32
// CHECK: gpu.shuffle xor %{{.*}}, %c1_i32, %c64_i32
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.return
