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
