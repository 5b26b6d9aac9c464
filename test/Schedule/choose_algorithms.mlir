// RUN: dovetail-opt %s --plan-choose-algorithms | FileCheck %s
// RUN: not dovetail-opt %s --plan-choose-algorithms=cluster=x200 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// What was measured is not estimated; the last algorithm is for all that follow, and what has no choice is not counted.
// RUN: dovetail-opt %s --plan-choose-algorithms=algorithms=library,winograd | FileCheck %s --check-prefix=GIVEN
// RUN: dovetail-opt %s --plan-choose-algorithms=algorithms=library | FileCheck %s --check-prefix=NONE
// GIVEN-COUNT-4: plan.convolution
// GIVEN-NOT: winograd
// GIVEN: plan.convolution
// GIVEN-SAME: winograd
// GIVEN: plan.convolution
// GIVEN-SAME: winograd
// NONE-NOT: winograd

// RUN: not dovetail-opt %s --plan-choose-algorithms=algorithms=fft 2>&1 | FileCheck %s --check-prefix=ALGORITHM
// ALGORITHM: error: there is no algorithm 'fft' for convolutions

// UNKNOWN: error: there is no cluster 'x200' among the built-in ones

dovetail.mesh @mesh = ["y" = 2]

!x = !plan.ref<tensor<1x64x56x56xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>>
!w = !plan.ref<tensor<64x64x3x3xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>>
!s = !plan.ref<tensor<1x64x28x28xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>>
!t = !plan.ref<tensor<1x64x2x2xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>>
!d = !plan.ref<tensor<1x512x7x7xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>>
!m = !plan.ref<tensor<512x512x3x3xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>>
!b = !plan.ref<tensor<1x64x56x56xbf16, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>>
!v = !plan.ref<tensor<64x64x3x3xbf16, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>>

// CHECK-LABEL: plan.program @program
plan.program @program mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x64x56x56xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 2, 3, 1]>
  %1 = plan.buffer arena tensor<1x64x56x56xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 2, 3, 1]>
  %2 = plan.buffer persistent tensor<64x64x3x3xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 1, 2, 3]>
  %3 = plan.buffer arena tensor<64x64x3x3xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 1, 2, 3]>
  %4 = plan.buffer arena tensor<1x64x28x28xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 2, 3, 1]>
  %5 = plan.buffer arena tensor<1x64x2x2xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 2, 3, 1]>
  %6 = plan.buffer arena tensor<1x64x56x56xbf16, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 2, 3, 1]>
  %7 = plan.buffer persistent tensor<64x64x3x3xbf16, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 1, 2, 3]>
  %8 = plan.buffer arena tensor<1x512x7x7xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 2, 3, 1]>
  %9 = plan.buffer persistent tensor<512x512x3x3xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 1, 2, 3]>
  %x = plan.view %0 : !x
  %y = plan.view %1 : !x
  %w = plan.view %2 : !w
  %computed = plan.view %3 : !w
  %strided = plan.view %4 : !s
  %small = plan.view %5 : !t
  %half = plan.view %6 : !b
  %halves = plan.view %7 : !v
  %deep = plan.view %8 : !d
  %many = plan.view %9 : !m

  // CHECK: plan.convolution
  // CHECK-SAME: algorithm = #plan<convolution_algorithm winograd>
  plan.convolution %x, %w -> %y loops [1, 64, 56, 56, 64, 3, 3] reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)]
    : !x, !w -> !x
  // With stride 2, of another type, or with weights that change there is none.
  // CHECK-NOT: winograd
  plan.convolution %x, %w -> %strided loops [1, 64, 28, 28, 64, 3, 3] reads [(d0, d4, 2*d2 + d5 - 1, 2*d3 + d6 - 1), (d1, d4, d5, d6)]
    : !x, !w -> !s
  plan.convolution %half, %halves -> %half loops [1, 64, 56, 56, 64, 3, 3] reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)]
    : !b, !v -> !b
  plan.convolution %x, %computed -> %y loops [1, 64, 56, 56, 64, 3, 3] reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)]
    : !x, !w -> !x
  // Of few tiles and many channels, time that is saved does not make up for weights.
  // CHECK-NOT: winograd
  plan.convolution %deep, %many -> %deep loops [1, 512, 7, 7, 512, 3, 3] reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)]
    : !d, !m -> !d
  // One tile costs more to transform than its products save.
  plan.convolution %small, %w -> %small loops [1, 64, 2, 2, 64, 3, 3] reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)]
    : !t, !w -> !t
}
