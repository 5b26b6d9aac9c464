// RUN: dovetail-opt %s --dovetail-partition --split-input-file --verify-diagnostics

dovetail.mesh @mesh = ["y" = 2]
func.func private @elsewhere(%x: tensor<4xf32>) -> tensor<4xf32>

func.func @undecided(%x: tensor<10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 10}]>>) -> tensor<10xf32> {
  // expected-error@+1 {{has no loop shardings; run --dovetail-choose-shardings first}}
  %0 = dovetail.relu %x : (tensor<10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 10}]>>) -> tensor<10xf32>
  return %0 : tensor<10xf32>
}

// -----

// Stated loops are no decision on the result yet.

dovetail.mesh @mesh = ["y" = 2]

func.func @stated(%x: tensor<10xf32>) -> tensor<10xf32> {
  // expected-error@+1 {{has no loop shardings; run --dovetail-choose-shardings first}}
  %0 = dovetail.relu %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 3, 10}]>} : (tensor<10xf32>) -> tensor<10xf32>
  return %0 : tensor<10xf32>
}
