// RUN: dovetail-opt %s --pass-pipeline='builtin.module(plan-bound-calls{libraries=cudnn,cublaslt,cufft})' | FileCheck %s

// Convolutions may take 32 MiB, as much as their weights, and as much as what they read and write (at most 256 MiB of
// that); transforms as much as their lines in complex numbers, and 8 times that or 16 MiB more. Ranks without rows take
// nothing.

dovetail.mesh @mesh = ["y" = 3]
!x = !plan.ref<tensor<1x32x12x20xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (4, 4), (3, 12)}, {}]>>>
!y = !plan.ref<tensor<1x64x12x20xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 4, 12}, {}]>>>

// CHECK-LABEL: plan.program @calls
plan.program @calls mesh @mesh target "cuda" on device {
  %0 = plan.buffer arena tensor<1x32x12x20xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (4, 4), (3, 12)}, {}]>> <[0, 2, 3, 1]>
  %1 = plan.buffer constant tensor<64x32x3x3xf32> <[0, 1, 2, 3]> = dense<2.0> : tensor<64x32x3x3xf32>
  %2 = plan.buffer arena tensor<1x64x12x20xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 4, 12}, {}]>> <[0, 2, 3, 1]>
  %3 = plan.buffer arena tensor<1x32x4096x4096xf16> <[0, 2, 3, 1]>
  %4 = plan.buffer constant tensor<32x1x2x2xf16> <[0, 1, 2, 3]> = dense<2.0> : tensor<32x1x2x2xf16>
  %5 = plan.buffer arena tensor<1x32x8192x8192xf16> <[0, 2, 3, 1]>
  %6 = plan.buffer arena tensor<1024x33x2xf64, #dovetail.sharding<@mesh, [{"y" : 0, 1000, 1000, 1024}, {}, {}]>> <[0, 1, 2]>
  %7 = plan.buffer arena tensor<1024x64x1xf64, #dovetail.sharding<@mesh, [{"y" : 0, 1000, 1000, 1024}, {}, {}]>> <[0, 1, 2]>
  %half = plan.view %6 : !plan.ref<tensor<1024x33x2xf64, #dovetail.sharding<@mesh, [{"y" : 0, 1000, 1000, 1024}, {}, {}]>>>
  %real = plan.view %7 : !plan.ref<tensor<1024x64x1xf64, #dovetail.sharding<@mesh, [{"y" : 0, 1000, 1000, 1024}, {}, {}]>>>
  %x = plan.view %0 : !x
  %w = plan.view %1 : !plan.ref<tensor<64x32x3x3xf32>>
  %y = plan.view %2 : !y
  %g = plan.view %3 : !plan.ref<tensor<1x32x4096x4096xf16>>
  %v = plan.view %4 : !plan.ref<tensor<32x1x2x2xf16>>
  %z = plan.view %5 : !plan.ref<tensor<1x32x8192x8192xf16>>
  // Weights 64 * 32 * 9; 6 of 12 rows for 4, 10 for 8, and 20 of 22 columns that windows reach.
  // CHECK: plan.convolution {{.*}}memory = #plan.call_memory<packed = [0], scratch = [33664000, 0, 33694720], thread_scratch = [0], thread_packed = [0]>
  plan.convolution %x, %w -> %y loops [1, 64, 12 by <{"y" : 0, 4, 4, 12}>, 20, 32, 3, 3]
    reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] : !x, !plan.ref<tensor<64x32x3x3xf32>> -> !y
  // Weights of 32 groups: 32 * 4 * 2 bytes.
  // CHECK: plan.convolution {{.*}}packed = [0], scratch = [301990144], thread_scratch = [0]
  plan.convolution %g, %v -> %z loops [1, 32, 8192, 8192, 1, 2, 2]
    reads [(d0, d1 + d4, exact((d2 - d5) / 2), exact((d3 - d6) / 2)), (d1 + d4, 0, d5, d6)] : !plan.ref<tensor<1x32x4096x4096xf16>>, !plan.ref<tensor<32x1x2x2xf16>> -> !plan.ref<tensor<1x32x8192x8192xf16>>
  // CHECK: plan.matmul {{.*}}packed = [0], scratch = [33554432], thread_scratch = [0]
  plan.matmul %g, %g -> %g loops [1, 32, 4096, 4096, 4096] reads [(d0, d1, d2, d4), (d0, d1, d4, d3)] : !plan.ref<tensor<1x32x4096x4096xf16>>, !plan.ref<tensor<1x32x4096x4096xf16>> -> !plan.ref<tensor<1x32x4096x4096xf16>>
  // Nine times 1000 or 24 lines of 64 complex numbers of 16 bytes.
  // CHECK: plan.transform {{.*}}packed = [0], scratch = [9216000, 0, 221184], thread_scratch = [0]
  plan.transform inverse %half -> %real loops [1024 by <{"y" : 0, 1000, 1000, 1024}>, 64, 1, 33, 2] reads [(d0, d3, d4)] : !plan.ref<tensor<1024x33x2xf64, #dovetail.sharding<@mesh, [{"y" : 0, 1000, 1000, 1024}, {}, {}]>>> -> !plan.ref<tensor<1024x64x1xf64, #dovetail.sharding<@mesh, [{"y" : 0, 1000, 1000, 1024}, {}, {}]>>>
}
