// RUN: dovetail-opt %s | dovetail-opt | FileCheck %s
// RUN: dovetail-opt %s --dovetail-choose-shardings | FileCheck %s --check-prefix=DECIDED

// Extents that are known when a program runs: a bound in the shape, and a count.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @bounded
// CHECK-SAME: tensor<100x4x100xf32, #dovetail.bounded<["boxes", _, "boxes"]>>
// DECIDED-LABEL: func.func @bounded
// DECIDED-SAME: (%{{.*}}: tensor<100x4x100xf32, #dovetail.bounded<["boxes", _, "boxes"], #dovetail.sharding<@mesh, [{{.*}}]>>>)
func.func @bounded(%x: tensor<100x4x100xf32, #dovetail.bounded<["boxes", _, "boxes"]>>) -> tensor<100x4x100xf32, #dovetail.bounded<["boxes", _, "boxes"]>> {
  return %x : tensor<100x4x100xf32, #dovetail.bounded<["boxes", _, "boxes"]>>
}

// Cuts are of the bound. An empty name is none.

// CHECK-LABEL: func.func @cut
// CHECK-SAME: tensor<100x4xf32, #dovetail.bounded<["boxes", _], #dovetail.sharding<@mesh, [{"y" : 0, 50, 100}, {}]>>>
func.func @cut(%x: tensor<100x4xf32, #dovetail.bounded<["boxes", ""], #dovetail.sharding<@mesh, [{"y" : 0, 50, 100}, {}]>>>) {
  return
}

// CHECK-LABEL: func.func @empty
// CHECK-SAME: tensor<0xf32, #dovetail.bounded<["none"]>>
func.func @empty(%x: tensor<0xf32, #dovetail.bounded<["none"]>>) {
  return
}

// Who is given another sharding keeps its bounds: a request is met, the sharding of a type is followed.

// DECIDED-LABEL: func.func @requested
// DECIDED-SAME: (%{{.*}}: tensor<8x4xf32, #dovetail.bounded<["n", _], #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}, {}]>>>
// DECIDED-SAME: -> tensor<8x4xf32, #dovetail.bounded<["n", _], #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}, {}]>>>
func.func @requested(%x: tensor<8x4xf32, #dovetail.bounded<["n", _]>> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 3, 8}>, #dovetail.dim_sharding<{}>]}) -> tensor<8x4xf32, #dovetail.bounded<["n", _]>> {
  return %x : tensor<8x4xf32, #dovetail.bounded<["n", _]>>
}

// DECIDED-LABEL: func.func @stated
// DECIDED-SAME: (%{{.*}}: tensor<8xf32, #dovetail.bounded<["n"], #dovetail.sharding<@mesh, [{"y" : 0, 6, 8}]>>>)
func.func @stated(%x: tensor<8xf32, #dovetail.bounded<["n"], #dovetail.sharding<@mesh, [{"y" : 0, 6, 8}]>>>) {
  return
}
