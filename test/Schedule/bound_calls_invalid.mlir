// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(plan-bound-calls{libraries=cudnn})'
// RUN: not dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(plan-bound-calls{libraries=cudnn,magic})' 2>&1 | FileCheck %s

// Libraries are those that are known.

// CHECK: library 'magic' is not known; the libraries are onednn, cudnn, cublaslt

// -----

// What calls take depends on what ranks compute: they are those of one mesh.

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{a module has one mesh, but this is the second}}
dovetail.mesh @other = ["y" = 3]

// -----

// A library may do what another one of the target does not.

dovetail.mesh @mesh = ["y" = 1]

plan.program @product mesh @mesh target "cuda" on device {
  %0 = plan.buffer arena tensor<4x4xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<4x4xf32> <[0, 1]>
  %a = plan.view %0 : !plan.ref<tensor<4x4xf32>>
  %b = plan.view %1 : !plan.ref<tensor<4x4xf32>>
  // expected-error@+1 {{is a call whose memory no library of the target knows}}
  plan.matmul %a, %a -> %b loops [4, 4, 4] reads [(d0, d2), (d2, d1)] : !plan.ref<tensor<4x4xf32>>, !plan.ref<tensor<4x4xf32>> -> !plan.ref<tensor<4x4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 1]

plan.program @pool mesh @mesh target "cuda" on device {
  %0 = plan.buffer arena tensor<1x4x4x4xf32> <[0, 2, 3, 1]>
  %1 = plan.buffer arena tensor<1x4x4x4xf32> <[0, 2, 3, 1]>
  %x = plan.view %0 : !plan.ref<tensor<1x4x4x4xf32>>
  %y = plan.view %1 : !plan.ref<tensor<1x4x4x4xf32>>
  // expected-error@+1 {{is a call whose memory no library of the target knows}}
  plan.pool <max> %x -> %y loops [1, 4, 4, 4, 1, 1] reads [(d0, d1, d2 + d4, d3 + d5)]
    : !plan.ref<tensor<1x4x4x4xf32>> -> !plan.ref<tensor<1x4x4x4xf32>>
}
