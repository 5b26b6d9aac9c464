// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(plan-bound-calls{libraries=onednn features=avx512f,avx512vl})' | FileCheck %s
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(plan-bound-calls{libraries=onednn features=avx2,fma})' | FileCheck %s --check-prefix=AVX2

// Constant weights are packed once: 64 x 32 channels of 9. A thread has 8 KiB of descriptors, which the library needs on
// processors with AVX-512, and the bias. Ranks without rows take nothing.

dovetail.mesh @mesh = ["y" = 3]
!x = !plan.ref<tensor<1x32x12x20xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (4, 4), (3, 12)}, {}]>>>
!y = !plan.ref<tensor<1x64x12x20xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 4, 12}, {}]>>>

// CHECK-LABEL: plan.program @convolution
plan.program @convolution mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x32x12x20xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (4, 4), (3, 12)}, {}]>> <[0, 2, 3, 1]>
  %1 = plan.buffer constant tensor<64x32x3x3xf32> <[0, 1, 2, 3]> = dense<2.0> : tensor<64x32x3x3xf32>
  %2 = plan.buffer arena tensor<1x64x12x20xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 4, 12}, {}]>> <[0, 2, 3, 1]>
  %x = plan.view %0 : !x
  %w = plan.view %1 : !plan.ref<tensor<64x32x3x3xf32>>
  %y = plan.view %2 : !y
  // CHECK: memory = #plan.call_memory<packed = [73728, 0, 73728], scratch = [0], thread_scratch = [8448, 0, 8448], thread_packed = [0]>
  // AVX2: plan.convolution {{.*}}packed = [73728, 0, 73728], scratch = [0], thread_scratch = [8448, 0, 8448]
  plan.convolution %x, %w -> %y loops [1, 64, 12 by <{"y" : 0, 4, 4, 12}>, 20, 32, 3, 3]
    reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] : !x, !plan.ref<tensor<64x32x3x3xf32>> -> !y
}

// -----

// Weights that are not constant are never kept. Depthwise ones are not padded to blocks of channels.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @kinds
plan.program @kinds mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x20x12x20xf32> <[0, 2, 3, 1]>
  %1 = plan.buffer arena tensor<20x1x3x3xf32> <[0, 1, 2, 3]>
  %2 = plan.buffer arena tensor<1x20x12x20xf32> <[0, 2, 3, 1]>
  %3 = plan.buffer constant tensor<20x70xf32> <[0, 1]> = dense<1.0> : tensor<20x70xf32>
  %4 = plan.buffer arena tensor<1x20x12x70xf32> <[0, 1, 2, 3]>
  %5 = plan.buffer arena tensor<20x70xf32> <[0, 1]>
  %x = plan.view %0 : !plan.ref<tensor<1x20x12x20xf32>>
  %w = plan.view %1 : !plan.ref<tensor<20x1x3x3xf32>>
  %y = plan.view %2 : !plan.ref<tensor<1x20x12x20xf32>>
  %m = plan.view %3 : !plan.ref<tensor<20x70xf32>>
  %z = plan.view %4 : !plan.ref<tensor<1x20x12x70xf32>>
  %n = plan.view %5 : !plan.ref<tensor<20x70xf32>>
  // CHECK: plan.convolution {{.*}}packed = [0], scratch = [1152], thread_scratch = [8320]
  plan.convolution %x, %w -> %y loops [1, 20, 12, 20, 1, 3, 3] reads [(d0, d1 + d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)]
    : !plan.ref<tensor<1x20x12x20xf32>>, !plan.ref<tensor<20x1x3x3xf32>> -> !plan.ref<tensor<1x20x12x20xf32>>
  // 128 columns of 32 terms. As the first factor does not lie row by row, 48 terms of 64 columns and all 12 rows may be copied.
  // CHECK: plan.matmul {{.*}}packed = [16384], scratch = [0], thread_scratch = [47360]
  plan.matmul %x, %m -> %z loops [1, 20, 12, 70, 20] reads [(d0, d1, d2, d4), (d4, d3)]
    : !plan.ref<tensor<1x20x12x20xf32>>, !plan.ref<tensor<20x70xf32>> -> !plan.ref<tensor<1x20x12x70xf32>>
  // CHECK: plan.matmul {{.*}}packed = [0], scratch = [0], thread_scratch = [47360]
  plan.matmul %x, %n -> %z loops [1, 20, 12, 70, 20] reads [(d0, d1, d2, d4), (d4, d3)]
    : !plan.ref<tensor<1x20x12x20xf32>>, !plan.ref<tensor<20x70xf32>> -> !plan.ref<tensor<1x20x12x70xf32>>
  // CHECK: plan.pool {{.*}}packed = [0], scratch = [0], thread_scratch = [96256]
  plan.pool <max> %x -> %y loops [1, 20, 12, 20, 1, 1] reads [(d0, d1, d2 + d4, d3 + d5)]
    : !plan.ref<tensor<1x20x12x20xf32>> -> !plan.ref<tensor<1x20x12x20xf32>>
}

