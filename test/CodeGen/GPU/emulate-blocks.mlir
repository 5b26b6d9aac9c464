// RUN: dovetail-opt %s --plan-generate-block-kernels --plan-emulate-blocks | FileCheck %s

// Parameters come in arrays; threads, barriers, shuffles and shared memory are those of the emulated device (see EmulatedAbi.h), which is
// asked before each access to memory.

plan.kernel @long_sum(%x: tensor<20x5000xf32>) layouts [<[0, 1], [?, 5000]>] -> [<[0, 1], [?, 1]>]
    attributes {static_loops = array<i64: 2>} {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<20x5000xf32>) -> tensor<20x1xf32>
  plan.yield %0 : tensor<20x1xf32>
}

// CHECK-LABEL: module @cpu_kernels
// CHECK: func.func @long_sum(%[[POINTERS:.*]]: !llvm.ptr, %[[NUMBERS:.*]]: !llvm.ptr, %[[THREAD:.*]]: !llvm.ptr) {
// CHECK: llvm.getelementptr %[[POINTERS]][1]
// CHECK: llvm.getelementptr %[[THREAD]][0] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK: llvm.getelementptr %[[THREAD]][8]
// CHECK: llvm.getelementptr %[[THREAD]][24]
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %[[THREAD]][32]
// CHECK-NEXT: %[[SHARED:.*]] = llvm.load %[[FIELD]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[CHECK:.*]] = llvm.getelementptr %[[THREAD]][56]
// CHECK: %[[FUNCTION:.*]] = llvm.load %[[CHECK]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.call %[[FUNCTION]](%[[THREAD]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64, i64, i32) -> ()
// CHECK-NEXT: plan.load
// CHECK: %[[SHUFFLE:.*]] = llvm.getelementptr %[[THREAD]][48]
// CHECK: llvm.call %{{.*}}(%[[THREAD]], %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, i64, i32) -> i64
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %[[SHARED]]
// CHECK: %[[SIZE:.*]] = llvm.mlir.constant(4 : i64)
// CHECK: %[[WRITE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK: %[[CHECK:.*]] = llvm.getelementptr %[[THREAD]][64]
// CHECK: %[[FUNCTION:.*]] = llvm.load %[[CHECK]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.call %[[FUNCTION]](%[[THREAD]], %[[SLOT]], %[[SIZE]], %[[WRITE]])
// CHECK: llvm.store %{{.*}}, %[[SLOT]] : f32, !llvm.ptr
// CHECK: %[[BARRIER:.*]] = llvm.getelementptr %[[THREAD]][40]
// CHECK: llvm.call %{{.*}}(%[[THREAD]]) : !llvm.ptr, (!llvm.ptr) -> ()
// CHECK: %[[WRITE:.*]] = llvm.mlir.constant(0 : i32)
// CHECK: %[[CHECK:.*]] = llvm.getelementptr %[[THREAD]][64]
// CHECK: %[[FUNCTION:.*]] = llvm.load %[[CHECK]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.call %[[FUNCTION]](%[[THREAD]], %[[SLOT:[a-z0-9]+]], %{{[a-z0-9]+}}, %[[WRITE]])
// CHECK-NEXT: llvm.load %[[SLOT]] : !llvm.ptr -> f32
// CHECK-NOT: gpu.
