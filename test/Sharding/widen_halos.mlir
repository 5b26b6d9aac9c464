// RUN: dovetail-opt %s --dovetail-widen-halos=always --dovetail-merge-reshards --dovetail-verify-partition --split-input-file 2>/dev/null | FileCheck %s
// RUN: dovetail-opt %s --dovetail-widen-halos=seed=3 --dovetail-merge-reshards --dovetail-verify-partition --split-input-file 2>/dev/null | FileCheck %s --check-prefix=RANDOM
// RUN: dovetail-opt %s --dovetail-widen-halos --dovetail-merge-reshards --dovetail-verify-partition --split-input-file 2>/dev/null | FileCheck %s --check-prefix=TIME
// RUN: dovetail-opt %s --dovetail-widen-halos="cluster=h100 engine=streams" --dovetail-merge-reshards --dovetail-verify-partition --split-input-file 2>/dev/null | FileCheck %s --check-prefix=GPU
// RUN: dovetail-opt %s --dovetail-widen-halos=objective=bytes --dovetail-merge-reshards --dovetail-verify-partition --split-input-file 2>/dev/null | FileCheck %s --check-prefix=BYTES
// RUN: dovetail-opt %s --dovetail-widen-halos=objective=memory --dovetail-merge-reshards --dovetail-verify-partition --split-input-file 2>/dev/null | FileCheck %s --check-prefix=MEMORY
// RUN: dovetail-opt %s --dovetail-widen-halos --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// One exchange, three rows deep, in place of three of one. A rank that has nothing to compute has nothing to exchange.

dovetail.mesh @mesh = ["y" = 3]
!cut2 = tensor<1x2x24x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 12, 12, 24}, {}]>>
!halo2 = tensor<1x2x24x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 13), (13, 13), (11, 24)}, {}]>>

// CHECK-LABEL: func.func @chain
// CHECK: %[[HALO:.*]] = dovetail.reshard %arg0 {{.*}} {"y" : (0, 15), (15, 15), (9, 24)}, {}]>>
// CHECK: dovetail.conv %[[HALO]]
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : (0, 14), (12, 12), (10, 24)}, {}, {}]>
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.relu {{.*}} {"y" : (0, 14), (12, 12), (10, 24)}
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.conv {{.*}} {"y" : (0, 13), (12, 12), (11, 24)}
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.conv {{.*}} {"y" : 0, 12, 12, 24}
// CHECK-NOT: dovetail.reshard
// CHECK: return
// MEMORY-LABEL: func.func @chain
// MEMORY-COUNT-3: dovetail.reshard
// RANDOM-LABEL: func.func @chain
// RANDOM: {"y" : (0, {{[0-9]+}}), ({{[0-9]+}}, {{[0-9]+}}), ({{[0-9]+}}, 24)}
// REMARK: remark: several ranks compute the halos of 3 operations, which is expected to take {{[0-9]+}} ns more; ranks exchange halos 1 times in place of 3, 192 bytes in place of 192 bytes, 16.0 us in place of 48.0 us
// REMARK: remark: is computed by several ranks where their parts meet, which is expected to take {{[0-9]+}} ns more
func.func @chain(%arg0: !cut2, %arg1: tensor<2x2x3x1xf32>) -> !cut2 {
  %0 = dovetail.reshard %arg0 : !cut2 -> !halo2
  %1 = dovetail.conv %0, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 12, 24}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo2, tensor<2x2x3x1xf32>) -> !cut2
  %2 = dovetail.relu %1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 12, 24}, {}]>} : (!cut2) -> !cut2
  %3 = dovetail.reshard %2 : !cut2 -> !halo2
  %4 = dovetail.conv %3, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 12, 24}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo2, tensor<2x2x3x1xf32>) -> !cut2
  %5 = dovetail.reshard %4 : !cut2 -> !halo2
  %6 = dovetail.conv %5, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 12, 24}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo2, tensor<2x2x3x1xf32>) -> !cut2
  return %6 : !cut2
}

// -----

// A window of five rows with gaps, every second row of a window of three, and what is spread over twice as many rows.

dovetail.mesh @mesh = ["y" = 2]
!cut1 = tensor<1x1x32x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 16, 32}, {}]>>
!cut1_2 = tensor<1x1x16x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 8, 16}, {}]>>
!halo1 = tensor<1x1x32x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 18), (14, 32)}, {}]>>
!halo1_2 = tensor<1x1x32x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 16), (15, 32)}, {}]>>

