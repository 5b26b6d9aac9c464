// RUN: dovetail-opt %s --pass-pipeline='builtin.module(plan-replace-slow-calls{libraries=onednn features=avx2})' | FileCheck %s --check-prefixes=ALL,AVX2
// RUN: dovetail-opt %s --pass-pipeline='builtin.module(plan-replace-slow-calls{libraries=onednn features=avx2,avx512f})' | FileCheck %s --check-prefixes=ALL,AVX512
// RUN: not dovetail-opt %s --pass-pipeline='builtin.module(plan-replace-slow-calls{libraries=none})' 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// oneDNN has no fast implementation of these: kernels of the runtime's own do them.

// UNKNOWN: error: library 'none' is not known

dovetail.mesh @mesh = ["y" = 1]

!x = !plan.ref<tensor<1x64x56x56xf32>>
!w = !plan.ref<tensor<64x64x3x3xf32>>
!g = !plan.ref<tensor<64x4x3x3xf32>>
!d = !plan.ref<tensor<64x1x3x3xf32>>
!k = !plan.ref<tensor<64x64x4x4xf32>>
!l = !plan.ref<tensor<1x64x112x112xf32>>
!h = !plan.ref<tensor<1x64x56x56xbf16>>
!v = !plan.ref<tensor<64x64x3x3xbf16>>

// ALL-LABEL: plan.program @program
plan.program @program mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x64x56x56xf32> <[0, 2, 3, 1]>
  %1 = plan.buffer arena tensor<1x64x56x56xf32> <[0, 2, 3, 1]>
  %2 = plan.buffer persistent tensor<64x64x3x3xf32> <[0, 1, 2, 3]>
  %3 = plan.buffer persistent tensor<64x4x3x3xf32> <[0, 1, 2, 3]>
  %4 = plan.buffer persistent tensor<64x1x3x3xf32> <[0, 1, 2, 3]>
  %5 = plan.buffer persistent tensor<64x64x4x4xf32> <[0, 1, 2, 3]>
  %6 = plan.buffer arena tensor<1x64x112x112xf32> <[0, 2, 3, 1]>
  %7 = plan.buffer arena tensor<1x64x56x56xbf16> <[0, 2, 3, 1]>
  %8 = plan.buffer persistent tensor<64x64x3x3xbf16> <[0, 1, 2, 3]>
  %x = plan.view %0 : !x
  %y = plan.view %1 : !x
  %w = plan.view %2 : !w
  %groups = plan.view %3 : !g
  %depthwise = plan.view %4 : !d
  %even = plan.view %5 : !k
  %large = plan.view %6 : !l
  %half = plan.view %7 : !h
  %halves = plan.view %8 : !v

  // A plain one is the library's.
  // ALL: plan.convolution
  // ALL-NOT: gathered
  // ALL: plan.convolution
  // AVX2-SAME: algorithm = #plan<convolution_algorithm gathered>
  // AVX512-NOT: gathered
  plan.convolution %x, %w -> %y loops [1, 64, 56, 56, 64, 3, 3] reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)]
    : !x, !w -> !x
  // Pads of more than three results.
  plan.convolution %x, %w -> %y loops [1, 64, 56, 56, 64, 3, 3]
    reads [(d0, d4, d2 + 12*d5 - 12, d3 + 12*d6 - 12), (d1, d4, d5, d6)] : !x, !w -> !x
  // Groups of four channels.
  // ALL: plan.convolution
  // ALL-SAME: algorithm = #plan<convolution_algorithm gathered>
  plan.convolution %x, %groups -> %y loops [1, 64, 56, 56, 4, 3, 3]
    reads [(d0, 4*floor((d1) / 4) + d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] : !x, !g -> !x
  // Depthwise: with AVX-512 alone not if it is dilated.
  // ALL: plan.convolution
  // ALL-NOT: gathered
  // ALL: plan.convolution
  // AVX2-NOT: gathered
  // AVX512-SAME: algorithm = #plan<convolution_algorithm gathered>
  plan.convolution %x, %depthwise -> %y loops [1, 64, 56, 56, 1, 3, 3]
    reads [(d0, d1 + d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] : !x, !d -> !x
  plan.convolution %x, %depthwise -> %y loops [1, 64, 56, 56, 1, 3, 3]
    reads [(d0, d1 + d4, d2 + 2*d5 - 2, d3 + 2*d6 - 2), (d1, d4, d5, d6)] : !x, !d -> !x
  // Transposed windows that overlap.
  // ALL: plan.convolution
  // ALL-SAME: algorithm = #plan<convolution_algorithm gathered>
  plan.convolution %x, %even -> %large loops [1, 64, 112, 112, 64, 4, 4]
    reads [(d0, d4, exact((d2 - d5 + 1) / 2), exact((d3 - d6 + 1) / 2)), (d4, d1, d5, d6)] : !x, !k -> !l
  // In other types the library has what it has.
  // ALL: plan.convolution
  // ALL-NOT: gathered
  plan.convolution %half, %halves -> %half loops [1, 64, 56, 56, 64, 3, 3]
    reads [(d0, d4, d2 + 12*d5 - 12, d3 + 12*d6 - 12), (d1, d4, d5, d6)] : !h, !v -> !h
}
