// RUN: dovetail-opt %s --plan-generate-cpu-kernels | FileCheck %s

// Loops follow the physical order of the result. Rows (loop 2) are split: their range comes at run time, as does the
// range of the loop that threads divide; the other loops and most strides are constants.

// CHECK-LABEL: plan.kernel @elementwise
// CHECK-SAME: parallel_loop = 2
plan.kernel @elementwise(%x: tensor<1x8x20x10xf32>, %s: tensor<8x1x1xf32>)
    layouts [<[0, 2, 3, 1], [1, 8, ?, 10]>, <[0, 1, 2], [8, 1, 1]>] -> [<[0, 2, 3, 1], [1, 8, ?, 10]>]
    attributes {static_loops = array<i64: 0, 1, 3>} {
  %0 = dovetail.mul %x, %s : (tensor<1x8x20x10xf32>, tensor<8x1x1xf32>) -> tensor<1x8x20x10xf32>
  plan.yield %0 : tensor<1x8x20x10xf32>
}

// The maximum and the sum of a row are computed once for each row. The exponentials of whole rows are kept in the result,
// and read back for their sum and for the quotient.

// CHECK-LABEL: plan.kernel @softmax
plan.kernel @softmax(%x: tensor<6x50xf32>) layouts [<[0, 1], [?, 50]>] -> [<[0, 1], [?, 50]>]
    attributes {static_loops = array<i64: 1, 2, 3>} {
  %max = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>} : (tensor<6x50xf32>) -> tensor<6x1xf32>
  %shifted = dovetail.sub %x, %max : (tensor<6x50xf32>, tensor<6x1xf32>) -> tensor<6x50xf32>
  %exp = dovetail.exp %shifted : (tensor<6x50xf32>) -> tensor<6x50xf32>
  %sum = dovetail.reduce %exp {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<6x50xf32>) -> tensor<6x1xf32>
  %0 = dovetail.div %exp, %sum : (tensor<6x50xf32>, tensor<6x1xf32>) -> tensor<6x50xf32>
  plan.yield %0 : tensor<6x50xf32>
}

// A result in the memory of what is read: maximum and sum of a row are there before the first element is written, and
// all accesses are through the result's pointer. Threads do not divide the row, though there are but 6 rows.

// CHECK-LABEL: plan.kernel @softmax_in_place
// CHECK-SAME: parallel_loop = 0
plan.kernel @softmax_in_place(%x: tensor<6x50xf32>) layouts [<[0, 1], [?, 50]>] -> [<[0, 1], [?, 50]>]
    attributes {in_place = 0} {
  %max = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>} : (tensor<6x50xf32>) -> tensor<6x1xf32>
  %shifted = dovetail.sub %x, %max : (tensor<6x50xf32>, tensor<6x1xf32>) -> tensor<6x50xf32>
  %exp = dovetail.exp %shifted : (tensor<6x50xf32>) -> tensor<6x50xf32>
  %sum = dovetail.reduce %exp {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<6x50xf32>) -> tensor<6x1xf32>
  %0 = dovetail.div %exp, %sum : (tensor<6x50xf32>, tensor<6x1xf32>) -> tensor<6x50xf32>
  plan.yield %0 : tensor<6x50xf32>
}

// What is kept takes the place of what is read.

plan.kernel @softmax_kept_in_place(%x: tensor<6x50xf32>) layouts [<[0, 1], [?, 50]>] -> [<[0, 1], [?, 50]>]
    attributes {in_place = 0, static_loops = array<i64: 1, 2, 3>} {
  %max = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>} : (tensor<6x50xf32>) -> tensor<6x1xf32>
  %shifted = dovetail.sub %x, %max : (tensor<6x50xf32>, tensor<6x1xf32>) -> tensor<6x50xf32>
  %exp = dovetail.exp %shifted : (tensor<6x50xf32>) -> tensor<6x50xf32>
  %sum = dovetail.reduce %exp {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<6x50xf32>) -> tensor<6x1xf32>
  %0 = dovetail.div %exp, %sum : (tensor<6x50xf32>, tensor<6x1xf32>) -> tensor<6x50xf32>
  plan.yield %0 : tensor<6x50xf32>
}

// The row is innermost, whatever the memory format. Another operand keeps its pointer.

plan.kernel @column_in_place(%r: tensor<50x6xf32>, %x: tensor<50x6xf32>)
    layouts [<[0, 1], [50, ?]>, <[0, 1], [50, ?]>] -> [<[0, 1], [50, ?]>] attributes {in_place = 1} {
  %sum = dovetail.reduce %x {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>} : (tensor<50x6xf32>) -> tensor<1x6xf32>
  %1 = dovetail.sub %x, %sum : (tensor<50x6xf32>, tensor<1x6xf32>) -> tensor<50x6xf32>
  %0 = dovetail.add %1, %r : (tensor<50x6xf32>, tensor<50x6xf32>) -> tensor<50x6xf32>
  plan.yield %0 : tensor<50x6xf32>
}

