// RUN: dovetail-opt %s --dovetail-propagate --dovetail-partition --split-input-file --verify-diagnostics

// What is split and cannot stay so is gathered, and that is said.

dovetail.mesh @mesh = ["y" = 2]

func.func @merges_a_minor_dimension(%x: tensor<10x6xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 3, 6}>]}) -> tensor<60xf32> {
  // expected-remark@+1 {{is computed whole by all ranks along axis "y", which splits what it reads: that is gathered first}}
  %0 = dovetail.reshape %x : (tensor<10x6xf32>) -> tensor<60xf32>
  // Nothing is gathered here.
  %1 = dovetail.relu %0 : (tensor<60xf32>) -> tensor<60xf32>
  return %1 : tensor<60xf32>
}
