// RUN: dovetail-opt %s --plan-split-reductions | FileCheck %s
// RUN: dovetail-opt %s --plan-split-reductions --plan-generate-block-kernels | FileCheck %s --check-prefix=CODE
// RUN: dovetail-opt %s --plan-split-reductions=busy-blocks=1 | FileCheck %s --check-prefix=FEW

dovetail.mesh @mesh = ["y" = 2]

// One sum of many terms. Each of 61 blocks adds a part of them, and then the parts are added. Parts of f16 are f32.

// CHECK-LABEL: plan.kernel @sum(%{{.*}}: tensor<61x1xf32>) layouts [<[0, 1], [61, 1]>] -> [<[0, 1], [1, 1]>]
// CHECK-SAME: static_loops = array<i64: 0, 1, 2>
// CHECK-NEXT: %[[SUM:.*]] = dovetail.reduce %{{.*}} {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>} : (tensor<61x1xf32>) -> tensor<1x1xf32>
// CHECK-NEXT: %[[ROUNDED:.*]] = dovetail.cast %[[SUM]]
// CHECK-NEXT: plan.yield %[[ROUNDED]] : tensor<1x1xf16>
// CHECK-LABEL: plan.kernel @sum_parts(%{{.*}}: tensor<500x500xf16>) layouts [<[0, 1], [?, 500]>] -> [<[0, 1], [61, 1]>]
// CHECK-NEXT: dovetail.abs
// CHECK-NEXT: %[[SUM:.*]] = dovetail.reduce
// CHECK-NEXT: %[[PARTS:.*]] = plan.parts %[[SUM]] {dim = 0 : i64} : tensor<1x1xf16> -> tensor<61x1xf32>
// CHECK-NEXT: plan.yield %[[PARTS]]
// FEW-NOT: plan.parts
plan.kernel @sum(%x: tensor<500x500xf16>) layouts [<[0, 1], [?, 500]>] -> [<[0, 1], [1, 1]>] attributes {static_loops = array<i64: 0, 1, 3>} {
  %0 = dovetail.abs %x : (tensor<500x500xf16>) -> tensor<500x500xf16>
  %1 = dovetail.reduce %0 {axes = array<i64: 0, 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<500x500xf16>) -> tensor<1x1xf16>
  plan.yield %1 : tensor<1x1xf16>
}

// Columns: the parts of one number are neighbours.

// CHECK-LABEL: plan.kernel @columns(%{{.*}}: tensor<2x64x70x1xf32>) layouts [<[2, 0, 3, 1], [2, 64, 70, 1]>]
// CHECK-LABEL: plan.kernel @columns_parts
plan.kernel @columns(%x: tensor<2x64x90x100xf32>) layouts [<[0, 2, 3, 1], [2, 64, 90, 100]>] -> [<[0, 2, 3, 1], [2, 64, 1, 1]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4, 5>} {
  %0 = dovetail.reduce %x {axes = array<i64: 2, 3>, kind = #dovetail.reduce_kind<max>} : (tensor<2x64x90x100xf32>) -> tensor<2x64x1x1xf32>
  plan.yield %0 : tensor<2x64x1x1xf32>
}

// Enough rows to keep all blocks busy, and a row that is done at once.

// CHECK-LABEL: plan.kernel @many(
// CHECK-NOT: plan.parts
// CHECK-LABEL: plan.kernel @short(
// CHECK-NOT: plan.parts
plan.kernel @many(%x: tensor<900x20000xf32>) layouts [<[0, 1], [900, 20000]>] -> [<[0, 1], [900, 1]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<900x20000xf32>) -> tensor<900x1xf32>
  plan.yield %0 : tensor<900x1xf32>
}
plan.kernel @short(%x: tensor<1x9000xf32>) layouts [<[0, 1], [1, 9000]>] -> [<[0, 1], [1, 1]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<1x9000xf32>) -> tensor<1x1xf32>
  plan.yield %0 : tensor<1x1xf32>
}

// The softmax of a row is not a reduction, although it has two inside.

