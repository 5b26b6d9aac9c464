// RUN: dovetail-opt %s --dovetail-propagate --dovetail-partition --dovetail-verify-partition --split-input-file | FileCheck %s

// Of a table that is split along what is indexed, ranks look up what they own. The result, 256 KB, is scattered for who
// uses it, where the table has more bytes.

dovetail.mesh @mesh = ["y" = 4]

// CHECK-LABEL: func.func @scattered
// CHECK: %[[R:.*]] = dovetail.gather
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 500, 500, 900, 2000}]>
// CHECK-SAME: -> tensor<1000x64xf32, #dovetail.sharding<@mesh, [{}, {}], partial = owner ["y"]>>
// CHECK-NEXT: %[[S:.*]] = dovetail.reshard %[[R]] : {{.*}} -> tensor<1000x64xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 16, 32, 48, 64}]>>
// CHECK-NEXT: dovetail.exp %[[S]]
func.func @scattered(%table: tensor<2000x64xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 500, 500, 900, 2000}>, #dovetail.dim_sharding<{}>]}, %indices: tensor<1000xi64>) -> tensor<1000x64xf32> {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64} : (tensor<2000x64xf32>, tensor<1000xi64>) -> tensor<1000x64xf32>
  %1 = dovetail.exp %0 : (tensor<1000x64xf32>) -> tensor<1000x64xf32>
  return %1 : tensor<1000x64xf32>
}

// -----

// A caller takes it whole: what moves is twice the result, at most the table.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @reduced
// CHECK: %[[R:.*]] = dovetail.gather_elements
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 7, 30}]>
// CHECK-SAME: partial = owner ["y"]
// CHECK-NEXT: %[[S:.*]] = dovetail.reshard %[[R]] : {{.*}} -> tensor<14x8xi1, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK-NEXT: return %[[S]]
func.func @reduced(%table: tensor<30x8xi1> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 7, 30}>, #dovetail.dim_sharding<{}>]}, %indices: tensor<14x8xi32>) -> tensor<14x8xi1> {
  %0 = dovetail.gather_elements %table, %indices {axis = 0 : si64} : (tensor<30x8xi1>, tensor<14x8xi32>) -> tensor<14x8xi1>
  return %0 : tensor<14x8xi1>
}

// -----

// A small table comes to all ranks.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @gathered
// CHECK: %[[T:.*]] = dovetail.reshard %{{.*}} -> tensor<30x8xi1, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK-NEXT: %[[R:.*]] = dovetail.gather_elements %[[T]]
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {}]>
// CHECK-NEXT: return %[[R]]
func.func @gathered(%table: tensor<30x8xi1> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 7, 30}>, #dovetail.dim_sharding<{}>]}, %indices: tensor<16x8xi32>) -> tensor<16x8xi1> {
  %0 = dovetail.gather_elements %table, %indices {axis = 0 : si64} : (tensor<30x8xi1>, tensor<16x8xi32>) -> tensor<16x8xi1>
  return %0 : tensor<16x8xi1>
}

// -----

// If the result is to be divided, ranks compute their parts.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @divided
// CHECK: %[[T:.*]] = dovetail.reshard %{{.*}} -> tensor<30x64xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK: %[[R:.*]] = dovetail.gather %[[T]]
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 500, 1000}, {}, {}]>
// CHECK-NEXT: dovetail.exp %[[R]]
func.func @divided(%table: tensor<30x64xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 7, 30}>, #dovetail.dim_sharding<{}>]}, %indices: tensor<1000xi32>) -> tensor<1000x64xf32> {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64} : (tensor<30x64xf32>, tensor<1000xi32>) -> tensor<1000x64xf32>
  %1 = dovetail.exp %0 : (tensor<1000x64xf32>) -> tensor<1000x64xf32>
  return %1 : tensor<1000x64xf32>
}

// -----

// What is asked of the result does not bring a large table to all ranks.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @requested
// CHECK: %[[R:.*]] = dovetail.gather
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 7, 30}]>
// CHECK-NEXT: %[[S:.*]] = dovetail.reshard %[[R]] : {{.*}}partial = owner ["y"]>> -> tensor<12x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2, 6}]>>
// CHECK-NEXT: return %[[S]]
func.func @requested(%table: tensor<30x6xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 7, 30}>, #dovetail.dim_sharding<{}>]}, %indices: tensor<12xi32>) -> (tensor<12x6xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 2, 6}>]}) {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64} : (tensor<30x6xf32>, tensor<12xi32>) -> tensor<12x6xf32>
  return %0 : tensor<12x6xf32>
}

// -----

// Elements of a vector have no dimension left: they are what they are once they are combined, and no sum meets them before.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @combined_first
// CHECK: %[[R:.*]] = dovetail.gather
// CHECK-SAME: partial = owner ["y"]
// CHECK-NEXT: %[[S:.*]] = dovetail.reshard %[[R]] : {{.*}} -> tensor<3x2xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK-NEXT: dovetail.transpose %[[S]]
func.func @combined_first(%table: tensor<30xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 7, 30}>]}, %indices: tensor<3x2xi32>) -> tensor<2x3xf32> {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64} : (tensor<30xf32>, tensor<3x2xi32>) -> tensor<3x2xf32>
  %1 = dovetail.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
