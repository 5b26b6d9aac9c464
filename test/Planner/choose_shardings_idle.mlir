// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time" --split-input-file --verify-diagnostics -o /dev/null

// Ranks that cannot help are named. Here all of the result is wanted everywhere: to bring it together takes longer than
// to compute it.

dovetail.mesh @mesh = ["y" = 2]

!whole = tensor<6x4xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// expected-warning @below {{nothing that takes time is split over axis "y": its ranks repeat each other's work}}
func.func @small(%x: !whole) -> (tensor<6x4xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>]}) {
  %0 = dovetail.exp %x : (!whole) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

// -----

// Five ranks, and three rows of which each is one sum.

dovetail.mesh @mesh = ["y" = 5]

// expected-warning @below {{these ranks idle, as no operation is split into so many parts: 3, 4}}
func.func @rows(%x: tensor<3x1xf32>) -> tensor<3x1xf32> {
  %0 = dovetail.exp %x : (tensor<3x1xf32>) -> tensor<3x1xf32>
  return %0 : tensor<3x1xf32>
}

// -----

// Three or more ranks are named by the first and the last.

dovetail.mesh @mesh = ["y" = 9]

// expected-warning @below {{these ranks idle, as no operation is split into so many parts: 3 to 8}}
func.func @many(%x: tensor<3x1xf32>) -> tensor<3x1xf32> {
  %0 = dovetail.exp %x : (tensor<3x1xf32>) -> tensor<3x1xf32>
  return %0 : tensor<3x1xf32>
}
