// RUN: dovetail-opt %s --dovetail-verify-partition --split-input-file --verify-diagnostics

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 12, 24}]>>

func.func @no_halo(%x: !cut, %w: tensor<1x1x3xf32>) -> !cut {
  // expected-error@+1 {{needs #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}]> of operand 0, but ranks hold}}
  %0 = dovetail.conv %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (!cut, tensor<1x1x3xf32>) -> !cut
  return %0 : !cut
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<24xf32, #dovetail.sharding<@mesh, [{"y" : 0, 12, 24}]>>

func.func @not_partial(%x: !cut) -> tensor<1xf32> {
  // expected-error@+1 {{splits a reduction over mesh axis "y", but its result is not partial over it}}
  %0 = dovetail.reduce %x {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 0>} : (!cut) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!part = tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>

func.func @not_linear(%x: !part) -> !part {
  // expected-error@+1 {{reads operand 0, which is partial, but is not linear in it}}
  %0 = dovetail.exp %x : (!part) -> !part
  return %0 : !part
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!window = tensor<24xf32, #dovetail.sharding<@mesh, [{"y" : (0, 13), (11, 24)}]>>
!sum = tensor<1xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>

func.func @counted_twice(%x: !window) -> !sum {
  // expected-error@+1 {{which does not cover it exactly once}}
  %0 = dovetail.reduce %x {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 0>} : (!window) -> !sum
  return %0 : !sum
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!gap = tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 3), (4, 8)}]>>

func.func @computed_by_nobody(%x: tensor<8xf32>) -> !gap {
  // expected-error@+1 {{splits loop 0 into #dovetail.dim_sharding<{"y" : (0, 3), (4, 8)}>, which does not cover it}}
  %0 = dovetail.exp %x : (tensor<8xf32>) -> !gap
  return %0 : !gap
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// expected-error@+1 {{argument 0 is cut into #dovetail.dim_sharding<{"y" : 0, 2, 6}> in dimension 0, which leaves elements of its extent of 8 to no rank}}
func.func @without_owner(%x: tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 6}]>>) {
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// expected-error@+1 {{has a value cut over mesh @other, which the module does not have}}
func.func @no_mesh(%x: tensor<8xf32, #dovetail.sharding<@other, [{"y" : 0, 2, 8}]>>) {
  return
}
