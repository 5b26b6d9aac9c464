// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time" --split-input-file --verify-diagnostics -o /dev/null

// Ranks that cannot help are named. Here all of the result is wanted everywhere: to bring it together takes longer than
// to compute it.

dovetail.mesh @mesh = ["y" = 2]

!whole = tensor<6x4xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// expected-warning @below {{no operation that takes time is split over axis "y": its ranks repeat the same work}}
func.func @small(%x: !whole) -> (tensor<6x4xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>]}) {
  %0 = dovetail.exp %x : (!whole) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

// -----

// Five ranks, and three rows of which each is one sum.

dovetail.mesh @mesh = ["y" = 5]

// expected-warning @below {{ranks 3, 4 have no work: no operation has enough elements for all ranks}}
func.func @rows(%x: tensor<3x1xf32>) -> tensor<3x1xf32> {
  %0 = dovetail.exp %x : (tensor<3x1xf32>) -> tensor<3x1xf32>
  return %0 : tensor<3x1xf32>
}

// -----

// Three or more ranks are named by the first and the last.

dovetail.mesh @mesh = ["y" = 9]

// expected-warning @below {{ranks 3 to 8 have no work: no operation has enough elements for all ranks}}
func.func @many(%x: tensor<3x1xf32>) -> tensor<3x1xf32> {
  %0 = dovetail.exp %x : (tensor<3x1xf32>) -> tensor<3x1xf32>
  return %0 : tensor<3x1xf32>
}

// -----

// Here it is the cuts that are stated.

dovetail.mesh @mesh = ["y" = 3]

!rows = tensor<9x4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 5, 5, 9}, {}]>>
// expected-warning @below {{rank 1 has no work: --sizes gives them no elements}}
func.func @given(%x: !rows) -> tensor<9x4xf32> {
  %0 = dovetail.exp %x : (!rows) -> tensor<9x4xf32>
  return %0 : tensor<9x4xf32>
}
