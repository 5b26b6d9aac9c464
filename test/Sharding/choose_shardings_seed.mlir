// RUN: dovetail-opt %s --dovetail-choose-shardings=seed=1 | FileCheck %s --check-prefix=TERMS
// RUN: dovetail-opt %s --dovetail-choose-shardings=seed=2 | FileCheck %s --check-prefix=WHOLE
// RUN: dovetail-opt %s --dovetail-choose-shardings=seed=3 | FileCheck %s --check-prefix=ROWS
// RUN: dovetail-opt %s --dovetail-choose-shardings=seed=5 | FileCheck %s --check-prefix=STATED

// At random, loops are split in all ways that there are, the best or not. What is stated is kept.

dovetail.mesh @mesh = ["y" = 2]

// TERMS: %arg0: tensor<4x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}, {}]>>
// TERMS: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 3, 6}]>
// WHOLE: %arg0: tensor<4x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}, {}]>>
// WHOLE: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {}]>
// ROWS: %arg0: tensor<4x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}, {}]>>
// ROWS: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2, 4}, {}, {}]>
// STATED: %arg0: tensor<4x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}, {}]>>
// STATED: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 1, 4}, {}, {}]>
func.func @product(%a: tensor<4x6xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 1, 4}>, #dovetail.dim_sharding<{}>]}, %b: tensor<6x8xf32>) -> tensor<4x8xf32> {
  %0 = dovetail.matmul %a, %b : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
