// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --dovetail-verify-partition

// expected-error@+1 {{bounds are of 1 dimensions, but the tensor has 2}}
func.func private @rank(%x: tensor<8x4xf32, #dovetail.bounded<["n"]>>)

// -----

// expected-error@+1 {{no dimension is bounded}}
func.func private @nothing(%x: tensor<8x4xf32, #dovetail.bounded<[_, _]>>)

// -----

// expected-error@+1 {{count "n" has two bounds, 8 and 4}}
func.func private @two(%x: tensor<8x4xf32, #dovetail.bounded<["n", "n"]>>)

// -----

// expected-error@+1 {{count "n" has no bound: the shape must have it}}
func.func private @unbounded(%x: tensor<?xf32, #dovetail.bounded<["n"]>>)

// -----

// Cuts are verified as without bounds.

// expected-error@+1 {{dimension 0 of extent 8 cannot hold the piece [4, 9)}}
func.func private @cuts(%x: tensor<8xf32, #dovetail.bounded<["n"], #dovetail.sharding<@mesh, [{"y" : 0, 4, 9}]>>>)

// -----

// expected-error@+1 {{expected string}}
func.func private @number(%x: tensor<8xf32, #dovetail.bounded<[3]>>)

// -----

// expected-error@+1 {{invalid kind of attribute specified}}
func.func private @encoding(%x: tensor<8xf32, #dovetail.bounded<["n"], "y">>)

// -----

// No operation takes what is bounded yet.

func.func @operand(%x: tensor<4x8xf32, #dovetail.bounded<[_, "n"]>>) {
  // expected-error@+1 {{'dovetail.relu' op has operand 0 of 'tensor<4x8xf32, #dovetail.bounded<[_, "n"]>>', dimension 1 of which is bounded by count "n"; extents that vary from run to run are not supported yet}}
  %0 = dovetail.relu %x : (tensor<4x8xf32, #dovetail.bounded<[_, "n"]>>) -> tensor<4x8xf32>
  return
}

// -----

func.func @result(%x: tensor<8xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{'dovetail.add' op has result 0 of 'tensor<8xf32, #dovetail.bounded<["n"]>>', dimension 0 of which is bounded by count "n"}}
  %0 = dovetail.add %x, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32, #dovetail.bounded<["n"]>>
  return
}

// -----

// A change of sharding is no way to lose bounds.

dovetail.mesh @mesh = ["y" = 2]
!x = tensor<8xf32, #dovetail.bounded<["n"], #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>>>
func.func @reshard(%x: !x) {
  // expected-error@+1 {{'dovetail.reshard' op has operand 0 of}}
  %0 = dovetail.reshard %x : !x -> tensor<8xf32, #dovetail.sharding<@mesh, [{}]>>
  return
}

// -----

// Nor are they lost where no operation is.

dovetail.mesh @mesh = ["y" = 1]

// expected-error@+1 {{'func.func' op has a value of 'tensor<8xf32, #dovetail.bounded<["n"]>>', dimension 0 of which is bounded by count "n"}}
func.func @argument(%x: tensor<8xf32, #dovetail.bounded<["n"]>>) -> tensor<8xf32, #dovetail.bounded<["n"]>> {
  return %x : tensor<8xf32, #dovetail.bounded<["n"]>>
}

// -----

dovetail.mesh @mesh = ["y" = 1]
plan.program @buffer mesh @mesh target "cpu" {
  // expected-error@+1 {{'plan.buffer' op has memory of 'tensor<8xf32, #dovetail.bounded<["n"]>>', dimension 0 of which is bounded by count "n"}}
  %0 = plan.buffer arena tensor<8xf32, #dovetail.bounded<["n"]>> <[0]>
}

// -----

dovetail.mesh @mesh = ["y" = 1]
plan.program @view mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8xf32> <[0]>
  // expected-error@+1 {{'plan.view' op has a value of 'tensor<8xf32, #dovetail.bounded<["n"]>>', dimension 0 of which is bounded by count "n"}}
  %1 = plan.view %0 : !plan.ref<tensor<8xf32, #dovetail.bounded<["n"]>>>
}

// -----

dovetail.mesh @mesh = ["y" = 1]
func.func @storage(%x: tensor<8xf32, #dovetail.bounded<["n"]>>) {
  // expected-error@+1 {{'plan.storage' op has a value of 'tensor<8xf32, #dovetail.bounded<["n"]>>', dimension 0 of which is bounded by count "n"}}
  plan.storage arena tensor<8xf32, #dovetail.bounded<["n"]>> <[0]> of %x : tensor<8xf32, #dovetail.bounded<["n"]>>
  return
}

// -----

plan.kernel @kernel(%x: tensor<8xf32>) layouts [<[0], [8]>] -> [<[0], [8]>] attributes {static_loops = array<i64: 0>} {
  %0 = dovetail.relu %x : (tensor<8xf32>) -> tensor<8xf32>
  plan.yield %0 : tensor<8xf32>
}

// expected-error@+1 {{'plan.kernel' op has argument 0 of 'tensor<8xf32, #dovetail.bounded<["n"]>>', dimension 0 of which is bounded by count "n"}}
plan.kernel @bounded(%x: tensor<8xf32, #dovetail.bounded<["n"]>>, %y: tensor<8xf32>) layouts [<[0], [8]>, <[0], [8]>] -> [<[0], [8]>] attributes {static_loops = array<i64: 0>} {
  %0 = dovetail.relu %y : (tensor<8xf32>) -> tensor<8xf32>
  plan.yield %0 : tensor<8xf32>
}

// -----

// Arguments that are no tensors have no extents.

dovetail.mesh @mesh = ["y" = 2]

// expected-error@+1 {{'func.func' op has a value of 'tensor<8xf32, #dovetail.bounded<["n"]>>', dimension 0 of which is bounded by count "n"}}
func.func @behind(%i: index, %x: tensor<8xf32, #dovetail.bounded<["n"]>>) -> tensor<8xf32, #dovetail.bounded<["n"]>> {
  return %x : tensor<8xf32, #dovetail.bounded<["n"]>>
}
