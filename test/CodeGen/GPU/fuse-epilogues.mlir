// RUN: dovetail-opt %s --plan-fuse-epilogues --plan-generate-block-kernels | FileCheck %s
// RUN: dovetail-opt %s --plan-split-reductions --plan-fuse-epilogues | FileCheck %s --check-prefix=PARTS

dovetail.mesh @mesh = ["y" = 1]

// Bias, residual and ReLU of each element of a product are done where it is stored, four elements at a time. The kernel of
// the product remains for others.

// CHECK-LABEL: plan.kernel @product(
// CHECK: plan.kernel @product_finish(%[[A:.*]]: tensor<900x100xf32>, %[[B:.*]]: tensor<100x600xf32>, %[[BIAS:.*]]: tensor<600xf32>, %[[R:.*]]: tensor<900x600xf32>)
// CHECK-SAME: layouts [<[0, 1], [900, 100]>, <[0, 1], [100, 600]>, <[0], [600]>, <[0, 1], [900, 600]>] -> [<[0, 1], [900, 600]>]
// CHECK-SAME: loops = [0, 1], steps = [64, 64]
// CHECK-SAME: static_loops = array<i64: 0, 1, 2>
// CHECK-NEXT: %[[P:.*]] = dovetail.matmul %[[A]], %[[B]]
// CHECK-NEXT: %[[S:.*]] = dovetail.add %[[P]], %[[BIAS]]
// CHECK-NEXT: %[[T:.*]] = dovetail.add %[[R]], %[[S]]
// CHECK-NEXT: %[[U:.*]] = dovetail.relu %[[T]]
// CHECK-NEXT: plan.yield %[[U]]
plan.kernel @product(%a: tensor<900x100xf32>, %b: tensor<100x600xf32>) layouts [<[0, 1], [900, 100]>, <[0, 1], [100, 600]>] -> [<[0, 1], [900, 600]>]
    attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.matmul %a, %b : (tensor<900x100xf32>, tensor<100x600xf32>) -> tensor<900x600xf32>
  plan.yield %0 : tensor<900x600xf32>
}
plan.kernel @finish(%x: tensor<900x600xf32>, %bias: tensor<600xf32>, %r: tensor<900x600xf32>) layouts [<[0, 1], [900, 600]>, <[0], [600]>, <[0, 1], [900, 600]>] -> [<[0, 1], [900, 600]>]
    attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.add %x, %bias : (tensor<900x600xf32>, tensor<600xf32>) -> tensor<900x600xf32>
  %1 = dovetail.add %r, %0 : (tensor<900x600xf32>, tensor<900x600xf32>) -> tensor<900x600xf32>
  %2 = dovetail.relu %1 : (tensor<900x600xf32>) -> tensor<900x600xf32>
  plan.yield %2 : tensor<900x600xf32>
}

// The transposed product is another element.

// CHECK-LABEL: plan.kernel @transpose(
plan.kernel @transpose(%x: tensor<900x600xf32>) layouts [<[0, 1], [900, 600]>] -> [<[0, 1], [600, 900]>] attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.transpose %x {permutation = array<i64: 1, 0>} : (tensor<900x600xf32>) -> tensor<600x900xf32>
  plan.yield %0 : tensor<600x900xf32>
}

// A wider result would need more memory beside the operands than was said.

// CHECK-LABEL: plan.kernel @half_product(
// CHECK-LABEL: plan.kernel @widen(
plan.kernel @half_product(%a: tensor<900x100xf16>, %b: tensor<100x600xf16>) layouts [<[0, 1], [900, 100]>, <[0, 1], [100, 600]>] -> [<[0, 1], [900, 600]>]
    attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.matmul %a, %b : (tensor<900x100xf16>, tensor<100x600xf16>) -> tensor<900x600xf16>
  plan.yield %0 : tensor<900x600xf16>
}
plan.kernel @widen(%x: tensor<900x600xf16>) layouts [<[0, 1], [900, 600]>] -> [<[0, 1], [900, 600]>] attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.cast %x {to = f32} : (tensor<900x600xf16>) -> tensor<900x600xf32>
  plan.yield %0 : tensor<900x600xf32>
}

// Parts of a product are added, and then finished.

// PARTS-LABEL: plan.kernel @shared_parts(
// PARTS-LABEL: plan.kernel @shared_relu(%{{.*}}: tensor<{{[0-9]+}}x60x70xf32>)
// PARTS: dovetail.reduce
// PARTS-NEXT: dovetail.relu
plan.kernel @shared(%a: tensor<1x60x9000xf32>, %b: tensor<9000x70xf32>) layouts [<[0, 1, 2], [1, 60, 9000]>, <[0, 1], [9000, 70]>] -> [<[0, 1, 2], [1, 60, 70]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3>} {
  %0 = dovetail.matmul %a, %b : (tensor<1x60x9000xf32>, tensor<9000x70xf32>) -> tensor<1x60x70xf32>
  plan.yield %0 : tensor<1x60x70xf32>
}
plan.kernel @relu(%x: tensor<1x60x70xf32>) layouts [<[0, 1, 2], [1, 60, 70]>] -> [<[0, 1, 2], [1, 60, 70]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.relu %x : (tensor<1x60x70xf32>) -> tensor<1x60x70xf32>
  plan.yield %0 : tensor<1x60x70xf32>
}