// -----

// Packed integers take a byte each: 128 columns of 128 terms. Scratch memory is for factors that are padded to 128 terms,
// as the processor's matrices want them, and for sums.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @integers
plan.program @integers mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<12x66xui8> <[0, 1]>
  %1 = plan.buffer constant tensor<66x70xi8> <[0, 1]> = dense<1> : tensor<66x70xi8>
  %2 = plan.buffer arena tensor<66x70xi8> <[0, 1]>
  %3 = plan.buffer arena tensor<12x70xi32> <[0, 1]>
  %x = plan.view %0 : !plan.ref<tensor<12x66xui8>>
  %w = plan.view %1 : !plan.ref<tensor<66x70xi8>>
  %v = plan.view %2 : !plan.ref<tensor<66x70xi8>>
  %y = plan.view %3 : !plan.ref<tensor<12x70xi32>>
  // CHECK: plan.matmul {{.*}}packed = [16384], scratch = [0], thread_scratch = [313344]
  plan.matmul %x, %w -> %y loops [12, 70, 66] reads [(d0, d2), (d2, d1)]
    : !plan.ref<tensor<12x66xui8>>, !plan.ref<tensor<66x70xi8>> -> !plan.ref<tensor<12x70xi32>>
  // CHECK: plan.matmul {{.*}}packed = [0], scratch = [0], thread_scratch = [346112]
  plan.matmul %x, %v -> %y loops [12, 70, 66] reads [(d0, d2), (d2, d1)]
    : !plan.ref<tensor<12x66xui8>>, !plan.ref<tensor<66x70xi8>> -> !plan.ref<tensor<12x70xi32>>
}

// -----

// Parts of rows have one copy of the weights. Of columns, three parts are of 22 steps of 64 at most: more than there are
// by 128 in all, of 1024 terms.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @divided
plan.program @divided mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x32x12x20xf32> <[0, 2, 3, 1]>
  %1 = plan.buffer constant tensor<64x32x3x3xf32> <[0, 1, 2, 3]> = dense<2.0> : tensor<64x32x3x3xf32>
  %2 = plan.buffer arena tensor<1x64x12x20xf32> <[0, 2, 3, 1]>
  %3 = plan.buffer arena tensor<1x1024xf32> <[0, 1]>
  %4 = plan.buffer constant tensor<1024x4096xf32> <[0, 1]> = dense<2.0> : tensor<1024x4096xf32>
  %5 = plan.buffer arena tensor<1x4096xf32> <[0, 1]>
  %x = plan.view %0 : !plan.ref<tensor<1x32x12x20xf32>>
  %w = plan.view %1 : !plan.ref<tensor<64x32x3x3xf32>>
  %y = plan.view %2 : !plan.ref<tensor<1x64x12x20xf32>>
  %a = plan.view %3 : !plan.ref<tensor<1x1024xf32>>
  %b = plan.view %4 : !plan.ref<tensor<1024x4096xf32>>
  %c = plan.view %5 : !plan.ref<tensor<1x4096xf32>>
  // CHECK: memory = #plan.call_memory<packed = [73728], scratch = [0], thread_scratch = [8448], thread_packed = [0]>
  plan.convolution %x, %w -> %y loops [1, 64, 12, 20, 32, 3, 3]
    reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] {division = #plan.division<loop = 2, step = 1, grain = 3>}
    : !plan.ref<tensor<1x32x12x20xf32>>, !plan.ref<tensor<64x32x3x3xf32>> -> !plan.ref<tensor<1x64x12x20xf32>>
  // CHECK: memory = #plan.call_memory<packed = [16777216], scratch = [0], thread_scratch = [2048], thread_packed = [262144]>
  plan.matmul %a, %b -> %c loops [1, 4096, 1024] reads [(d0, d2), (d2, d1)]
    {division = #plan.division<loop = 1, step = 64, grain = 1024>}
    : !plan.ref<tensor<1x1024xf32>>, !plan.ref<tensor<1024x4096xf32>> -> !plan.ref<tensor<1x4096xf32>>
}

// -----

// The library copies a part of a second factor that is transposed, 64 columns of 1024 terms at most, and one of 512 columns.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @copied
plan.program @copied mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<5x4000xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<4000x512xf32> <[1, 0]>
  %2 = plan.buffer arena tensor<5x512xf32> <[0, 1]>
  %3 = plan.buffer arena tensor<512x100xf32> <[0, 1]>
  %4 = plan.buffer arena tensor<5x100xf32> <[0, 1]>
  %5 = plan.buffer arena tensor<100x512xf32> <[0, 1]>
  %a = plan.view %0 : !plan.ref<tensor<5x4000xf32>>
  %b = plan.view %1 : !plan.ref<tensor<4000x512xf32>>
  %c = plan.view %2 : !plan.ref<tensor<5x512xf32>>
  %d = plan.view %3 : !plan.ref<tensor<512x100xf32>>
  %e = plan.view %4 : !plan.ref<tensor<5x100xf32>>
  %f = plan.view %5 : !plan.ref<tensor<100x512xf32>>
  // CHECK: plan.matmul {{.*}}thread_scratch = [268288]
  plan.matmul %a, %b -> %c loops [5, 512, 4000] reads [(d0, d2), (d2, d1)]
    : !plan.ref<tensor<5x4000xf32>>, !plan.ref<tensor<4000x512xf32>> -> !plan.ref<tensor<5x512xf32>>
  // CHECK: plan.matmul {{.*}}thread_scratch = [2048]
  plan.matmul %c, %d -> %e loops [5, 100, 512] reads [(d0, d2), (d2, d1)]
    : !plan.ref<tensor<5x512xf32>>, !plan.ref<tensor<512x100xf32>> -> !plan.ref<tensor<5x100xf32>>
  // CHECK: plan.matmul {{.*}}thread_scratch = [34816]
  plan.matmul %e, %f -> %c loops [5, 512, 100] reads [(d0, d2), (d2, d1)]
    : !plan.ref<tensor<5x100xf32>>, !plan.ref<tensor<100x512xf32>> -> !plan.ref<tensor<5x512xf32>>
}

