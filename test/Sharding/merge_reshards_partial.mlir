// RUN: dovetail-opt %s --dovetail-merge-reshards --dovetail-verify-partition | FileCheck %s

// A sum does not serve who reads its terms, though every rank has all of it: they would be added once more.

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

// CHECK-LABEL: func.func @terms
// CHECK: %[[PRODUCT:.*]] = dovetail.matmul
// CHECK: %[[TERMS:.*]] = dovetail.reshard %[[PRODUCT]] : {{.*}} -> tensor<4x6xf32, #dovetail.sharding<@mesh, [{}, {"x" : 0, 2, 6}], partial = sum ["y"]>>
// CHECK: dovetail.neg %[[TERMS]]
// CHECK: %[[SUM:.*]] = dovetail.reshard %[[PRODUCT]] : {{.*}} -> tensor<4x6xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK: dovetail.relu %[[SUM]]
!terms = tensor<4x6xf32, #dovetail.sharding<@mesh, [{}, {"x" : 0, 3, 6}], partial = sum ["y"]>>
!moved = tensor<4x6xf32, #dovetail.sharding<@mesh, [{}, {"x" : 0, 2, 6}], partial = sum ["y"]>>
!whole = tensor<4x6xf32, #dovetail.sharding<@mesh, [{}, {}]>>
!left = tensor<4x8xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 8}]>>
!right = tensor<8x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {"x" : 0, 3, 6}]>>
func.func @terms(%a: !left, %b: !right) -> (!whole, !whole) {
  %0 = dovetail.matmul %a, %b {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"x" : 0, 3, 6}, {"y" : 0, 4, 8}]>} : (!left, !right) -> !terms
  %1 = dovetail.reshard %0 : !terms -> !moved
  %2 = dovetail.neg %1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"x" : 0, 2, 6}]>} : (!moved) -> !moved
  %3 = dovetail.reshard %2 : !moved -> !whole
  %4 = dovetail.reshard %0 : !terms -> !whole
  %5 = dovetail.relu %4 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>} : (!whole) -> !whole
  return %3, %5 : !whole, !whole
}
