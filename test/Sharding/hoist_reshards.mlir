// RUN: dovetail-opt %s --dovetail-hoist-reshards --dovetail-verify-partition --split-input-file | FileCheck %s

// Rows are gathered before they are repeated, and before the addition of a vector that every rank has.

dovetail.mesh @mesh = ["y" = 2]
!rows = tensor<8x1xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}, {}]>>
!sums = tensor<8x64xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}, {}]>>
!whole = tensor<8x64xf32, #dovetail.sharding<@mesh, [{}, {}]>>
!product = tensor<64x64xf32, #dovetail.sharding<@mesh, [{}, {}]>>

// CHECK-LABEL: func.func @repeated
// CHECK: %[[ROWS:.*]] = dovetail.reshard %arg0 : tensor<8x1xf32, {{.*}}> -> tensor<8x1xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK-NEXT: %[[SUM:.*]] = dovetail.add %[[ROWS]], %arg1 {{.*}} -> tensor<8x64xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK-NEXT: dovetail.matmul %{{.*}}, %[[SUM]]
func.func @repeated(%x: !rows, %v: tensor<1x64xf32>, %w: tensor<64x8xf32>) -> !product {
  %0 = dovetail.add %x, %v {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 3, 8}, {}]>} : (!rows, tensor<1x64xf32>) -> !sums
  %1 = dovetail.reshard %0 : !sums -> !whole
  %2 = dovetail.matmul %w, %1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {}]>} : (tensor<64x8xf32>, !whole) -> !product
  return %2 : !product
}

// -----

// A column is exchanged before it is added to a row, though ranks then compute some sums twice: their parts overlap where
// the convolution reads more than its own. A sum of two tensors is exchanged afterwards: that is one, not two.

dovetail.mesh @mesh = ["y" = 2]
!column = tensor<1x1x24x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>>
!cut = tensor<1x1x24x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>>
!halo = tensor<1x1x24x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}, {}]>>

// CHECK-LABEL: func.func @overlapping
// CHECK: %[[HALO:.*]] = dovetail.reshard %arg0 {{.*}} -> tensor<1x1x24x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}, {}]>>
// CHECK-NEXT: %[[ROWS:.*]] = dovetail.add %[[HALO]], %arg1
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}, {}]>
// CHECK-NEXT: %[[Y:.*]] = dovetail.conv %[[ROWS]]
// CHECK-NEXT: %[[SUM:.*]] = dovetail.add %[[Y]], %arg2 {{.*}} -> tensor<1x1x24x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>>
// CHECK-NEXT: %[[SUMS:.*]] = dovetail.reshard %[[SUM]]
// CHECK-NEXT: dovetail.conv %[[SUMS]]
func.func @overlapping(%x: !column, %v: tensor<1x1x1x4xf32>, %z: !cut, %w: tensor<1x1x3x1xf32>) -> !cut {
  %0 = dovetail.add %x, %v {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>} : (!column, tensor<1x1x1x4xf32>) -> !cut
  %1 = dovetail.reshard %0 : !cut -> !halo
  %2 = dovetail.conv %1, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}, {}]>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 0>, pads_high = array<i64: 1, 0>} : (!halo, tensor<1x1x3x1xf32>) -> !cut
  %3 = dovetail.add %2, %z {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>} : (!cut, !cut) -> !cut
  %4 = dovetail.reshard %3 : !cut -> !halo
  %5 = dovetail.conv %4, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}, {}]>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 0>, pads_high = array<i64: 1, 0>} : (!halo, tensor<1x1x3x1xf32>) -> !cut
  return %5 : !cut
}

// -----

// An end that is exchanged anyway and the halo of the whole are one exchange of the tensor, of as many bytes, and what is
// concatenated is stored once, where the convolution reads it. A tensor of which nothing else is exchanged has its halo
// afterwards.

dovetail.mesh @mesh = ["y" = 2]
!x = tensor<1x1x8x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>>
!end = tensor<1x1x1x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 0, 1}, {}]>>
!needed = tensor<1x1x1x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 1, 1}, {}]>>
!joined = tensor<1x1x9x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 5, 9}, {}]>>
!halo = tensor<1x1x9x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 6), (4, 9)}, {}]>>
!y = tensor<1x1x7x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 7}, {}]>>

// CHECK-LABEL: func.func @joined
// CHECK: %[[X:.*]] = dovetail.reshard %arg0 {{.*}} -> tensor<1x1x8x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 8)}, {}]>>
// CHECK: %[[JOINED:.*]] = dovetail.concat %{{.*}}, %[[X]] {axis = 2 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : (0, 6), (4, 9)}, {}]>}
// CHECK-NEXT: dovetail.conv %[[JOINED]]
func.func @joined(%x: !x, %w: tensor<1x1x3x1xf32>) -> !y {
  %0 = dovetail.slice %x {starts = array<i64: 0, 0, 7, 0>, sizes = array<i64: 1, 1, 1, 4>, steps = array<i64: 1, 1, 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 0, 1}, {}]>} : (!x) -> !end
  %1 = dovetail.reshard %0 : !end -> !needed
  %2 = dovetail.concat %1, %x {axis = 2 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 5, 9}, {}]>} : (!needed, !x) -> !joined
  %3 = dovetail.reshard %2 : !joined -> !halo
  %4 = dovetail.conv %3, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 4, 7}, {}, {}]>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (!halo, tensor<1x1x3x1xf32>) -> !y
  return %4 : !y
}

// CHECK-LABEL: func.func @alone
// CHECK: %[[JOINED:.*]] = dovetail.concat %arg1, %arg0
// CHECK-NEXT: %[[HALO:.*]] = dovetail.reshard %[[JOINED]]
// CHECK-NEXT: dovetail.conv %[[HALO]]
func.func @alone(%x: !x, %end: !needed, %w: tensor<1x1x3x1xf32>) -> !y {
  %0 = dovetail.concat %end, %x {axis = 2 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 5, 9}, {}]>} : (!needed, !x) -> !joined
  %1 = dovetail.reshard %0 : !joined -> !halo
  %2 = dovetail.conv %1, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 4, 7}, {}, {}]>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (!halo, tensor<1x1x3x1xf32>) -> !y
  return %2 : !y
}