// -----

// A product that is added to a tensor keeps sums of 64 columns and all 200 rows on processors with
// AVX-512, which may run programs for others. Rows of several dimensions are one.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @added
plan.program @added mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<2x100x600xf32> <[0, 1, 2]>
  %1 = plan.buffer constant tensor<600x96xf32> <[0, 1]> = dense<2.0> : tensor<600x96xf32>
  %2 = plan.buffer arena tensor<2x100x96xf32> <[0, 1, 2]>
  %3 = plan.buffer arena tensor<2x100x96xf32> <[0, 1, 2]>
  %a = plan.view %0 : !plan.ref<tensor<2x100x600xf32>>
  %b = plan.view %1 : !plan.ref<tensor<600x96xf32>>
  %c = plan.view %2 : !plan.ref<tensor<2x100x96xf32>>
  %r = plan.view %3 : !plan.ref<tensor<2x100x96xf32>>
  // CHECK: plan.matmul {{.*}}thread_scratch = [53248]
  // AVX2: plan.program @added
  // AVX2: plan.matmul {{.*}}thread_scratch = [53248]
  plan.matmul %a, %b -> %c loops [2, 100, 96, 600] reads [(d0, d1, d3), (d3, d2)] post(%r : !plan.ref<tensor<2x100x96xf32>>)
    {row_dims = 2 : i64, post_ops = [#plan.post_op<add_tensor>]}
    : !plan.ref<tensor<2x100x600xf32>>, !plan.ref<tensor<600x96xf32>> -> !plan.ref<tensor<2x100x96xf32>>
}


// -----

// With AVX2 the library has nothing fast for windows that begin two columns before the only one that the first rank has.
// There are the results of the runtime's own kernels: 12 of 16 x 25 terms. The second rank has descriptors and the bias.

dovetail.mesh @mesh = ["y" = 2]
!x = !plan.ref<tensor<1x16x12x20xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {"y" : (0, 3), (0, 20)}]>>>
!y = !plan.ref<tensor<1x32x12x20xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {"y" : 0, 1, 20}]>>>

// AVX2-LABEL: plan.program @narrow
plan.program @narrow mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x16x12x20xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {"y" : (0, 3), (0, 20)}]>> <[0, 2, 3, 1]>
  %1 = plan.buffer constant tensor<32x16x5x5xf32> <[0, 1, 2, 3]> = dense<2.0> : tensor<32x16x5x5xf32>
  %2 = plan.buffer arena tensor<1x32x12x20xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {"y" : 0, 1, 20}]>> <[0, 2, 3, 1]>
  %x = plan.view %0 : !x
  %w = plan.view %1 : !plan.ref<tensor<32x16x5x5xf32>>
  %y = plan.view %2 : !y
  // AVX2: plan.convolution {{.*}}thread_scratch = [19200, 8320]
  plan.convolution %x, %w -> %y loops [1, 32, 12, 20 by <{"y" : 0, 1, 20}>, 16, 5, 5]
    reads [(d0, d4, d2 + d5 - 2, d3 + d6 - 2), (d1, d4, d5, d6)] : !x, !plan.ref<tensor<32x16x5x5xf32>> -> !y
}