!a = !plan.ref<tensor<900x100xf32>>
!b = !plan.ref<tensor<100x600xf32>>
!c = !plan.ref<tensor<900x600xf32>>
!t = !plan.ref<tensor<600x900xf32>>
!bias = !plan.ref<tensor<600xf32>>
!long = !plan.ref<tensor<1x60x9000xf32>>
!longer = !plan.ref<tensor<9000x70xf32>>
!few = !plan.ref<tensor<1x60x70xf32>>
!ha = !plan.ref<tensor<900x100xf16>>
!hb = !plan.ref<tensor<100x600xf16>>
!hc = !plan.ref<tensor<900x600xf16>>

// CHECK: plan.launch @product_finish(%[[X:.*]], %[[Y:.*]], %{{.*}}, %[[READ:.*]]) -> (%{{.*}}) loops [900, 600, 100] {step_name = "Gemm"}
// A value that is an output is in memory.
// CHECK-NEXT: plan.launch @product(%[[X]], %[[Y]]) -> (%[[KEPT:.*]]) loops
// CHECK-NEXT: plan.launch @{{finish.*}}(%[[KEPT]],
// CHECK-NEXT: plan.launch @product(%[[X]], %[[Y]])
// CHECK-NEXT: plan.launch @transpose(
// CHECK: plan.launch @half_product(
// CHECK-NEXT: plan.launch @widen(
// PARTS: plan.launch @shared_parts(%{{.*}}) -> (%[[PARTS:.*]]) loops
// PARTS-NEXT: plan.launch @shared_relu(%[[PARTS]]) -> (%{{.*}}) loops [1, 60, 70, {{[0-9]+}}]
plan.program @main mesh @mesh target "emulated" on device {
  %0 = plan.buffer arena tensor<900x100xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<100x600xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<900x600xf32> <[0, 1]>
  %3 = plan.buffer arena tensor<900x600xf32> <[0, 1]>
  %4 = plan.buffer arena tensor<900x600xf32> <[0, 1]>
  %5 = plan.buffer arena tensor<900x600xf32> <[0, 1]>
  %6 = plan.buffer arena tensor<900x600xf32> <[0, 1]>
  %7 = plan.buffer arena tensor<600xf32> <[0]>
  %8 = plan.buffer arena tensor<600x900xf32> <[0, 1]>
  %9 = plan.buffer arena tensor<900x600xf32> <[0, 1]>
  %10 = plan.buffer arena tensor<1x60x9000xf32> <[0, 1, 2]>
  %11 = plan.buffer arena tensor<9000x70xf32> <[0, 1]>
  %12 = plan.buffer arena tensor<1x60x70xf32> <[0, 1, 2]>
  %13 = plan.buffer arena tensor<1x60x70xf32> <[0, 1, 2]>
  %14 = plan.buffer arena tensor<900x100xf16> <[0, 1]>
  %15 = plan.buffer arena tensor<100x600xf16> <[0, 1]>
  %16 = plan.buffer arena tensor<900x600xf16> <[0, 1]>
  %17 = plan.buffer arena tensor<900x600xf32> <[0, 1]>
  %ha = plan.view %14 : !ha
  %hb = plan.view %15 : !hb
  %hc = plan.view %16 : !hc
  %wide = plan.view %17 : !c
  %a = plan.view %0 : !a
  %b = plan.view %1 : !b
  %r = plan.view %2 : !c
  %p = plan.view %3 : !c
  %y = plan.view %4 : !c
  %q = plan.view %5 : !c
  %z = plan.view %6 : !c
  %bias = plan.view %7 : !bias
  %t = plan.view %8 : !t
  %s = plan.view %9 : !c
  %l1 = plan.view %10 : !long
  %l2 = plan.view %11 : !longer
  %few = plan.view %12 : !few
  %relu = plan.view %13 : !few
  plan.launch @product(%a, %b) -> (%p) loops [900, 600, 100] {step_name = "Gemm"} : (!a, !b) -> (!c)
  plan.launch @finish(%p, %bias, %r) -> (%y) loops [900, 600] {step_name = "Relu"} : (!c, !bias, !c) -> (!c)
  plan.launch @product(%a, %b) -> (%q) loops [900, 600, 100] : (!a, !b) -> (!c)
  plan.launch @finish(%q, %bias, %r) -> (%z) loops [900, 600] : (!c, !bias, !c) -> (!c)
  plan.launch @product(%a, %b) -> (%s) loops [900, 600, 100] : (!a, !b) -> (!c)
  plan.launch @transpose(%s) -> (%t) loops [600, 900] : (!c) -> (!t)
  plan.launch @shared(%l1, %l2) -> (%few) loops [1, 60, 70, 9000] : (!long, !longer) -> (!few)
  plan.launch @relu(%few) -> (%relu) loops [1, 60, 70] : (!few) -> (!few)
  plan.launch @half_product(%ha, %hb) -> (%hc) loops [900, 600, 100] : (!ha, !hb) -> (!hc)
  plan.launch @widen(%hc) -> (%wide) loops [900, 600] : (!hc) -> (!c)
  plan.output "q" %q : !c
}