// CHECK-LABEL: func.func @strides
// CHECK: dovetail.reshard %arg0 {{.*}} {"y" : (0, 18), (13, 32)}, {}]>>
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.conv {{.*}} {"y" : (0, 16), (15, 32)}
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.conv {{.*}} {"y" : 0, 8, 16}
// CHECK-NOT: dovetail.reshard
// CHECK: return
func.func @strides(%arg0: !cut1, %arg1: tensor<1x1x3x1xf32>) -> !cut1_2 {
  %0 = dovetail.reshard %arg0 : !cut1 -> !halo1
  %1 = dovetail.conv %0, %arg1 {dilations = array<i64: 2, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 16, 32}, {}, {}]>, pads_high = array<i64: 2, 0>, pads_low = array<i64: 2, 0>, strides = array<i64: 1, 1>} : (!halo1, tensor<1x1x3x1xf32>) -> !cut1
  %2 = dovetail.reshard %1 : !cut1 -> !halo1_2
  %3 = dovetail.conv %2, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 8, 16}, {}, {}]>, pads_high = array<i64: 0, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 2, 1>} : (!halo1_2, tensor<1x1x3x1xf32>) -> !cut1_2
  return %3 : !cut1_2
}

// -----

// The sum needs what is convolved, too: both get one halo. What the function returns of it is what its type says.

dovetail.mesh @mesh = ["y" = 2]
!cut2 = tensor<1x2x24x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>>
!halo2 = tensor<1x2x24x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}, {}]>>

// CHECK-LABEL: func.func @residual
// CHECK: %[[HALO:.*]] = dovetail.reshard %arg0 {{.*}} {"y" : (0, 15), (9, 24)}, {}]>>
// CHECK: %[[FIRST:.*]] = dovetail.conv %[[HALO]]{{.*}} {"y" : (0, 14), (10, 24)}
// CHECK: %[[SECOND:.*]] = dovetail.conv %[[FIRST]]{{.*}} {"y" : (0, 13), (11, 24)}
// CHECK: %[[SUM:.*]] = dovetail.add %[[SECOND]], %[[HALO]]{{.*}} {"y" : (0, 13), (11, 24)}
// CHECK: %[[THIRD:.*]] = dovetail.conv %[[SUM]]{{.*}} {"y" : 0, 12, 24}
// CHECK: %[[CUT:.*]] = dovetail.reshard %[[SUM]] {{.*}} {"y" : 0, 12, 24}, {}]>>
// CHECK: return %[[CUT]], %[[THIRD]]
func.func @residual(%arg0: !cut2, %arg1: tensor<2x2x3x1xf32>) -> (!cut2, !cut2) {
  %0 = dovetail.reshard %arg0 : !cut2 -> !halo2
  %1 = dovetail.conv %0, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo2, tensor<2x2x3x1xf32>) -> !cut2
  %2 = dovetail.reshard %1 : !cut2 -> !halo2
  %3 = dovetail.conv %2, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo2, tensor<2x2x3x1xf32>) -> !cut2
  %4 = dovetail.add %3, %arg0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>} : (!cut2, !cut2) -> !cut2
  %5 = dovetail.reshard %4 : !cut2 -> !halo2
  %6 = dovetail.conv %5, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo2, tensor<2x2x3x1xf32>) -> !cut2
  return %4, %6 : !cut2, !cut2
}

// -----

// Of a constant ranks have what they compute with.

dovetail.mesh @mesh = ["y" = 2]
!cut2 = tensor<1x2x8x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>>
!halo2 = tensor<1x2x8x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 8)}, {}]>>
!cut1 = tensor<1x1x8x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>>

// CHECK-LABEL: func.func @constant
// CHECK: %[[PART:.*]] = dovetail.reshard %{{.*}} : tensor<1x1x8x1xf32> -> tensor<1x1x8x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 8)}, {}]>>
// CHECK: dovetail.mul %{{.*}}, %[[PART]]
func.func @constant(%arg0: !cut2, %arg1: tensor<2x2x3x1xf32>) -> !cut2 {
  %0 = dovetail.constant dense<[[[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]]]]> : tensor<1x1x8x1xf32>
  %1 = dovetail.reshard %arg0 : !cut2 -> !halo2
  %2 = dovetail.conv %1, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo2, tensor<2x2x3x1xf32>) -> !cut2
  %3 = dovetail.reshard %0 : tensor<1x1x8x1xf32> -> !cut1
  %4 = dovetail.mul %2, %3 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>} : (!cut2, !cut1) -> !cut2
  %5 = dovetail.reshard %4 : !cut2 -> !halo2
  %6 = dovetail.conv %5, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo2, tensor<2x2x3x1xf32>) -> !cut2
  return %6 : !cut2
}

// -----

// What accumulates along another dimension than that which is split may be computed twice, but not across cuts.

dovetail.mesh @mesh = ["y" = 2]
!cut2 = tensor<1x2x24x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>>
!halo2 = tensor<1x2x24x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}, {}]>>
!cut2_2 = tensor<1x2x2x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 1, 2}, {}]>>
!cut2_3 = tensor<1x2x2x4xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 2}, {}, {}]>>