// What is reduced becomes innermost, whatever the memory format.

plan.kernel @columns(%x: tensor<50x6xf32>) layouts [<[0, 1], [50, ?]>] -> [<[0, 1], [50, ?]>]
    attributes {static_loops = array<i64: 0, 2, 3>} {
  %max = dovetail.reduce %x {axes = array<i64: 0>, kind = #dovetail.reduce_kind<max>} : (tensor<50x6xf32>) -> tensor<1x6xf32>
  %shifted = dovetail.sub %x, %max : (tensor<50x6xf32>, tensor<1x6xf32>) -> tensor<50x6xf32>
  %exp = dovetail.exp %shifted : (tensor<50x6xf32>) -> tensor<50x6xf32>
  %sum = dovetail.reduce %exp {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>} : (tensor<50x6xf32>) -> tensor<1x6xf32>
  %0 = dovetail.div %exp, %sum : (tensor<50x6xf32>, tensor<1x6xf32>) -> tensor<50x6xf32>
  plan.yield %0 : tensor<50x6xf32>
}

// A contiguous dimension is reduced with scalar accumulators.

plan.kernel @reduce_inner(%x: tensor<20x50xf32>) layouts [<[0, 1], [?, 50]>] -> [<[0, 1], [?, 1]>]
    attributes {static_loops = array<i64: 2>} {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<20x50xf32>) -> tensor<20x1xf32>
  plan.yield %0 : tensor<20x1xf32>
}

// A contiguous dimension that is kept is walked inside of the reduction, over a row of accumulators.

plan.kernel @reduce_outer(%x: tensor<50x20xf32>) layouts [<[0, 1], [?, 20]>] -> [<[0, 1], [1, 20]>] {
  %0 = dovetail.reduce %x {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>} : (tensor<50x20xf32>) -> tensor<1x20xf32>
  plan.yield %0 : tensor<1x20xf32>
}

// A value that is used twice is computed once.

plan.kernel @shared(%x: tensor<9xf32>) layouts [<[0], [9]>] -> [<[0], [9]>, <[0], [9]>] {
  %0 = dovetail.exp %x : (tensor<9xf32>) -> tensor<9xf32>
  %1 = dovetail.mul %0, %0 : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
  plan.yield %0, %1 : tensor<9xf32>, tensor<9xf32>
}

// CHECK-LABEL: module @cpu_kernels

// CHECK: func.func private @elementwise.body(
// CHECK-SAME: %[[X:arg0]]: !llvm.ptr {llvm.noalias}, %[[S:arg1]]: !llvm.ptr {llvm.noalias}, %[[Y:arg2]]: !llvm.ptr {llvm.noalias}, %[[LO:.*]]: index, %[[HI:.*]]: index)
// CHECK: scf.for %[[H:.*]] = %[[LO]] to %[[HI]]
// CHECK-NEXT: %[[ROW:.*]] = arith.muli %[[H]], %c80 overflow<nsw>
// CHECK-NEXT: scf.for %[[W:.*]] = %c0 to %c10
// CHECK-NEXT: %[[COLUMN:.*]] = arith.muli %[[W]], %c8 overflow<nsw>
// CHECK-NEXT: scf.for %[[C:.*]] = %c0 to %c8
// CHECK: plan.load %[[X]][%[[OFFSET:.*]]] : !llvm.ptr -> f32
// CHECK: plan.load %[[S]][%[[C]]] : !llvm.ptr -> f32
// CHECK: arith.mulf {{.*}} fastmath<contract>
// CHECK: plan.store %{{.*}}, %[[Y]][%[[OFFSET]]]
// CHECK: func.func @elementwise(%[[POINTERS:.*]]: !llvm.ptr, %[[NUMBERS:.*]]: !llvm.ptr)
// CHECK: llvm.getelementptr %[[NUMBERS]][4]
// CHECK: llvm.getelementptr %[[NUMBERS]][5]
// CHECK: call @elementwise.body

// CHECK: func.func private @softmax.body(
// CHECK-SAME: %[[X:arg0]]: !llvm.ptr {llvm.noalias}, %[[Y:arg1]]: !llvm.ptr
// CHECK: scf.for %[[ROW:.*]] = %arg2 to %arg3
// CHECK: %[[MAX:.*]] = scf.for {{.*}} iter_args
// CHECK: plan.load %[[X]][
// CHECK: arith.maximumf
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: plan.load %[[X]][%[[AT:.*]]]
// CHECK-NEXT: arith.subf %{{.*}}, %[[MAX]]
// CHECK-NEXT: %[[EXP:.*]] = math.exp
// CHECK-NEXT: plan.store %[[EXP]], %[[Y]][
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args
// CHECK: plan.read_back %[[Y]][
// CHECK-NEXT: arith.addf
// CHECK: scf.for
// CHECK-NOT: math.exp
// CHECK: %[[KEPT:.*]] = plan.read_back %[[Y]][%[[AT:.*]]]
// CHECK-NEXT: %[[QUOTIENT:.*]] = arith.divf %[[KEPT]], %[[SUM]]
// CHECK-NEXT: plan.store %[[QUOTIENT]], %[[Y]][%[[AT]]]
// CHECK-NEXT: }
// CHECK: func.func @softmax(

