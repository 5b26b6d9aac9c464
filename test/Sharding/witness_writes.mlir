// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --mlir-very-unsafe-disable-verifier-on-parsing --dovetail-witness-reads

// The verifier refuses such loops. Were it to let them pass, what lines write would tell.

// A line that stays whole is split: each rank writes all of it.

dovetail.mesh @mesh = ["y" = 2]
!x = tensor<8xf32, #dovetail.sharding<@mesh, [{}]>>
!v = tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>
!i = tensor<4xi64, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>

func.func @outside(%x: !x) -> !v {
  // expected-error @+1 {{writes element (2) of result 1, which rank 0 does not compute}}
  %0:2 = dovetail.top_k %x {axis = 0 : i64, k = 4 : i64, largest = true, dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2, 4}]>} : (!x) -> (!v, !i)
  return %0#0 : !v
}

// -----

// A rank is to compute more of a line than accumulates.

dovetail.mesh @mesh = ["y" = 2]
!x = tensor<8xf32, #dovetail.sharding<@mesh, [{}]>>
!y = tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>>
!s = tensor<2xf32, #dovetail.sharding<@mesh, [{}]>>

func.func @left_out(%x: !x, %s: !s) -> !y {
  // expected-error @+1 {{writes 4 elements of a line of 5 on rank 1}}
  %0 = dovetail.scan %x, %s {axis = 0 : i64, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 4>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : (0, 4), (4, 9)}]>} : (!x, !s) -> !y
  return %0 : !y
}
