// RUN: dovetail-opt %s --split-input-file --verify-diagnostics

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<4xf32, #dovetail.sharding<@other, [{"y" : 0, 2, 4}]>>
func.func @no_mesh(%a: !cut) -> !cut {
  // expected-error@+1 {{'dovetail.exp' op has a value cut over mesh @other, which the module does not have}}
  %0 = dovetail.exp %a : (!cut) -> !cut
  return %0 : !cut
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<4xf32, #dovetail.sharding<@mesh, [{"z" : 0, 2, 4}]>>
func.func @no_axis(%a: !cut) -> !cut {
  // expected-error@+1 {{'dovetail.exp' op has a value cut over axis "z", which mesh @mesh lacks}}
  %0 = dovetail.exp %a : (!cut) -> !cut
  return %0 : !cut
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!part = tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["z"]>>
func.func @no_partial_axis(%a: !part) -> tensor<4xf32> {
  // expected-error@+1 {{'dovetail.reshard' op has a value cut over axis "z", which mesh @mesh lacks}}
  %0 = dovetail.reshard %a : !part -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]
!cut = tensor<4xf32, #dovetail.sharding<@mesh, [{"y"+"x" : 0, 2, 3, 4}]>>
func.func @pieces(%a: !cut) -> !cut {
  // expected-error@+1 {{'dovetail.exp' op has a value with 3 pieces in dimension 0, whose axes have 4 coordinates}}
  %0 = dovetail.exp %a : (!cut) -> !cut
  return %0 : !cut
}

// -----

// expected-error@+1 {{cuts begin at 0, not at 1; windows are written (1, ...)}}
func.func private @first(%a: tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 1, 2, 4}]>>)