// CHECK-LABEL: func.func @scans
// CHECK: dovetail.reshard %arg0 {{.*}} {"y" : (0, 14), (10, 24)}, {}]>>
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.scan {{.*}} {"y" : (0, 13), (11, 24)}, {}]>
// CHECK-NEXT: dovetail.conv {{.*}} {"y" : 0, 12, 24}
// CHECK: %[[PARTS:.*]] = dovetail.scan {{.*}} restarts
// CHECK-SAME: {"y" : 0, 12, 24}
// CHECK-NEXT: %[[HALO:.*]] = dovetail.reshard %[[PARTS]]
// CHECK-NEXT: dovetail.conv %[[HALO]]
func.func @scans(%arg0: !cut2, %arg1: tensor<2x2x3x1xf32>) -> !cut2 {
  %0 = dovetail.reshard %arg0 : !cut2 -> !halo2
  %1 = dovetail.conv %0, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo2, tensor<2x2x3x1xf32>) -> !cut2
  %2 = dovetail.scan %1 {axis = 3 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>, kind = #dovetail.reduce_kind<sum>} : (!cut2) -> !cut2
  %3 = dovetail.reshard %2 : !cut2 -> !halo2
  %4 = dovetail.conv %3, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo2, tensor<2x2x3x1xf32>) -> !cut2
  %5 = dovetail.reduce_parts %4 {axis = 2 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 1, 2}, {}, {}]>, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 12>} : (!cut2) -> !cut2_2
  %6 = dovetail.reshard %5 : !cut2_2 -> !cut2_3
  %7 = dovetail.scan %6 {axis = 2 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 1, 2}, {}, {}]>, exclusive, kind = #dovetail.reduce_kind<sum>} : (!cut2_3) -> !cut2_3
  %8 = dovetail.reshard %7 : !cut2_3 -> tensor<1x2x2x4xf32>
  %9 = dovetail.scan %4, %8 {axis = 2 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 12>} : (!cut2, tensor<1x2x2x4xf32>) -> !cut2
  %10 = dovetail.reshard %9 : !cut2 -> !halo2
  %11 = dovetail.conv %10, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo2, tensor<2x2x3x1xf32>) -> !cut2
  return %11 : !cut2
}

// -----

// Sums that are partial are exchanged as they are.

dovetail.mesh @mesh = ["y" = 2]
!cut2 = tensor<1x2x24x4xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 2}, {}, {}]>>
!cut2_2 = tensor<2x2x3x1xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 2}, {}, {}]>>
!partial2 = tensor<1x2x24x4xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}], partial = sum ["y"]>>

// CHECK-LABEL: func.func @partial
// CHECK: dovetail.conv {{.*}} partial = sum ["y"]
// CHECK: dovetail.reshard {{.*}} partial = sum ["y"]
// CHECK: dovetail.conv
func.func @partial(%arg0: !cut2, %arg1: !cut2_2) -> tensor<1x2x24x4xf32> {
  %0 = dovetail.conv %arg0, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {}, {}, {"y" : 0, 1, 2}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!cut2, !cut2_2) -> !partial2
  %1 = dovetail.reshard %0 : !partial2 -> !cut2
  %2 = dovetail.conv %1, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {}, {}, {"y" : 0, 1, 2}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!cut2, !cut2_2) -> !partial2
  %3 = dovetail.reshard %2 : !partial2 -> tensor<1x2x24x4xf32>
  return %3 : tensor<1x2x24x4xf32>
}

// -----

// A row takes a core of a CPU longer than an exchange, a GPU not.

dovetail.mesh @mesh = ["y" = 2]
!cut128 = tensor<1x128x64x128xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 32, 64}, {}]>>
!halo128 = tensor<1x128x64x128xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 33), (31, 64)}, {}]>>

// TIME-LABEL: func.func @heavy
// TIME-COUNT-2: dovetail.reshard
// GPU-LABEL: func.func @heavy
// GPU: dovetail.reshard
// GPU-NOT: dovetail.reshard
// GPU: return
func.func @heavy(%arg0: !cut128, %arg1: tensor<128x128x3x1xf32>) -> !cut128 {
  %0 = dovetail.reshard %arg0 : !cut128 -> !halo128
  %1 = dovetail.conv %0, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 32, 64}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo128, tensor<128x128x3x1xf32>) -> !cut128
  %2 = dovetail.reshard %1 : !cut128 -> !halo128
  %3 = dovetail.conv %2, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 32, 64}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo128, tensor<128x128x3x1xf32>) -> !cut128
  return %3 : !cut128
}

// -----

// Two rows of one channel are less than one of one and one of eight. What ranks have to do stays even, or no less even
// than the cuts that were there.

