// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file | FileCheck %s

// Operands disagree: the small one moves.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @conflict
func.func @conflict(%a: tensor<100x64xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 50, 100}>, #dovetail.dim_sharding<{}>]}, %b: tensor<1x64xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 32, 64}>]}) -> tensor<100x64xf32> {
  // CHECK: dovetail.add
  // CHECK-SAME: -> tensor<100x64xf32, #dovetail.sharding<@mesh, [{"y" : 0, 50, 100}, {}]>>
  %0 = dovetail.add %a, %b : (tensor<100x64xf32>, tensor<1x64xf32>) -> tensor<100x64xf32>
  return %0 : tensor<100x64xf32>
}

// -----

// An argument without a request takes the cuts that its user needs.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @backward
// CHECK-SAME: %arg1: tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>)
func.func @backward(%a: tensor<40x8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 10, 40}>, #dovetail.dim_sharding<{}>]}, %b: tensor<40x8xf32>) -> tensor<40x8xf32> {
  %0 = dovetail.exp %b : (tensor<40x8xf32>) -> tensor<40x8xf32>
  %1 = dovetail.add %a, %0 : (tensor<40x8xf32>, tensor<40x8xf32>) -> tensor<40x8xf32>
  return %1 : tensor<40x8xf32>
}

// -----

// A split contraction gives a partial result.

dovetail.mesh @mesh = ["k" = 2]

// CHECK-LABEL: func.func @contraction
func.func @contraction(%a: tensor<4x64xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"k" : 0, 24, 64}>]}, %b: tensor<64x2xf32> {dovetail.shard = [#dovetail.dim_sharding<{"k" : 0, 24, 64}>, #dovetail.dim_sharding<{}>]}) -> tensor<4x2xf32> {
  // CHECK: dovetail.matmul
  // CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"k" : 0, 24, 64}]>
  // CHECK-SAME: -> tensor<4x2xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>
  %0 = dovetail.matmul %a, %b : (tensor<4x64xf32>, tensor<64x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// Of two sums that are multiplied at most one stays partial: the other one is combined first.

dovetail.mesh @mesh = ["k" = 2]

// CHECK-LABEL: func.func @product_of_sums
// CHECK: %[[A:.*]] = dovetail.reduce %arg0 {{.*}}partial = sum ["k"]
// CHECK: %[[B:.*]] = dovetail.reduce %arg1 {{.*}}partial = sum ["k"]
// CHECK: %[[SUM:.*]] = dovetail.reshard {{.*}}partial = sum ["k"]>> -> tensor<1x1xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK: dovetail.mul {{.*}}%[[SUM]]
func.func @product_of_sums(%a: tensor<64x1xf32> {dovetail.shard = [#dovetail.dim_sharding<{"k" : 0, 32, 64}>, #dovetail.dim_sharding<{}>]}, %b: tensor<64x1xf32> {dovetail.shard = [#dovetail.dim_sharding<{"k" : 0, 32, 64}>, #dovetail.dim_sharding<{}>]}) -> tensor<1x1xf32> {
  %0 = dovetail.reduce %a {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 0>} : (tensor<64x1xf32>) -> tensor<1x1xf32>
  %1 = dovetail.reduce %b {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 0>} : (tensor<64x1xf32>) -> tensor<1x1xf32>
  %2 = dovetail.mul %0, %1 : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  return %2 : tensor<1x1xf32>
}

// -----

// A sum stays partial through a factor and another sum, which makes less of it: terms of 64 elements are added on both
// ranks, not of 64 x 64. These operations are light beside the product, or ranks would have to divide them.

dovetail.mesh @mesh = ["k" = 2]
!a = tensor<64x4096xf32, #dovetail.sharding<@mesh, [{}, {"k" : 0, 2048, 4096}]>>

// CHECK-LABEL: func.func @delayed
// CHECK-SAME: dovetail.expected = {bytes = 512 : i64
// CHECK: %[[TERMS:.*]] = dovetail.matmul %arg0, {{.*}} -> tensor<64x64xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>
// CHECK-NEXT: %[[SCALED:.*]] = dovetail.mul %[[TERMS]], {{.*}} -> tensor<64x64xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>
// CHECK-NEXT: dovetail.reduce %[[SCALED]] {{.*}} -> tensor<64x1xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>
func.func @delayed(%a: !a) -> tensor<64x1xf32> {
  %w = dovetail.constant dense<1.0> : tensor<4096x64xf32>
  %c = dovetail.constant dense<0.5> : tensor<64x1xf32>
  %0 = dovetail.matmul %a, %w : (!a, tensor<4096x64xf32>) -> tensor<64x64xf32>
  %1 = dovetail.mul %0, %c : (tensor<64x64xf32>, tensor<64x1xf32>) -> tensor<64x64xf32>
  %2 = dovetail.reduce %1 {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x1xf32>
  return %2 : tensor<64x1xf32>
}

// -----

// Two sums that are added stay partial together: their sum is added up once.

dovetail.mesh @mesh = ["k" = 2]
!a = tensor<64x4096xf32, #dovetail.sharding<@mesh, [{}, {"k" : 0, 2048, 4096}]>>

// CHECK-LABEL: func.func @sum_of_sums
// CHECK: dovetail.matmul %arg0, {{.*}} -> tensor<64x64xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>
// CHECK-NEXT: dovetail.matmul %arg1, {{.*}} -> tensor<64x64xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>
// CHECK-NEXT: dovetail.sub {{.*}} -> tensor<64x64xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>
// CHECK-NOT: dovetail.matmul
// CHECK: return
func.func @sum_of_sums(%a: !a, %b: !a) -> tensor<64x64xf32> {
  %w = dovetail.constant dense<1.0> : tensor<4096x64xf32>
  %v = dovetail.constant dense<2.0> : tensor<4096x64xf32>
  %0 = dovetail.matmul %a, %w : (!a, tensor<4096x64xf32>) -> tensor<64x64xf32>
  %1 = dovetail.matmul %b, %v : (!a, tensor<4096x64xf32>) -> tensor<64x64xf32>
  %2 = dovetail.sub %0, %1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}