// CHECK: func.func private @softmax_in_place.body(
// CHECK-SAME: %{{.*}}: !llvm.ptr {llvm.noalias}, %[[Y:arg1]]: !llvm.ptr
// CHECK: scf.for %[[ROW:.*]] = %arg2 to %arg3
// CHECK: %[[MAX:.*]] = scf.for {{.*}} iter_args
// CHECK: plan.load %[[Y]][
// CHECK: arith.maximumf
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args
// CHECK: plan.load %[[Y]][
// CHECK-NEXT: arith.subf %{{.*}}, %[[MAX]]
// CHECK: scf.for %{{.*}} = %arg4 to %arg5
// CHECK-NOT: scf.for
// CHECK: %[[X:.*]] = plan.load %[[Y]][%[[AT:.*]]]
// CHECK-NEXT: arith.subf %[[X]], %[[MAX]]
// CHECK: arith.divf %{{.*}}, %[[SUM]]
// CHECK-NEXT: plan.store %{{.*}}, %[[Y]][%[[AT]]]
// CHECK-NEXT: }

// CHECK: func.func private @softmax_kept_in_place.body(
// CHECK-SAME: %[[X:arg0]]: !llvm.ptr {llvm.noalias}, %[[Y:arg1]]: !llvm.ptr
// CHECK: scf.for %[[ROW:.*]] = %arg2 to %arg3
// CHECK: %[[MAX:.*]] = scf.for {{.*}} iter_args
// CHECK: plan.load %[[Y]][
// CHECK: arith.maximumf
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: plan.load %[[Y]][%[[AT:.*]]]
// CHECK-NEXT: arith.subf %{{.*}}, %[[MAX]]
// CHECK-NEXT: %[[EXP:.*]] = math.exp
// CHECK-NEXT: plan.store %[[EXP]], %[[Y]][
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args
// CHECK: plan.read_back %[[Y]][
// CHECK-NEXT: arith.addf
// CHECK: scf.for
// CHECK-NOT: math.exp
// CHECK: %[[KEPT:.*]] = plan.read_back %[[Y]][%[[AT:.*]]]
// CHECK-NEXT: %[[QUOTIENT:.*]] = arith.divf %[[KEPT]], %[[SUM]]
// CHECK-NEXT: plan.store %[[QUOTIENT]], %[[Y]][%[[AT]]]
// CHECK-NEXT: }

// CHECK: func.func private @column_in_place.body(
// CHECK-SAME: %[[R:arg0]]: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %[[Y:arg2]]: !llvm.ptr {llvm.noalias},
// CHECK: scf.for %{{.*}} = %arg5 to %arg6
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args
// CHECK: plan.load %[[Y]][
// CHECK: scf.for %{{.*}} = %arg3 to %arg4
// CHECK-NOT: scf.for
// CHECK: plan.load %[[Y]][%[[AT:.*]]]
// CHECK-NEXT: arith.subf %{{.*}}, %[[SUM]]
// CHECK: plan.load %[[R]][
// CHECK: plan.store %{{.*}}, %[[Y]][%[[AT]]]

// CHECK: func.func private @columns.body(
// CHECK: scf.for %{{.*}} = %arg2 to %arg3
// CHECK: scf.for %{{.*}} = %c0 to %c50 {{.*}} iter_args
// CHECK: scf.for %{{.*}} = %c0 to %c50 {{.*}} iter_args
// CHECK: scf.for %{{.*}} = %c0 to %c50
// CHECK: plan.store
// CHECK: func.func @columns(

// CHECK: func.func private @reduce_inner.body(
// CHECK: scf.for %{{.*}} = %arg2 to %arg3
// CHECK: scf.for %{{.*}} = %c0 to %c50 step %c1 iter_args
// CHECK: arith.addf {{.*}} fastmath<reassoc,contract>
// CHECK: func.func @reduce_inner(

// CHECK: func.func private @reduce_outer.body(
// CHECK: llvm.alloca
// CHECK: scf.for %{{.*}} = %arg2 to %arg3 step %c1024
// CHECK: scf.for %{{.*}} = %arg4 to %[[LAST:.*]] step %c8
// CHECK: scf.for
// CHECK: llvm.load
// CHECK-COUNT-8: plan.load %arg0
// CHECK-NEXT: arith.addf
// CHECK: llvm.store
// CHECK: scf.for %{{.*}} = %[[LAST]] to %arg5 step %c1
// CHECK: scf.for
// CHECK: scf.for
// CHECK: plan.store
// CHECK: func.func @reduce_outer(

// CHECK: func.func private @shared.body(
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: func.func @shared(
