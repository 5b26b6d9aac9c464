// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(plan-divide-calls)' | FileCheck %s

// Channels last, the rows of one image are pieces of memory; of several images, these are. What takes a microsecond is
// not divided, nor what follows from constants, nor what the runtime's own kernels do, which divide themselves.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @convolutions
plan.program @convolutions mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x32x64x64xf32> <[0, 2, 3, 1]>
  %1 = plan.buffer constant tensor<32x32x3x3xf32> <[0, 1, 2, 3]> = dense<2.0> : tensor<32x32x3x3xf32>
  %2 = plan.buffer arena tensor<1x32x64x64xf32> <[0, 2, 3, 1]>
  %3 = plan.buffer arena tensor<8x32x64x64xf32> <[0, 2, 3, 1]>
  %4 = plan.buffer arena tensor<8x32x64x64xf32> <[0, 2, 3, 1]>
  %5 = plan.buffer arena tensor<1x32x4x4xf32> <[0, 2, 3, 1]>
  %6 = plan.buffer arena tensor<1x32x4x4xf32> <[0, 2, 3, 1]>
  %x = plan.view %0 : !plan.ref<tensor<1x32x64x64xf32>>
  %w = plan.view %1 : !plan.ref<tensor<32x32x3x3xf32>>
  %y = plan.view %2 : !plan.ref<tensor<1x32x64x64xf32>>
  %xs = plan.view %3 : !plan.ref<tensor<8x32x64x64xf32>>
  %ys = plan.view %4 : !plan.ref<tensor<8x32x64x64xf32>>
  %a = plan.view %5 : !plan.ref<tensor<1x32x4x4xf32>>
  %b = plan.view %6 : !plan.ref<tensor<1x32x4x4xf32>>
  plan.prologue {
    // CHECK: plan.convolution
    // CHECK-NOT: division
    plan.convolution %x, %w -> %y loops [1, 32, 64, 64, 32, 3, 3]
      reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)]
      : !plan.ref<tensor<1x32x64x64xf32>>, !plan.ref<tensor<32x32x3x3xf32>> -> !plan.ref<tensor<1x32x64x64xf32>>
  }
  // CHECK: plan.convolution {{.*}} loops [1, 32, 64, 64, 32, 3, 3] {{.*}}division = #plan.division<loop = 2, step = 1, grain = {{[1-9]}}>
  plan.convolution %x, %w -> %y loops [1, 32, 64, 64, 32, 3, 3]
    reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)]
    : !plan.ref<tensor<1x32x64x64xf32>>, !plan.ref<tensor<32x32x3x3xf32>> -> !plan.ref<tensor<1x32x64x64xf32>>
  // CHECK: plan.convolution {{.*}} loops [8, 32, 64, 64, 32, 3, 3] {{.*}}division = #plan.division<loop = 0, step = 1, grain = 1>
  plan.convolution %xs, %w -> %ys loops [8, 32, 64, 64, 32, 3, 3]
    reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)]
    : !plan.ref<tensor<8x32x64x64xf32>>, !plan.ref<tensor<32x32x3x3xf32>> -> !plan.ref<tensor<8x32x64x64xf32>>
  // CHECK: plan.convolution {{.*}} {algorithm = #plan<convolution_algorithm winograd>}
  plan.convolution %x, %w -> %y loops [1, 32, 64, 64, 32, 3, 3]
    reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] {algorithm = #plan<convolution_algorithm winograd>}
    : !plan.ref<tensor<1x32x64x64xf32>>, !plan.ref<tensor<32x32x3x3xf32>> -> !plan.ref<tensor<1x32x64x64xf32>>
  // CHECK: plan.convolution {{.*}} loops [1, 32, 4, 4, 32, 3, 3]
  // CHECK-NOT: division
  plan.convolution %a, %w -> %b loops [1, 32, 4, 4, 32, 3, 3]
    reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)]
    : !plan.ref<tensor<1x32x4x4xf32>>, !plan.ref<tensor<32x32x3x3xf32>> -> !plan.ref<tensor<1x32x4x4xf32>>
}

// -----

// A product of a few rows is divided along its columns, each of which has weights of its own; of many rows, along these.
// Transposed convolutions are cut where their windows begin.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @products
plan.program @products mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x1024xf32> <[0, 1]>
  %1 = plan.buffer constant tensor<1024x4096xf32> <[0, 1]> = dense<2.0> : tensor<1024x4096xf32>
  %2 = plan.buffer arena tensor<1x4096xf32> <[0, 1]>
  %3 = plan.buffer arena tensor<2048x128xf32> <[0, 1]>
  %4 = plan.buffer constant tensor<128x64xf32> <[0, 1]> = dense<2.0> : tensor<128x64xf32>
  %5 = plan.buffer arena tensor<2048x64xf32> <[0, 1]>
  %6 = plan.buffer arena tensor<1x32x64x64xf32> <[0, 2, 3, 1]>
  %7 = plan.buffer constant tensor<32x16x2x2xf32> <[0, 1, 2, 3]> = dense<2.0> : tensor<32x16x2x2xf32>
  %8 = plan.buffer arena tensor<1x16x128x128xf32> <[0, 2, 3, 1]>
  %a = plan.view %0 : !plan.ref<tensor<1x1024xf32>>
  %b = plan.view %1 : !plan.ref<tensor<1024x4096xf32>>
  %c = plan.view %2 : !plan.ref<tensor<1x4096xf32>>
  %d = plan.view %3 : !plan.ref<tensor<2048x128xf32>>
  %e = plan.view %4 : !plan.ref<tensor<128x64xf32>>
  %f = plan.view %5 : !plan.ref<tensor<2048x64xf32>>
  %x = plan.view %6 : !plan.ref<tensor<1x32x64x64xf32>>
  %w = plan.view %7 : !plan.ref<tensor<32x16x2x2xf32>>
  %y = plan.view %8 : !plan.ref<tensor<1x16x128x128xf32>>
  // CHECK: plan.matmul {{.*}}division = #plan.division<loop = 1, step = 64,
  plan.matmul %a, %b -> %c loops [1, 4096, 1024] reads [(d0, d2), (d2, d1)]
    : !plan.ref<tensor<1x1024xf32>>, !plan.ref<tensor<1024x4096xf32>> -> !plan.ref<tensor<1x4096xf32>>
  // CHECK: plan.matmul {{.*}}division = #plan.division<loop = 0, step = 1,
  plan.matmul %d, %e -> %f loops [2048, 64, 128] reads [(d0, d2), (d2, d1)]
    : !plan.ref<tensor<2048x128xf32>>, !plan.ref<tensor<128x64xf32>> -> !plan.ref<tensor<2048x64xf32>>
  // CHECK: plan.convolution {{.*}}division = #plan.division<loop = 2, step = 2,
  plan.convolution %x, %w -> %y loops [1, 16, 128, 128, 32, 2, 2]
    reads [(d0, d4, exact((d2 - d5) / 2), exact((d3 - d6) / 2)), (d4, d1, d5, d6)]
    : !plan.ref<tensor<1x32x64x64xf32>>, !plan.ref<tensor<32x16x2x2xf32>> -> !plan.ref<tensor<1x16x128x128xf32>>
}
