// RUN: dovetail-opt %s --plan-generate-cpu-kernels | FileCheck %s

// Weights of 4 bits are computed a panel of 8 terms by 64 columns at a time, which all rows of a block then use, 4 of them
// together. Threads divide columns: rows would compute the weights anew.

// CHECK-LABEL: plan.kernel @packed
// CHECK-SAME: parallel_loop = 1
plan.kernel @packed(%x: tensor<200x256xf32>, %c: tensor<128x512xui8>) layouts [<[0, 1], [200, 256]>, <[0, 1], [128, 512]>]
    -> [<[0, 1], [200, 512]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %u = dovetail.unpack %c {dim = 0 : i64} : (tensor<128x512xui8>) -> tensor<256x512xi4>
  %i = dovetail.widen %u : (tensor<256x512xi4>) -> tensor<256x512xi8>
  %w = dovetail.cast %i {to = f32} : (tensor<256x512xi8>) -> tensor<256x512xf32>
  %0 = dovetail.matmul %x, %w : (tensor<200x256xf32>, tensor<256x512xf32>) -> tensor<200x512xf32>
  plan.yield %0 : tensor<200x512xf32>
}

// A row by itself reads its weights once, as they stream from memory: eight terms at a time, along a long row.

// CHECK-LABEL: plan.kernel @row
plan.kernel @row(%x: tensor<1x256xf32>, %c: tensor<128x2048xui8>) layouts [<[0, 1], [1, 256]>, <[0, 1], [128, 2048]>]
    -> [<[0, 1], [1, 2048]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %u = dovetail.unpack %c {dim = 0 : i64} : (tensor<128x2048xui8>) -> tensor<256x2048xi4>
  %i = dovetail.widen %u : (tensor<256x2048xi4>) -> tensor<256x2048xi8>
  %w = dovetail.cast %i {to = f32} : (tensor<256x2048xi8>) -> tensor<256x2048xf32>
  %0 = dovetail.matmul %x, %w : (tensor<1x256xf32>, tensor<256x2048xf32>) -> tensor<1x2048xf32>
  plan.yield %0 : tensor<1x2048xf32>
}

// What is in memory needs no panel.

// CHECK-LABEL: plan.kernel @plain
// CHECK-SAME: parallel_loop = 0
plan.kernel @plain(%x: tensor<100x256xf32>, %w: tensor<256x512xf32>) layouts [<[0, 1], [100, 256]>, <[0, 1], [256, 512]>]
    -> [<[0, 1], [100, 512]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.matmul %x, %w : (tensor<100x256xf32>, tensor<256x512xf32>) -> tensor<100x512xf32>
  plan.yield %0 : tensor<100x512xf32>
}

// CHECK-LABEL: func.func private @packed.body
// CHECK-DAG: %[[SIZE:.*]] = llvm.mlir.constant(8192 : i64)
// CHECK-DAG: llvm.alloca %[[SIZE]] x f32
// CHECK-DAG: %[[PANEL:.*]] = llvm.mlir.constant(512 : i64)
// CHECK-DAG: llvm.alloca %[[PANEL]] x f32
// CHECK: scf.for %{{.*}} step %c64
// CHECK: scf.for %[[FIRST:.*]] = %c0{{.*}} to %c200{{.*}} step %c128
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c256{{.*}} step %c8
// What comes two panels later is asked for; then the panel: eight terms of each column.
// CHECK-COUNT-8: llvm.intr.prefetch
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c64{{.*}} step %c1
// CHECK-COUNT-8: arith.sitofp
// CHECK-NOT: arith.sitofp
// Four rows by four terms, twice.
// CHECK: scf.for %{{.*}} step %c4
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c64{{.*}} step %c1
// CHECK-COUNT-16: arith.mulf
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c64{{.*}} step %c1
// CHECK-COUNT-16: arith.mulf
// CHECK-NOT: arith.sitofp
// CHECK: plan.store
// CHECK: return

// CHECK-LABEL: func.func private @row.body
// CHECK: llvm.mlir.constant(1024 : i64)
// CHECK: scf.for %{{.*}} step %c8
// CHECK: scf.for
// CHECK-COUNT-8: arith.sitofp
// CHECK: return

// CHECK-LABEL: func.func private @plain.body
// CHECK-NOT: llvm.mlir.constant(8192 : i64)
// CHECK: return
