// RUN: dovetail-opt %s --plan-generate-block-kernels | FileCheck %s

// A block computes 64 by 64 elements, and a thread 4 by 4 of them. 16 terms of both operands lie in shared memory at a time.

// CHECK-LABEL: plan.kernel @product
// CHECK-SAME: blocks = #plan.blocks<threads = 256, loops = [0, 1], steps = [64, 64], items = 1, shared = 8704>
plan.kernel @product(%a: tensor<200x100xf32>, %b: tensor<100x130xf32>) layouts [<[0, 1], [?, 100]>, <[0, 1], [100, 130]>] -> [<[0, 1], [?, 130]>]
    attributes {static_loops = array<i64: 1, 2>} {
  %0 = dovetail.matmul %a, %b : (tensor<200x100xf32>, tensor<100x130xf32>) -> tensor<200x130xf32>
  plan.yield %0 : tensor<200x130xf32>
}

// Batches are items. The second operand is the same for all of them, which makes no loop longer than the rows are.

// CHECK-LABEL: plan.kernel @batches
// CHECK-SAME: loops = [0, 1, 2, 3], steps = [1, 1, 64, 64], items = 1
plan.kernel @batches(%a: tensor<3x2x80x40xf16>, %b: tensor<2x40x64xf16>) layouts [<[0, 1, 2, 3], [3, 2, 80, 40]>, <[0, 1, 2], [2, 40, 64]>]
    -> [<[0, 1, 2, 3], [3, 2, 80, 64]>] attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.matmul %a, %b : (tensor<3x2x80x40xf16>, tensor<2x40x64xf16>) -> tensor<3x2x80x64xf16>
  plan.yield %0 : tensor<3x2x80x64xf16>
}

// A convolution of one tap is a product of channels; images and rows are items.

// CHECK-LABEL: plan.kernel @taps
// CHECK-SAME: loops = [0, 2, 3, 1], steps = [1, 1, 64, 64], items = 1
plan.kernel @taps(%x: tensor<1x64x40x50xf32>, %w: tensor<64x64x1x1xf32>)
    layouts [<[0, 2, 3, 1], [1, 64, ?, 50]>, <[0, 1, 2, 3], [64, 64, 1, 1]>] -> [<[0, 2, 3, 1], [1, 64, ?, 50]>]
    attributes {static_loops = array<i64: 0, 1, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, groups = 1 : i64}
      : (tensor<1x64x40x50xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x40x50xf32>
  plan.yield %0 : tensor<1x64x40x50xf32>
}

// With padding at the end it has elements that read nothing.

// CHECK-LABEL: plan.kernel @padded
// CHECK-SAME: steps = [1, 1, 1, 1]
plan.kernel @padded(%x: tensor<1x64x40x50xf32>, %w: tensor<64x64x1x1xf32>)
    layouts [<[0, 2, 3, 1], [1, 64, 40, 50]>, <[0, 1, 2, 3], [64, 64, 1, 1]>] -> [<[0, 2, 3, 1], [1, 64, 40, 53]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 3>, groups = 1 : i64}
      : (tensor<1x64x40x50xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x40x53xf32>
  plan.yield %0 : tensor<1x64x40x53xf32>
}

// A vector times a matrix fills no tile: 32 columns for a block instead.

// CHECK-LABEL: plan.kernel @vector
// CHECK-SAME: items = 32
plan.kernel @vector(%a: tensor<1x900xf32>, %b: tensor<900x130xf32>) layouts [<[0, 1], [1, 900]>, <[0, 1], [900, 130]>] -> [<[0, 1], [1, 130]>]
    attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.matmul %a, %b : (tensor<1x900xf32>, tensor<900x130xf32>) -> tensor<1x130xf32>
  plan.yield %0 : tensor<1x130xf32>
}

// A term of a larger convolution reads many elements of its operands.

// CHECK-LABEL: plan.kernel @convolution
// CHECK-SAME: steps = [1, 1, 1, 1]
plan.kernel @convolution(%x: tensor<1x64x40x40xf32>, %w: tensor<64x64x3x3xf32>)
    layouts [<[0, 2, 3, 1], [1, 64, 40, 40]>, <[0, 1, 2, 3], [64, 64, 3, 3]>] -> [<[0, 2, 3, 1], [1, 64, 38, 38]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, groups = 1 : i64}
      : (tensor<1x64x40x40xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x38x38xf32>
  plan.yield %0 : tensor<1x64x38x38xf32>
}

// CHECK: gpu.func @product(%[[A:.*]]: !llvm.ptr {llvm.noalias}, %[[B:.*]]: !llvm.ptr {llvm.noalias}, %[[C:.*]]: !llvm.ptr {llvm.noalias}, %arg3
// CHECK: scf.for %{{.*}} : i32 {
// CHECK: scf.for %{{.*}} = %c0 to %c7 step %c1 iter_args
// CHECK-NEXT: gpu.barrier
// Neighbouring threads read neighbouring terms of the first operand, in 68 words from one another.
// CHECK: scf.for %{{.*}} = %c0 to %c4
// CHECK: %[[TERM:.*]] = arith.remui %{{.*}}, %c16
// CHECK: %[[ROW:.*]] = arith.divui %{{.*}}, %c16
// CHECK: %[[IS_TERM:.*]] = arith.cmpi slt, %{{.*}}, %c100
// CHECK: %[[READ:.*]] = plan.load %[[A]]
// CHECK: %[[VALUE:.*]] = arith.select %[[IS_TERM]], %[[READ]], %cst
// CHECK: %[[PLACE:.*]] = arith.muli %[[TERM]], %c68
// CHECK: arith.addi %[[PLACE]], %[[ROW]]
// CHECK: llvm.store %[[VALUE]], %{{.*}} !llvm.ptr<3>
// Of the second one, they read neighbouring columns, to neighbouring words.
// CHECK: scf.for %{{.*}} = %c0 to %c4
// CHECK: %[[COLUMN:.*]] = arith.remui %{{.*}}, %c64
// CHECK: %[[TERM:.*]] = arith.divui %{{.*}}, %c64
// CHECK: plan.load %[[B]]
// CHECK: %[[PLACE:.*]] = arith.muli %[[TERM]], %c68
// CHECK: arith.addi %[[PLACE]], %[[COLUMN]]
// CHECK: llvm.store %{{.*}} !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c16 step %c1 iter_args
// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-NOT: llvm.load
// CHECK-COUNT-16: arith.mulf
// CHECK: scf.yield
// CHECK-COUNT-16: plan.store %{{.*}}, %[[C]]
// CHECK-NOT: plan.store
// CHECK: gpu.return
