// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// A scan that is split begins anew at the cuts. Each rank reduces its part, in f32, and they divide the scan of
// the results.

dovetail.mesh @mesh = ["y" = 3]

// CHECK-LABEL: func.func @scan
func.func @scan(%x: tensor<4x9xf16> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 2, 2, 9}>]}) -> tensor<4x9xf16> {
  // CHECK: %[[PARTS:.+]] = dovetail.reduce_parts %{{.+}} {axis = 1 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 1, 1, 2}, {}]>, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 2>}
  // CHECK-SAME: -> tensor<4x2xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 1, 2}]>>
  // CHECK: %[[START:.+]] = dovetail.scan %[[PARTS]] {axis = 1 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2, 3, 4}, {}]>, exclusive, kind = #dovetail.reduce_kind<sum>}
  // CHECK-SAME: -> tensor<4x2xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 3, 4}, {}]>>
  // CHECK: dovetail.scan %{{.+}}, %[[START]] {axis = 1 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 2, 2, 9}]>, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 2>}
  // CHECK-SAME: -> tensor<4x9xf16, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2, 2, 9}]>>
  %0 = dovetail.scan %x {axis = 1 : i64, kind = #dovetail.reduce_kind<sum>} : (tensor<4x9xf16>) -> tensor<4x9xf16>
  return %0 : tensor<4x9xf16>
}

// -----

// Each rank writes what it owns of the result: the data stay where they are, and all have the indices and, along the
// dimensions that these number, the updates.

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

// CHECK-LABEL: func.func @scatter
func.func @scatter(%data: tensor<9x6xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 4, 9}>, #dovetail.dim_sharding<{"x" : 0, 3, 6}>]}, %indices: tensor<5x1xi64>, %updates: tensor<5x6xf32>) -> tensor<9x6xf32> {
  // CHECK: dovetail.scatter_nd %{{.+}} {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 9}, {"x" : 0, 3, 6}]>}
  // CHECK-SAME: tensor<5x1xi64, #dovetail.sharding<@mesh, [{}, {}]>>, tensor<5x6xf32, #dovetail.sharding<@mesh, [{}, {"x" : 0, 3, 6}]>>)
  // CHECK-SAME: -> tensor<9x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 9}, {"x" : 0, 3, 6}]>>
  %0 = dovetail.scatter_nd %data, %indices, %updates : (tensor<9x6xf32>, tensor<5x1xi64>, tensor<5x6xf32>) -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

// A row program has its line whole. Its results are split alike.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @top
func.func @top(%x: tensor<4x9xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 1, 4}>, #dovetail.dim_sharding<{}>]}) -> (tensor<4x2xf32>, tensor<4x2xi64>) {
  // CHECK: dovetail.top_k
  // CHECK-SAME: -> (tensor<4x2xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}, {}]>>, tensor<4x2xi64, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}, {}]>>)
  %0:2 = dovetail.top_k %x {k = 2 : i64, axis = 1 : i64, largest = true} : (tensor<4x9xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  return %0#0, %0#1 : tensor<4x2xf32>, tensor<4x2xi64>
}

// -----

// A scan that begins anew elsewhere than at the cuts cannot be divided.

dovetail.mesh @mesh = ["y" = 2]

!split = tensor<4x9xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2, 9}]>>
// CHECK-LABEL: func.func @restarts
// REMARK: remark: is computed whole: ranks cannot divide dimension 1, along which it reduces or accumulates
func.func @restarts(%x: !split) -> (tensor<4x9xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 2, 9}>]}) {
  // CHECK: %[[WHOLE:.+]] = dovetail.scan %{{.+}} {axis = 1 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>
  // CHECK-SAME: -> tensor<4x9xf32, #dovetail.sharding<@mesh, [{}, {}]>>
  // CHECK: dovetail.reshard %[[WHOLE]]
  // CHECK-SAME: -> tensor<4x9xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2, 9}]>>
  %0 = dovetail.scan %x {axis = 1 : i64, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 4>} : (!split) -> tensor<4x9xf32>
  return %0 : tensor<4x9xf32>
}