// CHECK-LABEL: plan.kernel @softmax(
// CHECK-NOT: plan.parts
plan.kernel @softmax(%x: tensor<1x60000xf32>) layouts [<[0, 1], [1, 60000]>] -> [<[0, 1], [1, 60000]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>} : (tensor<1x60000xf32>) -> tensor<1x1xf32>
  %1 = dovetail.sub %x, %0 : (tensor<1x60000xf32>, tensor<1x1xf32>) -> tensor<1x60000xf32>
  plan.yield %1 : tensor<1x60000xf32>
}

// Parts of moments are moments.

// CHECK-LABEL: plan.kernel @moments(
// CHECK-SAME: %[[C:.*]]: tensor<2x7x1xf32>, %[[M:.*]]: tensor<2x7x1xf32>, %[[D:.*]]: tensor<2x7x1xf32>) layouts [<[1, 0, 2], [2, 7, 1]>, <[1, 0, 2], [2, 7, 1]>, <[1, 0, 2], [2, 7, 1]>]
// CHECK-NEXT: dovetail.moments %[[C]], %[[M]], %[[D]] {axes = array<i64: 1>}
// CHECK-LABEL: plan.kernel @moments_parts(
// CHECK: %[[C:.*]], %[[M:.*]], %[[D:.*]] = dovetail.moments
// CHECK-NEXT: plan.parts %[[C]] {dim = 1 : i64} : tensor<2x1x1xf32> -> tensor<2x7x1xf32>
// CHECK-NEXT: plan.parts %[[M]]
// CHECK-NEXT: plan.parts %[[D]]
plan.kernel @moments(%x: tensor<2x300x100xf32>) layouts [<[0, 1, 2], [2, 300, 100]>] -> [<[0, 1, 2], [2, 1, 1]>, <[0, 1, 2], [2, 1, 1]>, <[0, 1, 2], [2, 1, 1]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0:3 = dovetail.moments %x {axes = array<i64: 1, 2>} : (tensor<2x300x100xf32>) -> (tensor<2x1x1xf32>, tensor<2x1x1xf32>, tensor<2x1x1xf32>)
  plan.yield %0#0, %0#1, %0#2 : tensor<2x1x1xf32>, tensor<2x1x1xf32>, tensor<2x1x1xf32>
}

// The buffer of the parts holds those of the elements that a rank computes. Here all ranks add some terms to one sum.

