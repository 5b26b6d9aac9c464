// RUN: dovetail-opt %s --dovetail-choose-shardings | FileCheck %s

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
