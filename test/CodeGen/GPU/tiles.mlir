// RUN: dovetail-opt %s --plan-generate-block-kernels | FileCheck %s

// A block reads 32 neighbours of each of 32 rows, and writes 32 neighbours of each of 32 columns.

// CHECK-LABEL: plan.kernel @transpose
// CHECK-SAME: blocks = #plan.blocks<threads = 256, loops = [0, 1, 2], steps = [1, 32, 32], tiles = 1, shared = 4224>
plan.kernel @transpose(%x: tensor<3x70x96xf32>) layouts [<[0, 1, 2], [3, ?, 96]>] -> [<[0, 1, 2], [3, 96, ?]>] attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<3x70x96xf32>) -> tensor<3x96x70xf32>
  plan.yield %0 : tensor<3x96x70xf32>
}

// From channels last to rows, with elements of two bytes: %x and %y are added before they pass through the tile.

// CHECK-LABEL: plan.kernel @format
// CHECK-SAME: loops = [0, 2, 1, 3], steps = [1, 1, 32, 32], tiles = 1, shared = 2112>
plan.kernel @format(%x: tensor<1x64x50x40xf16>, %y: tensor<1x64x50x40xf16>)
    layouts [<[0, 2, 3, 1], [1, 64, 50, 40]>, <[0, 2, 3, 1], [1, 64, 50, 40]>] -> [<[0, 1, 2, 3], [1, 64, 50, 40]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3>} {
  %0 = dovetail.add %x, %y : (tensor<1x64x50x40xf16>, tensor<1x64x50x40xf16>) -> tensor<1x64x50x40xf16>
  plan.yield %0 : tensor<1x64x50x40xf16>
}

// %y is written as it is read: only %x passes through the tile.

// CHECK-LABEL: plan.kernel @mixed
// CHECK-SAME: steps = [32, 32], tiles = 1, shared = 8448>
plan.kernel @mixed(%x: tensor<64x96xf64>, %y: tensor<96x64xf64>) layouts [<[0, 1], [64, 96]>, <[0, 1], [96, 64]>] -> [<[0, 1], [96, 64]>]
    attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.transpose %x {permutation = array<i64: 1, 0>} : (tensor<64x96xf64>) -> tensor<96x64xf64>
  %1 = dovetail.mul %0, %y : (tensor<96x64xf64>, tensor<96x64xf64>) -> tensor<96x64xf64>
  plan.yield %1 : tensor<96x64xf64>
}

// The innermost dimension stays innermost.

// CHECK-LABEL: plan.kernel @outer
// CHECK-SAME: steps = [1, 1, 4], tiles = 256, shared = 0>
plan.kernel @outer(%x: tensor<32x70x96xf32>) layouts [<[0, 1, 2], [32, 70, 96]>] -> [<[0, 1, 2], [70, 32, 96]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<32x70x96xf32>) -> tensor<70x32x96xf32>
  plan.yield %0 : tensor<70x32x96xf32>
}

// Three columns would leave a tile empty.

// CHECK-LABEL: plan.kernel @narrow
// CHECK-SAME: tiles = 256, shared = 0>
plan.kernel @narrow(%x: tensor<3x9600xf32>) layouts [<[0, 1], [3, 9600]>] -> [<[0, 1], [9600, 3]>] attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.transpose %x {permutation = array<i64: 1, 0>} : (tensor<3x9600xf32>) -> tensor<9600x3xf32>
  plan.yield %0 : tensor<9600x3xf32>
}

// A small tensor that is read across stays in caches.

// CHECK-LABEL: plan.kernel @small
// CHECK-SAME: tiles = 256, shared = 0>
plan.kernel @small(%x: tensor<20x64x32xf32>, %s: tensor<32x64xf32>) layouts [<[0, 1, 2], [20, 64, 32]>, <[0, 1], [32, 64]>] -> [<[0, 1, 2], [20, 64, 32]>]
    attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.transpose %s {permutation = array<i64: 1, 0>} : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %1 = dovetail.mul %x, %0 : (tensor<20x64x32xf32>, tensor<64x32xf32>) -> tensor<20x64x32xf32>
  plan.yield %1 : tensor<20x64x32xf32>
}

// CHECK: gpu.func @transpose(%[[X:.*]]: !llvm.ptr {llvm.noalias}, %[[Y:.*]]: !llvm.ptr {llvm.noalias}, %arg2
// CHECK-DAG: %[[ROW:.*]] = arith.divui %{{.*}}, %c32
// CHECK-DAG: %[[IN_ROW:.*]] = arith.remui %{{.*}}, %c32
// A row has 33 places: neighbouring threads that read a column find it in 32 banks.
// CHECK: %[[COLUMN:.*]] = arith.muli %[[IN_ROW]], %c33
// CHECK: scf.for
// CHECK: %[[READ:.*]] = arith.addi %{{.*}}, %[[IN_ROW]]
// CHECK: scf.for %[[I:.*]] = %c0 to %c4 step %c1 {
// CHECK: %[[I8:.*]] = arith.muli %[[I]], %c8
// CHECK: %[[ACROSS:.*]] = arith.addi %[[ROW]], %[[I8]]
// The border of a run-time extent is that of the rank.
// CHECK: arith.minsi
// CHECK: %[[FROM:.*]] = arith.addi %{{.*}}, %[[READ]]
// CHECK: %[[VALUE:.*]] = plan.load %[[X]][%[[FROM]]]
// CHECK: %[[PLACE_ROW:.*]] = arith.muli %[[ACROSS]], %c33
// CHECK: %[[PLACE:.*]] = arith.addi %[[PLACE_ROW]], %[[IN_ROW]]
// CHECK: arith.index_cast %[[PLACE]]
// CHECK: llvm.store %[[VALUE]], %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: scf.for %[[I:.*]] = %c0 to %c4 step %c1 {
// CHECK: %[[I8:.*]] = arith.muli %[[I]], %c8
// CHECK: %[[ACROSS:.*]] = arith.addi %[[ROW]], %[[I8]]
// CHECK: %[[PLACE:.*]] = arith.addi %[[COLUMN]], %[[ACROSS]]
// CHECK: arith.index_cast %[[PLACE]]
// CHECK: %[[VALUE:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK: scf.if
// CHECK-NEXT: plan.store %[[VALUE]], %[[Y]]
// CHECK: gpu.barrier

// CHECK: gpu.func @format(
// CHECK: plan.load
// CHECK: plan.load
// CHECK: arith.addf
// CHECK: llvm.store %{{.*}} : f16, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK-NOT: plan.load
// CHECK: plan.store

// CHECK: gpu.func @mixed(%[[X:.*]]: !llvm.ptr {llvm.noalias}, %[[Y:.*]]: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}
// CHECK: plan.load %[[X]]
// CHECK: llvm.store
// CHECK: gpu.barrier
// CHECK: llvm.load
// CHECK: plan.load %[[Y]]
// CHECK: arith.mulf
// CHECK: plan.store
