// RUN: dovetail-opt %s --plan-generate-cpu-kernels | FileCheck %s

// The third pointer is that of the reports. An index is read, and checked, once for its row. It counts from the end where
// it is negative, and is clamped.

// CHECK: func.func private @rows.body(
// CHECK-SAME: %[[TABLE:arg0]]: !llvm.ptr {llvm.noalias}, %[[INDICES:arg1]]: !llvm.ptr {llvm.noalias}, %[[Y:arg2]]: !llvm.ptr {llvm.noalias}, %[[RECORDS:arg3]]: !llvm.ptr, %[[LO:.*]]: index, %[[HI:.*]]: index)
// CHECK: scf.for %[[I:.*]] = %[[LO]] to %[[HI]]
// CHECK: %[[LOADED:.*]] = plan.load %[[INDICES]]
// CHECK: %[[GIVEN:.*]] = arith.index_cast %[[LOADED]] : i32 to index
// CHECK: %[[BACK:.*]] = arith.addi %[[GIVEN]], %c100
// CHECK: %[[POSITION:.*]] = arith.select %{{.*}}, %[[BACK]], %[[GIVEN]]
// CHECK: %[[WRONG:.*]] = arith.cmpi uge, %[[POSITION]], %c100
// CHECK: plan.check_index %[[WRONG]], %[[GIVEN]], %[[RECORDS]][0]
// CHECK: scf.for
// CHECK-NOT: plan.check_index
// CHECK: plan.store
plan.kernel @rows(%table: tensor<100x8xf32>, %indices: tensor<30xi32>) layouts [<[0, 1], [100, 8]>, <[0], [?]>] -> [<[0, 1], [?, 8]>]
    attributes {static_loops = array<i64: 1, 2>} {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64, dovetail.check_indices} : (tensor<100x8xf32>, tensor<30xi32>) -> tensor<30x8xf32>
  plan.yield %0 : tensor<30x8xf32>
}

// Without the attribute nothing is checked. Where the lookup is split, a rank reads what it has, and gives zero otherwise.

// CHECK: func.func private @owned.body(
// CHECK-SAME: %[[TABLE:arg0]]: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: index, %{{.*}}: index, %[[LO:.*]]: index, %[[HI:.*]]: index)
// CHECK-NOT: plan.check_index
// CHECK: %[[BELOW:.*]] = arith.cmpi sge, %[[AT:.*]], %[[LO]]
// CHECK: %[[ABOVE:.*]] = arith.cmpi slt, %[[AT]], %[[HI]]
// CHECK: %[[OWN:.*]] = arith.andi %[[BELOW]], %[[ABOVE]]
// CHECK: scf.if %[[OWN]]
// CHECK: plan.load %[[TABLE]]
// CHECK: } else {
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: plan.store %[[ZERO]]
// CHECK-LABEL: func.func @owned(
plan.kernel @owned(%table: tensor<100x8xf32>, %indices: tensor<30xi32>) layouts [<[0, 1], [?, 8]>, <[0], [30]>] -> [<[0, 1], [30, 8]>]
    attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64} : (tensor<100x8xf32>, tensor<30xi32>) -> tensor<30x8xf32>
  plan.yield %0 : tensor<30x8xf32>
}

// What two operations check has two places. Of what is split, the owner reports. An innermost loop reports behind it the
// largest of what was wrong, and nothing where that is 0.

// CHECK: func.func private @two.body(
// CHECK: %[[WORST:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}})
// CHECK-NOT: plan.check_index
// CHECK: %[[WRONG:.*]] = arith.cmpi uge, %{{.*}}, %c100
// CHECK: %[[OWN:.*]] = arith.andi
// CHECK: %[[MINE:.*]] = arith.andi %[[WRONG]], %[[OWN]]
// CHECK: %[[C:.*]] = arith.select %[[MINE]], %[[GIVEN:.*]], %{{.*}}
// CHECK-NEXT: %[[D:.*]] = arith.maxui %[[B]], %[[C]]
// CHECK-NEXT: scf.yield %{{.*}}, %[[D]]
// CHECK: %[[IS0:.*]] = arith.cmpi ne, %[[WORST]]#0, %{{.*}}
// CHECK-NEXT: plan.check_index %[[IS0]], %[[WORST]]#0, %{{.*}}[1]
// CHECK-NEXT: %[[IS1:.*]] = arith.cmpi ne, %[[WORST]]#1, %{{.*}}
// CHECK-NEXT: plan.check_index %[[IS1]], %[[WORST]]#1, %{{.*}}[0]
plan.kernel @two(%table: tensor<100xf32>, %indices: tensor<30xi32>, %where: tensor<30xui8>) layouts [<[0], [?]>, <[0], [30]>, <[0], [30]>] -> [<[0], [30]>]
    attributes {static_loops = array<i64: 0, 2>} {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64, dovetail.check_indices} : (tensor<100xf32>, tensor<30xi32>) -> tensor<30xf32>
  %1 = dovetail.gather %0, %where {axis = 0 : i64, dovetail.check_indices} : (tensor<30xf32>, tensor<30xui8>) -> tensor<30xf32>
  plan.yield %1 : tensor<30xf32>
}
