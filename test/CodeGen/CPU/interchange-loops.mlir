// RUN: dovetail-opt %s --split-input-file --plan-generate-cpu-kernels | FileCheck %s

// Samples of a region are a number that data say: where each lies, and what it weighs, is computed once for 64 channels,
// which follow each other in memory.

// CHECK-LABEL: func.func private @regions.body
// CHECK-DAG: %[[SUMS:.*]] = llvm.alloca %{{.*}} x f32
// CHECK: scf.for %[[FIRST:.*]] = %{{.*}} to %{{.*}} step %c64
// CHECK: scf.for
// CHECK: llvm.store
// CHECK: scf.for
// CHECK: math.floor
// CHECK: scf.for
// CHECK: math.floor
// CHECK: scf.for %{{.*}} = %c0 to %c64
// CHECK-NOT: math.floor
// CHECK: llvm.load
// CHECK: plan.load
// CHECK: llvm.store
// CHECK: scf.for
// CHECK: llvm.load
// CHECK: plan.store
plan.kernel @regions(%image: tensor<1x128x32x32xf32>, %rois: tensor<8x4xf32>, %batches: tensor<8xi64>) layouts [<[0, 2, 3, 1], [1, 128, 32, 32]>, <[0, 1], [8, 4]>, <[0], [8]>] -> [<[0, 2, 3, 1], [8, 128, 7, 7]>] attributes {static_loops = array<i64: 0, 1, 2, 3, 4, 5, 6>} {
  %0 = dovetail.roi_align %image, %rois, %batches {half_pixel, pooled = array<i64: 7, 7>, sampling_ratio = 0 : i64, spatial_scale = 1.0 : f32} : (tensor<1x128x32x32xf32>, tensor<8x4xf32>, tensor<8xi64>) -> tensor<8x128x7x7xf32>
  plan.yield %0 : tensor<8x128x7x7xf32>
}

// -----

// Of 100 channels the last 36 are a tile of their own.

// CHECK-LABEL: func.func private @rest.body
// CHECK: scf.for %{{.*}} = %{{.*}} to %c100 step %c64
// CHECK: scf.if
// CHECK: } else {
// CHECK: arith.subi %c100
plan.kernel @rest(%image: tensor<1x100x32x32xf32>, %rois: tensor<8x4xf32>, %batches: tensor<8xi64>) layouts [<[0, 2, 3, 1], [1, 100, 32, 32]>, <[0, 1], [8, 4]>, <[0], [8]>] -> [<[0, 2, 3, 1], [8, 100, 7, 7]>] attributes {static_loops = array<i64: 0, 1, 2, 3, 4, 5, 6>} {
  %0 = dovetail.roi_align %image, %rois, %batches {half_pixel, pooled = array<i64: 7, 7>, sampling_ratio = 0 : i64, spatial_scale = 1.0 : f32} : (tensor<1x100x32x32xf32>, tensor<8x4xf32>, tensor<8xi64>) -> tensor<8x100x7x7xf32>
  plan.yield %0 : tensor<8x100x7x7xf32>
}

// -----

// Where rows are neighbours, what they read is not: each goes through its samples by itself.

// CHECK-LABEL: func.func private @apart.body
// CHECK-NOT: llvm.alloca
// CHECK: return
plan.kernel @apart(%image: tensor<1x128x32x32xf32>, %rois: tensor<8x4xf32>, %batches: tensor<8xi64>) layouts [<[0, 1, 2, 3], [1, 128, 32, 32]>, <[0, 1], [8, 4]>, <[0], [8]>] -> [<[0, 1, 2, 3], [8, 128, 7, 7]>] attributes {static_loops = array<i64: 0, 1, 2, 3, 4, 5, 6>} {
  %0 = dovetail.roi_align %image, %rois, %batches {half_pixel, pooled = array<i64: 7, 7>, sampling_ratio = 0 : i64, spatial_scale = 1.0 : f32} : (tensor<1x128x32x32xf32>, tensor<8x4xf32>, tensor<8xi64>) -> tensor<8x128x7x7xf32>
  plan.yield %0 : tensor<8x128x7x7xf32>
}
