// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file | FileCheck %s

// A sum that two users need in different parts is added up once: for one of them, who passes it on.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @two_users
// CHECK: %[[TERMS:.*]] = dovetail.matmul
// CHECK-NEXT: %[[SUM:.*]] = dovetail.reshard %[[TERMS]] : {{.*}}, partial = sum ["y"]>> -> tensor<4x6xf32, #dovetail.sharding<@mesh, [{{.*}}"y" : {{.*}}]>>
// CHECK-NEXT: dovetail.relu %[[SUM]]
// CHECK-NEXT: dovetail.exp %[[SUM]]
!left = tensor<4x8xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 8}]>>
!right = tensor<8x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>
func.func @two_users(%a: !left, %b: !right) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = dovetail.matmul %a, %b {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 4, 8}]>} : (!left, !right) -> tensor<4x6xf32>
  %1 = dovetail.relu %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2, 4}, {}]>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = dovetail.exp %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 3, 6}]>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %1, %2 : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// Windows of 3 and of 5 over one value: it is brought to both with the wider halo, two elements for each rank, which the
// narrower one is part of.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @windows
// CHECK-SAME: dovetail.expected = {bytes = 16 : i64
// CHECK: %[[WIDE:.*]] = dovetail.reshard %arg0 {{.*}} -> tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 14), (10, 24)}]>>
// CHECK: dovetail.conv %[[WIDE]]
// CHECK: dovetail.conv %[[WIDE]]
!cut = tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 12, 24}]>>
func.func @windows(%x: !cut) -> tensor<1x1x24xf32> {
  %w3 = dovetail.constant dense<1.0> : tensor<1x1x3xf32>
  %w5 = dovetail.constant dense<1.0> : tensor<1x1x5xf32>
  %0 = dovetail.conv %x, %w3 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (!cut, tensor<1x1x3xf32>) -> tensor<1x1x24xf32>
  %1 = dovetail.conv %x, %w5 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 2>, pads_high = array<i64: 2>} : (!cut, tensor<1x1x5xf32>) -> tensor<1x1x24xf32>
  %2 = dovetail.add %0, %1 : (tensor<1x1x24xf32>, tensor<1x1x24xf32>) -> tensor<1x1x24xf32>
  return %2 : tensor<1x1x24xf32>
}

// -----

// Columns of a table that three products sum over are gathered once for all of them: 4 * 6 elements, of which each rank
// lacks half.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @gathered_once
// CHECK-SAME: dovetail.expected = {bytes = 96 : i64
!columns = tensor<4x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 3, 6}]>>
func.func @gathered_once(%x: !columns) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %w = dovetail.constant dense<1.0> : tensor<6x8xf32>
  // CHECK-COUNT-3: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 4, 8}, {}]>
  %0 = dovetail.matmul %x, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 4, 8}, {}]>} : (!columns, tensor<6x8xf32>) -> tensor<4x8xf32>
  %1 = dovetail.matmul %x, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 4, 8}, {}]>} : (!columns, tensor<6x8xf32>) -> tensor<4x8xf32>
  %2 = dovetail.matmul %x, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 4, 8}, {}]>} : (!columns, tensor<6x8xf32>) -> tensor<4x8xf32>
  return %0, %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
