// RUN: dovetail-opt %s --dovetail-verify-partition --split-input-file --verify-diagnostics

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 12, 24}]>>

func.func @no_halo(%x: !cut, %w: tensor<1x1x3xf32>) -> !cut {
  // expected-error@+1 {{needs #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}]> of operand 0, but ranks hold}}
  %0 = dovetail.conv %x, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (!cut, tensor<1x1x3xf32>) -> !cut
  return %0 : !cut
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<24xf32, #dovetail.sharding<@mesh, [{"y" : 0, 12, 24}]>>

func.func @undecided(%x: !cut) -> !cut {
  // expected-error@+1 {{has no loop shardings; run --dovetail-choose-shardings first}}
  %0 = dovetail.exp %x : (!cut) -> !cut
  return %0 : !cut
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<24xf32, #dovetail.sharding<@mesh, [{"y" : 0, 12, 24}]>>
!window = tensor<24xf32, #dovetail.sharding<@mesh, [{"y" : (0, 13), (11, 24)}]>>

func.func @recomputes_more(%x: !cut) -> !window {
  // expected-error@+1 {{needs #dovetail.sharding<@mesh, [{"y" : (0, 13), (11, 24)}]> of operand 0, but ranks hold}}
  %0 = dovetail.exp %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : (0, 13), (11, 24)}]>} : (!cut) -> !window
  return %0 : !window
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!part = tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>

func.func @not_linear(%x: !part) -> !part {
  // expected-error@+1 {{reads operand 0, which is partial, but is not linear in it}}
  %0 = dovetail.exp %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}]>} : (!part) -> !part
  return %0 : !part
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

// -----

dovetail.mesh @mesh = ["y" = 2]
!part = tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>

func.func @two_sums(%x: !part, %y: !part) -> !part {
  // expected-error@+1 {{reads operand 0, which is partial, but is not linear in it}}
  %0 = dovetail.mul %x, %y {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}]>} : (!part, !part) -> !part
  return %0 : !part
}

// -----

// Each rank would add what is complete, too.

dovetail.mesh @mesh = ["y" = 2]
!whole = tensor<4xf32, #dovetail.sharding<@mesh, [{}]>>
!part = tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>

func.func @one_sum(%x: !part, %y: !whole) -> !part {
  // expected-error@+1 {{reads operand 0, which is partial, but is not linear in it}}
  %0 = dovetail.add %x, %y {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}]>} : (!part, !whole) -> !part
  return %0 : !part
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]
!y = tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>
!x = tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["x"]>>
!both = tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y", "x"]>>

func.func @other_sums(%x: !y, %y: !x) -> !both {
  // expected-error@+1 {{reads operand 1, which is partial over other axes than another one}}
  %0 = dovetail.mul %x, %y {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}]>} : (!y, !x) -> !both
  return %0 : !both
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!whole = tensor<4xf32, #dovetail.sharding<@mesh, [{}]>>
!part = tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>

func.func @sum_of_nothing(%x: !whole) -> !part {
  // expected-error@+1 {{has a result that is partial over mesh axis "y", over which it adds nothing up}}
  %0 = dovetail.neg %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}]>} : (!whole) -> !part
  return %0 : !part
}

// -----

// Each index has one owner.

dovetail.mesh @mesh = ["y" = 2]
!windows = tensor<9xf32, #dovetail.sharding<@mesh, [{"y" : (0, 6), (4, 9)}]>>
!part = tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = owner ["y"]>>

func.func @two_owners(%x: !windows, %i: tensor<4xi64>) -> !part {
  // expected-error@+1 {{splits loop 1 into #dovetail.dim_sharding<{"y" : (0, 6), (4, 9)}>, which does not cover it exactly once, but it is a reduction}}
  %0 = dovetail.gather %x, %i {axis = 0 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : (0, 6), (4, 9)}]>} : (!windows, tensor<4xi64>) -> !part
  return %0 : !part
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<9xf32, #dovetail.sharding<@mesh, [{"y" : 0, 5, 9}]>>
!whole = tensor<4xf32, #dovetail.sharding<@mesh, [{}]>>

func.func @not_combined(%x: !cut, %i: tensor<4xi64>) -> !whole {
  // expected-error@+1 {{splits a reduction over mesh axis "y", but its result is not partial over it}}
  %0 = dovetail.gather %x, %i {axis = 0 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 5, 9}]>} : (!cut, tensor<4xi64>) -> !whole
  return %0 : !whole
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<9xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 9}]>>
!part = tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = owner ["y"]>>

func.func @owner_without_elements(%x: !cut, %i: tensor<4xi64>) -> !part {
  // expected-error@+1 {{needs #dovetail.sharding<@mesh, [{"y" : 0, 5, 9}]> of operand 0, but ranks hold}}
  %0 = dovetail.gather %x, %i {axis = 0 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 5, 9}]>} : (!cut, tensor<4xi64>) -> !part
  return %0 : !part
}

// -----

// The negative of zero bits is something else.

dovetail.mesh @mesh = ["y" = 2]
!part = tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = owner ["y"]>>

func.func @no_longer_zero(%x: !part) -> !part {
  // expected-error@+1 {{reads operand 0, which is partial, and no sum that could stay so}}
  %0 = dovetail.neg %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}]>} : (!part) -> !part
  return %0 : !part
}
