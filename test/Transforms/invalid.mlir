// RUN: dovetail-opt %s --dovetail-simplify-shapes --verify-diagnostics
// RUN: dovetail-opt %s --dovetail-restore-rows --verify-diagnostics

dovetail.mesh @mesh = ["y" = 2]

func.func @sharded(%arg0: tensor<4xf32>) -> tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}]>> {
  // expected-error@+1 {{carries a sharding; the graph is simplified before shardings are chosen}}
  %0 = dovetail.relu %arg0 : (tensor<4xf32>) -> tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}]>>
  return %0 : tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}]>>
}
