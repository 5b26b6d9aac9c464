// RUN: dovetail-opt %s --dovetail-merge-reshards --dovetail-verify-partition | FileCheck %s

// Windows of 3 and of 5 over one value: the wider one serves both.

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 12, 24}]>>
!by3 = tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}]>>
!by5 = tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 14), (10, 24)}]>>

// CHECK-LABEL: func.func @windows
// CHECK: %[[WIDE:.*]] = dovetail.reshard {{.*}} -> {{.*}}{"y" : (0, 14), (10, 24)}
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.conv %[[WIDE]], %arg1
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.conv %[[WIDE]], %arg2
// CHECK: return
func.func @windows(%x: !cut, %w3: tensor<1x1x3xf32>, %w5: tensor<1x1x5xf32>) -> !cut {
  %x3 = dovetail.reshard %x : !cut -> !by3
  %0 = dovetail.conv %x3, %w3 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (!by3, tensor<1x1x3xf32>) -> !cut
  %x5 = dovetail.reshard %x : !cut -> !by5
  %1 = dovetail.conv %x5, %w5 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 2>, pads_high = array<i64: 2>} : (!by5, tensor<1x1x5xf32>) -> !cut
  %2 = dovetail.add %0, %1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}]>} : (!cut, !cut) -> !cut
  return %2 : !cut
}

// What is gathered of a weight for one step is not there for another one, which needs less of it.

!pieces = tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>
!whole = tensor<8x8xf32, #dovetail.sharding<@mesh, [{}, {}]>>
!columns = tensor<8x8xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 8}]>>

// CHECK-LABEL: func.func @gathers
// CHECK: dovetail.reshard
// CHECK: %[[WHOLE:.*]] = dovetail.reshard
// CHECK-NEXT: dovetail.matmul %arg0, %[[WHOLE]]
// CHECK-NEXT: %[[COLUMNS:.*]] = dovetail.reshard
// CHECK-NEXT: dovetail.matmul %arg1, %[[COLUMNS]]
func.func @gathers(%rows: !pieces, %all: !whole) -> (!pieces, !columns) {
  %w = dovetail.constant dense_resource<w> : tensor<8x8xf32>
  %pieces = dovetail.reshard %w : tensor<8x8xf32> -> !pieces
  %whole = dovetail.reshard %pieces : !pieces -> !whole
  %0 = dovetail.matmul %rows, %whole {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 8}, {}, {}]>} : (!pieces, !whole) -> !pieces
  %columns = dovetail.reshard %pieces : !pieces -> !columns
  %1 = dovetail.matmul %all, %columns {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 4, 8}, {}]>} : (!whole, !columns) -> !columns
  return %0, %1 : !pieces, !columns
}

// A reshard that goes may be what others are of: they are of the one that stays.

!given = tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 8}, {}]>>
!stated = tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>
!ends = tensor<8x8xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 8}]>>
!every = tensor<8x8xf32, #dovetail.sharding<@mesh, [{}, {}]>>

// CHECK-LABEL: func.func @chains
// CHECK: %[[ASKED:.*]] = dovetail.reshard %arg0
// CHECK-NEXT: %[[ALL:.*]] = dovetail.reshard %[[ASKED]]
// CHECK-NEXT: dovetail.neg %[[ALL]]
// CHECK-NEXT: dovetail.exp %[[ALL]]
// CHECK-NEXT: dovetail.neg %[[ASKED]]
func.func @chains(%x: !given) -> (!every, !ends, !stated) {
  %0 = dovetail.reshard %x : !given -> !stated
  %1 = dovetail.reshard %0 : !stated -> !every
  %2 = dovetail.neg %1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>} : (!every) -> !every
  %3 = dovetail.reshard %0 : !stated -> !ends
  %4 = dovetail.exp %3 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 4, 8}]>} : (!ends) -> !ends
  %5 = dovetail.reshard %x : !given -> !stated
  %6 = dovetail.neg %5 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 8}, {}]>} : (!stated) -> !stated
  return %2, %4, %6 : !every, !ends, !stated
}
