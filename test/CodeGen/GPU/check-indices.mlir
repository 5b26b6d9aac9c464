// RUN: dovetail-opt %s --plan-generate-block-kernels | FileCheck %s
// RUN: dovetail-opt %s --plan-generate-block-kernels --plan-emulate-blocks | FileCheck %s --check-prefix=EMULATED

// A thread computes four elements of a row, which share an index: it is checked once.

// CHECK: gpu.func @rows(
// CHECK-SAME: %[[RECORDS:arg3]]: !llvm.ptr, %arg4: !llvm.ptr, %arg5: i64
// CHECK: plan.check_index %{{.*}}, %{{.*}}, %[[RECORDS]][0] : !llvm.ptr
// CHECK-NOT: plan.check_index
// CHECK: plan.store {{.*}}alignment = 16
// CHECK: gpu.return

// The emulated device looks at where reports go, as at all memory.

// EMULATED: func.func @rows(
// EMULATED: %[[RECORD:.*]] = llvm.getelementptr %[[RECORDS:.*]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i64
// EMULATED: llvm.call %{{.*}}(%{{.*}}, %[[RECORD]], %{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64, i64, i32) -> ()
// EMULATED-NEXT: plan.check_index %{{.*}}, %{{.*}}, %[[RECORDS]][0]
plan.kernel @rows(%table: tensor<100x8xf32>, %indices: tensor<30xi32>) layouts [<[0, 1], [100, 8]>, <[0], [30]>] -> [<[0, 1], [30, 8]>]
    attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64, dovetail.check_indices} : (tensor<100x8xf32>, tensor<30xi32>) -> tensor<30x8xf32>
  plan.yield %0 : tensor<30x8xf32>
}