dovetail.mesh @mesh = ["y" = 2]
!cut1 = tensor<1x1x64x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 32, 64}, {}]>>
!cut8 = tensor<1x8x64x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 32, 64}, {}]>>
!halo1 = tensor<1x1x64x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 33), (31, 64)}, {}]>>
!halo8 = tensor<1x8x64x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 33), (31, 64)}, {}]>>
!cut1_2 = tensor<1x1x16x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 8, 16}, {}]>>
!cut8_2 = tensor<1x8x16x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 8, 16}, {}]>>
!halo1_2 = tensor<1x1x16x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 9), (7, 16)}, {}]>>
!halo8_2 = tensor<1x8x16x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 9), (7, 16)}, {}]>>
!cut1_3 = tensor<1x1x64x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 40, 64}, {}]>>
!cut8_3 = tensor<1x8x64x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 40, 64}, {}]>>
!halo1_3 = tensor<1x1x64x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 41), (39, 64)}, {}]>>
!halo8_3 = tensor<1x8x64x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 41), (39, 64)}, {}]>>

// BYTES-LABEL: func.func @narrow
// BYTES: dovetail.reshard %arg0 {{.*}} {"y" : (0, 34), (30, 64)}, {}]>>
// BYTES-NOT: dovetail.reshard
// BYTES: return
// BYTES-LABEL: func.func @uneven
// BYTES-COUNT-2: dovetail.reshard
// BYTES-LABEL: func.func @requested
// BYTES-COUNT-2: dovetail.reshard
func.func @narrow(%arg0: !cut1, %arg1: tensor<8x1x3x1xf32>, %arg2: tensor<8x8x3x1xf32>) -> !cut8 {
  %0 = dovetail.reshard %arg0 : !cut1 -> !halo1
  %1 = dovetail.conv %0, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 32, 64}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo1, tensor<8x1x3x1xf32>) -> !cut8
  %2 = dovetail.reshard %1 : !cut8 -> !halo8
  %3 = dovetail.conv %2, %arg2 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 32, 64}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo8, tensor<8x8x3x1xf32>) -> !cut8
  return %3 : !cut8
}
func.func @uneven(%arg0: !cut1_2, %arg1: tensor<8x1x3x1xf32>, %arg2: tensor<8x8x3x1xf32>) -> !cut8_2 {
  %0 = dovetail.reshard %arg0 : !cut1_2 -> !halo1_2
  %1 = dovetail.conv %0, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 8, 16}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo1_2, tensor<8x1x3x1xf32>) -> !cut8_2
  %2 = dovetail.reshard %1 : !cut8_2 -> !halo8_2
  %3 = dovetail.conv %2, %arg2 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 8, 16}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo8_2, tensor<8x8x3x1xf32>) -> !cut8_2
  return %3 : !cut8_2
}
func.func @requested(%arg0: !cut1_3, %arg1: tensor<8x1x3x1xf32>, %arg2: tensor<8x8x3x1xf32>) -> !cut8_3 {
  %0 = dovetail.reshard %arg0 : !cut1_3 -> !halo1_3
  %1 = dovetail.conv %0, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 40, 64}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo1_3, tensor<8x1x3x1xf32>) -> !cut8_3
  %2 = dovetail.reshard %1 : !cut8_3 -> !halo8_3
  %3 = dovetail.conv %2, %arg2 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 40, 64}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo8_3, tensor<8x8x3x1xf32>) -> !cut8_3
  return %3 : !cut8_3
}

// -----

// Two rows of eight channels are more than one of eight and one of one.

dovetail.mesh @mesh = ["y" = 2]
!cut8 = tensor<1x8x64x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 32, 64}, {}]>>
!cut1 = tensor<1x1x64x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 32, 64}, {}]>>
!halo8 = tensor<1x8x64x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 33), (31, 64)}, {}]>>
!halo1 = tensor<1x1x64x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 33), (31, 64)}, {}]>>

// BYTES-LABEL: func.func @wide
// BYTES-COUNT-2: dovetail.reshard
// TIME-LABEL: func.func @wide
// TIME: dovetail.reshard
// TIME-NOT: dovetail.reshard
// TIME: return
func.func @wide(%arg0: !cut8, %arg1: tensor<1x8x3x1xf32>, %arg2: tensor<1x1x3x1xf32>) -> !cut1 {
  %0 = dovetail.reshard %arg0 : !cut8 -> !halo8
  %1 = dovetail.conv %0, %arg1 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 32, 64}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo8, tensor<1x8x3x1xf32>) -> !cut1
  %2 = dovetail.reshard %1 : !cut1 -> !halo1
  %3 = dovetail.conv %2, %arg2 {dilations = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 32, 64}, {}, {}]>, pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (!halo1, tensor<1x1x3x1xf32>) -> !cut1
  return %3 : !cut1
}
