// RUN: dovetail-opt %s --dovetail-choose-shardings | FileCheck %s
// RUN: dovetail-opt %s --dovetail-choose-shardings --dovetail-partition | FileCheck %s --check-prefix=MOVED

dovetail.mesh @mesh = ["y" = 2]

// A large table that is split along a dimension that tuples index is looked up where its elements are.
// CHECK-LABEL: func.func @looked_up
// CHECK: dovetail.gather_nd
// CHECK-SAME: -> tensor<5x3xf32, #dovetail.sharding<@mesh, [{}, {}], partial = owner ["y"]>>
func.func @looked_up(%data: tensor<9000x40x3xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 1000, 9000}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>]}, %indices: tensor<5x2xi64>) -> tensor<5x3xf32> {
  %0 = dovetail.gather_nd %data, %indices {batch_dims = 0 : i64} : (tensor<9000x40x3xf32>, tensor<5x2xi64>) -> tensor<5x3xf32>
  return %0 : tensor<5x3xf32>
}

// A cache stays split along the sequence: ranks write what is theirs of the new slices, which all of them get.
// CHECK-LABEL: func.func @cache
// CHECK: dovetail.tensor_scatter
// CHECK-SAME: -> tensor<2x4096x64xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1024, 4096}, {}]>>
// MOVED-LABEL: func.func @cache
// MOVED-NOT: dovetail.reshard {{.*}}4096
func.func @cache(%cache: tensor<2x4096x64xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 1024, 4096}>, #dovetail.dim_sharding<{}>]}, %indices: tensor<2x1xi64>, %update: tensor<2x1x64xf32>) -> (tensor<2x4096x64xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 1024, 4096}>, #dovetail.dim_sharding<{}>]}) {
  %0 = dovetail.tensor_scatter %cache, %indices, %update {axis = 1 : i64} : (tensor<2x4096x64xf32>, tensor<2x1xi64>, tensor<2x1x64xf32>) -> tensor<2x4096x64xf32>
  return %0 : tensor<2x4096x64xf32>
}
