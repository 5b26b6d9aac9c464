// RUN: dovetail-opt %s --split-input-file --verify-diagnostics

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

func.func @number(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{has 2 loops, but 1 loop shardings}}
  %0 = dovetail.exp %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}]>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @mesh(%x: tensor<4xf32>) {
  // expected-error@+1 {{has loops cut over mesh @mesh, which the module does not have}}
  %0 = dovetail.exp %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}]>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

func.func @axis(%x: tensor<4xf32>) {
  // expected-error@+1 {{has loops cut over axis "z", which mesh @mesh lacks}}
  %0 = dovetail.exp %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"z" : 0, 2, 4}]>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

func.func @pieces(%x: tensor<4xf32>) {
  // expected-error@+1 {{has loops with 3 pieces in loop 0, whose axes have 2 coordinates}}
  %0 = dovetail.exp %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 1, 2, 4}]>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

func.func @axis_twice(%a: tensor<4x6xf32>, %b: tensor<6x5xf32>) {
  // expected-error@+1 {{splits two loops over mesh axis "y"}}
  %0 = dovetail.matmul %a, %b {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2, 4}, {}, {"x"+"y" : 0, 1, 2, 3, 6}]>} : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

func.func @outside(%x: tensor<4xf32>) {
  // expected-error@+1 {{runs piece [2, 5) of loop 0, whose extent is 4}}
  %0 = dovetail.exp %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2, 5}]>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

func.func @nobody(%x: tensor<4xf32>) {
  // expected-error@+1 {{splits loop 0 into #dovetail.dim_sharding<{"y" : (0, 2), (3, 4)}>, which leaves elements of its extent of 4 to no rank}}
  %0 = dovetail.exp %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : (0, 2), (3, 4)}]>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

func.func @counted_twice(%x: tensor<24xf32>) {
  // expected-error@+1 {{splits loop 1 into #dovetail.dim_sharding<{"y" : (0, 13), (11, 24)}>, which does not cover it exactly once, but it is a reduction}}
  %0 = dovetail.reduce %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : (0, 13), (11, 24)}]>, kind = #dovetail.reduce_kind<sum>, axes = array<i64: 0>} : (tensor<24xf32>) -> tensor<1xf32>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

func.func @whole(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{splits loop 1, which must stay whole}}
  %0:2 = dovetail.top_k %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 2, 6}]>, axis = 1 : i64, k = 6 : i64, largest = true} : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xi64>)
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

func.func @only_by_itself(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{splits loop 2, over which exchanges cannot combine results of ranks; decompose the operation first}}
  %0:3 = dovetail.moments %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 2, 6}]>, axes = array<i64: 1>} : (tensor<4x6xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

func.func @terms_of_parts(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{splits loop 2, which must stay whole}}
  %0 = dovetail.reduce_parts %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 2, 6}]>, axis = 1 : i64, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 2>} : (tensor<4x6xf32>) -> tensor<4x2xf32>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]
!cut = tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>

func.func @other_result(%x: !cut) {
  // expected-error@+1 {{has loops split as #dovetail.loop_shardings<@mesh, [{"y" : 0, 1, 4}]>, but a result split as #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>}}
  %0 = dovetail.exp %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 1, 4}]>} : (!cut) -> !cut
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]
!cut = tensor<24xf32, #dovetail.sharding<@mesh, [{"y" : 0, 12, 24}]>>
!all = tensor<1xf32, #dovetail.sharding<@mesh, [{}]>>

func.func @not_partial(%x: !cut) {
  // expected-error@+1 {{splits a reduction over mesh axis "y", but its result is not partial over it}}
  %0 = dovetail.reduce %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 12, 24}]>, kind = #dovetail.reduce_kind<sum>, axes = array<i64: 0>} : (!cut) -> !all
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

func.func @not_loops(%x: tensor<4xf32>) {
  // expected-error@+1 {{has dovetail.loops = 3 : i64, which is not a #dovetail.loop_shardings}}
  %0 = dovetail.exp %x {dovetail.loops = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

// expected-error@+1 {{has dovetail.loops, but is not an operation with loops that can be split}}
func.func @function(%x: tensor<4xf32>) attributes {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}]>} {
  return
}
