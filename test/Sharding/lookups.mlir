// RUN: dovetail-opt %s --dovetail-partition --dovetail-verify-partition --split-input-file | FileCheck %s

// Of a table that is split along what is indexed, ranks look up what they own. The table stays where it is; what was
// found is scattered for who uses it.

dovetail.mesh @mesh = ["y" = 4]
!table = tensor<2000x64xf32, #dovetail.sharding<@mesh, [{"y" : 0, 500, 500, 900, 2000}, {}]>>
!found = tensor<1000x64xf32, #dovetail.sharding<@mesh, [{}, {}], partial = owner ["y"]>>
!columns = tensor<1000x64xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 16, 32, 48, 64}]>>

// CHECK-LABEL: func.func @scattered
// CHECK-NEXT: %[[R:.*]] = dovetail.gather %arg0
// CHECK-NEXT: %[[S:.*]] = dovetail.reshard %[[R]] : {{.*}} -> tensor<1000x64xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 16, 32, 48, 64}]>>
// CHECK-NEXT: dovetail.exp %[[S]]
func.func @scattered(%table: !table, %indices: tensor<1000xi64>) -> !columns {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 500, 500, 900, 2000}]>} : (!table, tensor<1000xi64>) -> !found
  %1 = dovetail.exp %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 16, 32, 48, 64}]>} : (!found) -> !columns
  return %1 : !columns
}

// -----

// A caller takes it whole.

dovetail.mesh @mesh = ["y" = 2]
!table = tensor<30x8xi1, #dovetail.sharding<@mesh, [{"y" : 0, 7, 30}, {}]>>
!found = tensor<14x8xi1, #dovetail.sharding<@mesh, [{}, {}], partial = owner ["y"]>>

// CHECK-LABEL: func.func @returned
// CHECK-NEXT: %[[R:.*]] = dovetail.gather_elements %arg0
// CHECK-NEXT: %[[S:.*]] = dovetail.reshard %[[R]] : {{.*}} -> tensor<14x8xi1, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK-NEXT: return %[[S]]
func.func @returned(%table: !table, %indices: tensor<14x8xi32>) -> !found {
  %0 = dovetail.gather_elements %table, %indices {axis = 0 : si64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 7, 30}]>} : (!table, tensor<14x8xi32>) -> !found
  return %0 : !found
}

// -----

// Where the loop over what is indexed is whole, each rank needs the table: whatever the indices are.

dovetail.mesh @mesh = ["y" = 2]
!table = tensor<30x64xf32, #dovetail.sharding<@mesh, [{"y" : 0, 7, 30}, {}]>>
!rows = tensor<1000x64xf32, #dovetail.sharding<@mesh, [{"y" : 0, 500, 1000}, {}]>>

// CHECK-LABEL: func.func @gathered
// CHECK-NEXT: %[[T:.*]] = dovetail.reshard %arg0 {{.*}} -> tensor<30x64xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK-NEXT: %[[R:.*]] = dovetail.gather %[[T]]
// CHECK-NEXT: return %[[R]]
func.func @gathered(%table: !table, %indices: tensor<1000xi32>) -> !rows {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 500, 1000}, {}, {}]>} : (!table, tensor<1000xi32>) -> !rows
  return %0 : !rows
}

// -----

// Elements of a vector have no dimension left: they are what they are once they are combined, and no operation meets them
// before, not one that a sum passes through.

dovetail.mesh @mesh = ["y" = 2]
!table = tensor<30xf32, #dovetail.sharding<@mesh, [{"y" : 0, 7, 30}]>>
!found = tensor<3x2xf32, #dovetail.sharding<@mesh, [{}, {}], partial = owner ["y"]>>
!whole = tensor<2x3xf32, #dovetail.sharding<@mesh, [{}, {}]>>

// CHECK-LABEL: func.func @combined_first
// CHECK-NEXT: %[[R:.*]] = dovetail.gather
// CHECK-NEXT: %[[S:.*]] = dovetail.reshard %[[R]] : {{.*}} -> tensor<3x2xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK-NEXT: dovetail.transpose %[[S]]
func.func @combined_first(%table: !table, %indices: tensor<3x2xi32>) -> !whole {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 7, 30}]>} : (!table, tensor<3x2xi32>) -> !found
  %1 = dovetail.transpose %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>, permutation = array<i64: 1, 0>} : (!found) -> !whole
  return %1 : !whole
}
