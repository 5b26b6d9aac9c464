// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-lower-graph{libraries=cufft target=cuda device=true})' | FileCheck %s
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-lower-graph{target=cuda device=true})' | FileCheck %s --check-prefix=KERNELS

// Transforms as a library has them are calls, which do without the table of roots. Others are kernels: inverse ones that
// are scaled, and those of real numbers of which the whole spectrum is wanted.

// KERNELS-NOT: plan.transform

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: plan.program @calls
// CHECK-NOT: tensor<6xf32>
// CHECK: plan.transform %{{.*}} -> %{{.*}} loops [8, 3, 2, 4, 1] reads [(d0, d3, d4)]
// CHECK: plan.transform %{{.*}} -> %{{.*}} loops [8, 3, 2, 8, 2] reads [(d3, d1, d4)]
// CHECK: plan.transform inverse %{{.*}} -> %{{.*}} loops [8, 3, 2, 8, 2] reads [(d3, d1, d4)]
// CHECK: plan.transform inverse %{{.*}} -> %{{.*}} loops [8, 4, 1, 3, 2] reads [(d0, d3, d4)]
// CHECK-NOT: plan.launch
func.func @calls(%x: tensor<8x4x1xf32>) -> tensor<8x4x1xf32> {
  %roots = dovetail.constant dense<[1.0, 0.0, 0.0, -1.0, -1.0, 0.0]> : tensor<6xf32>
  %eight = dovetail.constant dense_resource<roots> : tensor<8xf32>
  %0 = dovetail.dft %x, %roots {axis = 1 : i64, length = 4 : i64, onesided} : (tensor<8x4x1xf32>, tensor<6xf32>) -> tensor<8x3x2xf32>
  %1 = dovetail.dft %0, %eight {axis = 0 : i64, length = 8 : i64} : (tensor<8x3x2xf32>, tensor<8xf32>) -> tensor<8x3x2xf32>
  %2 = dovetail.dft %1, %eight {axis = 0 : i64, length = 8 : i64, inverse, unscaled} : (tensor<8x3x2xf32>, tensor<8xf32>) -> tensor<8x3x2xf32>
  %3 = dovetail.dft %2, %roots {axis = 1 : i64, length = 4 : i64, inverse, onesided, unscaled} : (tensor<8x3x2xf32>, tensor<6xf32>) -> tensor<8x4x1xf32>
  return %3 : tensor<8x4x1xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: plan.program @kernels
// CHECK-NOT: plan.transform
func.func @kernels(%x: tensor<4x2xf32>, %r: tensor<4x1xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %none = dovetail.constant dense<0.0> : tensor<2xf32>
  %0 = dovetail.dft %x, %none {axis = 0 : i64, length = 4 : i64, inverse} : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %1 = dovetail.dft %r, %none {axis = 0 : i64, length = 4 : i64} : (tensor<4x1xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<4x2xf32>
}