// CHECK: plan.program
// CHECK: %[[BUFFER:.*]] = plan.buffer arena tensor<61x1xf32, #dovetail.sharding<@mesh, [{}, {}]>> <[0, 1]>
// CHECK: %[[PARTS:.*]] = plan.view %[[BUFFER]]
// CHECK: plan.launch @sum_parts(%[[X:.*]]) -> (%[[PARTS]]) loops [61, 1, 500 by <{"y" : 0, 100, 500}>, 500] {step_name = "total"}
// CHECK-NEXT: plan.launch @sum(%[[PARTS]]) -> (%{{.*}}) loops [1, 1, 61] {step_name = "total"}
plan.program @main mesh @mesh target "emulated" on device {
  %0 = plan.buffer arena tensor<500x500xf16, #dovetail.sharding<@mesh, [{"y" : 0, 100, 500}, {}]>> <[0, 1]>
  %1 = plan.view %0 : !plan.ref<tensor<500x500xf16, #dovetail.sharding<@mesh, [{"y" : 0, 100, 500}, {}]>>>
  %2 = plan.buffer arena tensor<1x1xf16, #dovetail.sharding<@mesh, [{}, {}]>> <[0, 1]>
  %3 = plan.view %2 : !plan.ref<tensor<1x1xf16, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y"]>>>
  %4 = plan.buffer arena tensor<2x64x90x100xf32> <[0, 2, 3, 1]>
  %5 = plan.view %4 : !plan.ref<tensor<2x64x90x100xf32>>
  %6 = plan.buffer arena tensor<2x64x1x1xf32> <[0, 2, 3, 1]>
  %7 = plan.view %6 : !plan.ref<tensor<2x64x1x1xf32>>
  %8 = plan.buffer arena tensor<900x20000xf32> <[0, 1]>
  %9 = plan.view %8 : !plan.ref<tensor<900x20000xf32>>
  %10 = plan.buffer arena tensor<900x1xf32> <[0, 1]>
  %11 = plan.view %10 : !plan.ref<tensor<900x1xf32>>
  %12 = plan.buffer arena tensor<1x9000xf32> <[0, 1]>
  %13 = plan.view %12 : !plan.ref<tensor<1x9000xf32>>
  %14 = plan.buffer arena tensor<1x1xf32> <[0, 1]>
  %15 = plan.view %14 : !plan.ref<tensor<1x1xf32>>
  %16 = plan.buffer arena tensor<1x60000xf32> <[0, 1]>
  %17 = plan.view %16 : !plan.ref<tensor<1x60000xf32>>
  %18 = plan.buffer arena tensor<1x60000xf32> <[0, 1]>
  %19 = plan.view %18 : !plan.ref<tensor<1x60000xf32>>
  %20 = plan.buffer arena tensor<2x300x100xf32> <[0, 1, 2]>
  %21 = plan.view %20 : !plan.ref<tensor<2x300x100xf32>>
  %22 = plan.buffer arena tensor<2x1x1xf32> <[0, 1, 2]>
  %23 = plan.view %22 : !plan.ref<tensor<2x1x1xf32>>
  %24 = plan.buffer arena tensor<2x1x1xf32> <[0, 1, 2]>
  %25 = plan.view %24 : !plan.ref<tensor<2x1x1xf32>>
  %26 = plan.buffer arena tensor<2x1x1xf32> <[0, 1, 2]>
  %27 = plan.view %26 : !plan.ref<tensor<2x1x1xf32>>
  plan.launch @sum(%1) -> (%3) loops [1, 1, 500 by <{"y" : 0, 100, 500}>, 500] {step_name = "total"}
      : (!plan.ref<tensor<500x500xf16, #dovetail.sharding<@mesh, [{"y" : 0, 100, 500}, {}]>>>)
      -> (!plan.ref<tensor<1x1xf16, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y"]>>>)
  plan.launch @columns(%5) -> (%7) loops [2, 64, 1, 1, 90, 100] : (!plan.ref<tensor<2x64x90x100xf32>>) -> (!plan.ref<tensor<2x64x1x1xf32>>)
  plan.launch @many(%9) -> (%11) loops [900, 1, 20000] : (!plan.ref<tensor<900x20000xf32>>) -> (!plan.ref<tensor<900x1xf32>>)
  plan.launch @short(%13) -> (%15) loops [1, 1, 9000] : (!plan.ref<tensor<1x9000xf32>>) -> (!plan.ref<tensor<1x1xf32>>)
  plan.launch @softmax(%17) -> (%19) loops [1, 60000, 60000] : (!plan.ref<tensor<1x60000xf32>>) -> (!plan.ref<tensor<1x60000xf32>>)
  plan.launch @moments(%21) -> (%23, %25, %27) loops [2, 1, 1, 300, 100]
      : (!plan.ref<tensor<2x300x100xf32>>) -> (!plan.ref<tensor<2x1x1xf32>>, !plan.ref<tensor<2x1x1xf32>>, !plan.ref<tensor<2x1x1xf32>>)
}

// A part of n terms goes from n * p / 61 to n * (p + 1) / 61, whatever n is on a rank.

// CODE-LABEL: gpu.func @sum_parts(
// CODE: %[[COUNT:.*]] = arith.muli %{{.*}}, %c500
// CODE: scf.for
// CODE: %[[PART:.*]] = arith.index_cast %{{.*}} : i32 to index
// CODE: %[[FIRST:.*]] = arith.muli %[[COUNT]], %[[PART]]
// CODE: %[[NEXT:.*]] = arith.addi %[[PART]], %c1
// CODE: arith.muli %[[COUNT]], %[[NEXT]]
// CODE: scf.for %{{.*}} step %c256_i32 iter_args
// CODE: gpu.barrier
// CODE: plan.store
