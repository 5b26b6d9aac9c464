// RUN: dovetail-opt %s --dovetail-expand-transforms --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// The name of a tensor stays with what computes it: not with the imaginary parts that are added before a transform, nor
// with an inverse whose scale comes behind it.

// CHECK-LABEL: func @real
// CHECK: dovetail.pad {{.*}} loc("node":0:0)
// CHECK: dovetail.dft {{.*}} loc(fused<"spectrum">["node":0:0])
func.func @real(%x: tensor<4x1xf32>, %none: tensor<2xf32>) -> tensor<4x2xf32> {
  %0 = dovetail.dft %x, %none {axis = 0 : i64, length = 4 : i64} : (tensor<4x1xf32>, tensor<2xf32>) -> tensor<4x2xf32> loc(fused<"spectrum">["node":0:0])
  return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: func @inverse
// CHECK: dovetail.dft {{.*}} loc("node":0:0)
// CHECK: dovetail.mul {{.*}} loc(fused<"signal">["node":0:0])
func.func @inverse(%x: tensor<4x2xf32>, %none: tensor<2xf32>) -> tensor<4x2xf32> {
  %0 = dovetail.dft %x, %none {axis = 0 : i64, length = 4 : i64, inverse} : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32> loc(fused<"signal">["node":0:0])
  return %0 : tensor<4x2xf32>
}
