// RUN: dovetail-opt %s --dovetail-widen-halos --split-input-file --verify-diagnostics
// RUN: not dovetail-opt %s --dovetail-widen-halos=cluster=x200 --split-input-file 2>&1 | FileCheck %s

// CHECK: error: there is no cluster 'x200' among the built-in ones

dovetail.mesh @mesh = ["y" = 2]

func.func @undecided(%x: tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>) -> tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>> {
  // expected-error@+1 {{has no loop shardings; run --dovetail-choose-shardings first}}
  %0 = dovetail.relu %x : (tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>) -> tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>
  return %0 : tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// expected-error@+1 {{a module has one mesh, but this is the second}}
dovetail.mesh @other = ["x" = 2]
