// RUN: dovetail-opt %s --plan-generate-cpu-kernels | FileCheck %s

// Neighbours in memory are read along the rows of the result, and written along its columns: tiles of both, read in
// squares that are transposed in registers, and one element at a time at the ends of what squares cover.

// CHECK: func.func private @columns.body(%[[X:arg0]]: {{.*}}, %[[Y:arg1]]: {{.*}}, %[[LO:.*]]: index, %[[HI:.*]]: index)
// CHECK: %[[BUFFER:.*]] = llvm.alloca %{{.*}} x i32
// CHECK: scf.for %[[T0:.*]] = %[[LO]] to %[[HI]] step %c64
// CHECK: scf.for %[[R0:.*]] = %c0 to %c200 step %c64
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %[[R0]] to %{{.*}} step %c8
// CHECK: scf.for %{{.*}} = %[[T0]] to %{{.*}} step %c8
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<8xi32>
// CHECK-COUNT-24: vector.shuffle
// CHECK-COUNT-8: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : vector<8xi32>, !llvm.ptr
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> i32
// CHECK: scf.for %{{.*}} = %[[T0]] to
// CHECK: scf.for %{{.*}} = %[[R0]] to
// CHECK: %[[ELEMENT:.*]] = plan.read_back %[[BUFFER]]
// CHECK: plan.store %[[ELEMENT]], %[[Y]]
// CHECK: } else {
// CHECK: plan.read_back
// CHECK-NOT: plan.load
// CHECK-LABEL: func.func @columns(
plan.kernel @columns(%x: tensor<200x300xf32>) layouts [<[0, 1], [200, 300]>] -> [<[0, 1], [300, 200]>] attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.transpose %x {permutation = array<i64: 1, 0>} : (tensor<200x300xf32>) -> tensor<300x200xf32>
  plan.yield %0 : tensor<300x200xf32>
}

// The three colours of a pixel are read together, and go to three places.

// CHECK: func.func private @colours.body(
// CHECK-NOT: llvm.alloca
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-3: plan.store
// CHECK-LABEL: func.func @colours(
plan.kernel @colours(%x: tensor<30x40x3xui8>) layouts [<[0, 1, 2], [30, 40, 3]>] -> [<[0, 1, 2], [3, 30, 40]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<30x40x3xui8>) -> tensor<3x30x40xui8>
  plan.yield %0 : tensor<3x30x40xui8>
}

// Where neighbours stay neighbours, loops follow the result.

// CHECK: func.func private @rows.body(
// CHECK-NOT: llvm.alloca
// CHECK: plan.load
// CHECK-LABEL: func.func @rows(
plan.kernel @rows(%x: tensor<30x40x50xf32>) layouts [<[0, 1, 2], [30, 40, 50]>] -> [<[0, 1, 2], [40, 30, 50]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<30x40x50xf32>) -> tensor<40x30x50xf32>
  plan.yield %0 : tensor<40x30x50xf32>
}
