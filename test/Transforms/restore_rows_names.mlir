// RUN: dovetail-opt %s --dovetail-restore-rows --mlir-print-debuginfo --mlir-print-local-scope --split-input-file | FileCheck %s

// Tensors of the model keep their names: the one that a reshape gave is what is computed now, and one that has another
// reader is reshaped for it. What is flat and not read elsewhere is no more.

// CHECK-LABEL: func @names
// CHECK: dovetail.matmul {{.*}} -> tensor<2x3x4xf32> loc("matmul")
// CHECK: dovetail.add {{.*}} -> tensor<2x3x4xf32> loc(fused<"images">["add"])
// CHECK: return
func.func @names(%arg0: tensor<2x3x8xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %0 = dovetail.reshape %arg0 : (tensor<2x3x8xf32>) -> tensor<6x8xf32> loc(fused<"flat">["reshape"])
  %1 = dovetail.matmul %0, %arg1 : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32> loc(fused<"product">["matmul"])
  %2 = dovetail.add %1, %arg2 : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32> loc(fused<"sum">["add"])
  %3 = dovetail.reshape %2 : (tensor<6x4xf32>) -> tensor<2x3x4xf32> loc(fused<"images">["back"])
  return %3 : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: func @reader
// CHECK: dovetail.matmul {{.*}} -> tensor<2x3x4xf32> loc("matmul")
// CHECK: dovetail.reshape {{.*}} -> tensor<6x4xf32> loc(fused<"product">["matmul"])
// CHECK: dovetail.relu {{.*}} -> tensor<2x3x4xf32> loc(fused<"images">["relu"])
func.func @reader(%arg0: tensor<2x3x8xf32>, %arg1: tensor<8x4xf32>) -> (tensor<6x4xf32>, tensor<2x3x4xf32>) {
  %0 = dovetail.reshape %arg0 : (tensor<2x3x8xf32>) -> tensor<6x8xf32> loc("reshape")
  %1 = dovetail.matmul %0, %arg1 : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32> loc(fused<"product">["matmul"])
  %2 = dovetail.relu %1 : (tensor<6x4xf32>) -> tensor<6x4xf32> loc(fused<"flat">["relu"])
  %3 = dovetail.reshape %2 : (tensor<6x4xf32>) -> tensor<2x3x4xf32> loc(fused<"images">["back"])
  return %1, %3 : tensor<6x4xf32>, tensor<2x3x4xf32>
}
