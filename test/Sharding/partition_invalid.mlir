// RUN: dovetail-opt %s --dovetail-partition --split-input-file --verify-diagnostics

dovetail.mesh @mesh = ["y" = 2]
func.func private @elsewhere(%x: tensor<4xf32>) -> tensor<4xf32>

func.func @not_propagated(%x: tensor<10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 10}]>>) -> tensor<10xf32> {
  // expected-error@+1 {{has a result without a sharding, but operands with one: run --dovetail-propagate first}}
  %0 = dovetail.relu %x : (tensor<10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 10}]>>) -> tensor<10xf32>
  return %0 : tensor<10xf32>
}
