// RUN: dovetail-opt %s --pass-pipeline='builtin.module(dovetail-choose-shardings{objective=time cluster=%S/Inputs/unequal.json})' --split-input-file | FileCheck %s
// RUN: dovetail-opt %s --pass-pipeline='builtin.module(dovetail-choose-shardings{objective=time most-shares=1,0.25,1})' --split-input-file | FileCheck %s --check-prefix=LIMITED
// RUN: not dovetail-opt %s --pass-pipeline='builtin.module(dovetail-choose-shardings{most-shares=1})' --split-input-file 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: dovetail-opt %s --pass-pipeline='builtin.module(dovetail-choose-shardings{objective=time cluster=%S/Inputs/unequal.json slowness=1,2,1})' --split-input-file | FileCheck %s --check-prefix=SLOWER

// FEW: error: 'most-shares' and 'slowness' take a number for each of 2 ranks

// The second device has half the speed at products and a tenth at kernels. A product is cut 2 : 1; 3 : 1 and 4 : 1 if
// that rank may have a quarter, or takes twice as long as estimated.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @product
// CHECK: = dovetail.matmul
// CHECK-SAME: {"y" : 0, {{68[2-5]}}, 1024}
// SLOWER-LABEL: func.func @product
// SLOWER: = dovetail.matmul
// SLOWER-SAME: {"y" : 0, {{8(19|20|21|22)}}, 1024}
// LIMITED-LABEL: func.func @product
// LIMITED: = dovetail.matmul
// LIMITED-SAME: {"y" : 0, 768, 1024}
func.func @product(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %w = dovetail.constant dense<1.0> : tensor<1024x1024xf32>
  %0 = dovetail.matmul %x, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}

// -----

// A kernel is cut 10 : 1.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @kernel
// CHECK: = dovetail.exp
// CHECK-SAME: {"y" : 0, 931, 1024}
func.func @kernel(%x: tensor<1024x4096xf32>) -> tensor<1024x4096xf32> {
  %0 = dovetail.exp %x : (tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  return %0 : tensor<1024x4096xf32>
}

// -----

// A third device that takes longer for one element than the others for all has nothing.

dovetail.mesh @mesh = ["y" = 3]

// CHECK-LABEL: func.func @nothing
// CHECK: = dovetail.exp
// CHECK-SAME: {"y" : 0, 931, 1024, 1024}
// LIMITED-LABEL: func.func @nothing
// LIMITED: = dovetail.exp
// LIMITED-SAME: {"y" : 0, 384, 640, 1024}
func.func @nothing(%x: tensor<1024x4096xf32>) -> tensor<1024x4096xf32> {
  %0 = dovetail.exp %x : (tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  return %0 : tensor<1024x4096xf32>
}
