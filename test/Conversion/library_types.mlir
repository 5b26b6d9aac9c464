// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-widen-calls{libraries=cudnn,cublaslt}),dovetail-lower-graph{libraries=cudnn,cublaslt target=cuda device=true})' | FileCheck %s --check-prefixes=CHECK,CUDA
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-widen-calls{libraries=onednn}),dovetail-lower-graph{libraries=onednn})' | FileCheck %s --check-prefixes=CHECK,CPU

// cuDNN and cuBLASLt are called in both 16-bit types, with their epilogues; oneDNN is called in f32, the weights are
// converted once, before the first run, and what lies between operations stays in the model's type.

dovetail.mesh @mesh = ["y" = 1]

// CUDA: ![[RESULT:.*]] = !plan.ref<tensor<1x8x8x8xf16>>
// CPU: ![[RESULT:.*]] = !plan.ref<tensor<1x8x8x8xf32>>
// CHECK-LABEL: plan.program @half
// CPU: plan.prologue
// CPU-NEXT: plan.launch {{.*}} loops [8, 4, 3, 3]
// CUDA-NOT: plan.launch
// CHECK: plan.convolution {{.*}}post_ops = [#plan.post_op<relu>, #plan.post_op<clip{{.*}} -> ![[RESULT]]{{$}}
// CUDA-NOT: plan.launch
// CHECK: plan.matmul {{.*}}post_ops = [#plan.post_op<add_tensor>]{{.*}} -> ![[RESULT]]{{$}}
// CUDA-NOT: plan.launch
func.func @half(%x: tensor<1x4x8x8xf16>, %m: tensor<8x8xf16>) -> tensor<1x8x8x8xf16> {
  %w = dovetail.constant dense_resource<weights> : tensor<8x4x3x3xf16>
  %six = dovetail.constant dense<6.0> : tensor<f16>
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x4x8x8xf16>, tensor<8x4x3x3xf16>) -> tensor<1x8x8x8xf16>
  %1 = dovetail.relu %0 : (tensor<1x8x8x8xf16>) -> tensor<1x8x8x8xf16>
  %2 = dovetail.min %1, %six : (tensor<1x8x8x8xf16>, tensor<f16>) -> tensor<1x8x8x8xf16>
  %3 = dovetail.matmul %2, %m : (tensor<1x8x8x8xf16>, tensor<8x8xf16>) -> tensor<1x8x8x8xf16>
  %4 = dovetail.add %3, %six : (tensor<1x8x8x8xf16>, tensor<f16>) -> tensor<1x8x8x8xf16>
  return %4 : tensor<1x8x8x8xf16>
}

// -----

dovetail.mesh @mesh = ["y" = 1]

// CUDA: ![[RESULT:.*]] = !plan.ref<tensor<1x8x15x15xbf16>>
// CPU: ![[RESULT:.*]] = !plan.ref<tensor<1x8x15x15xf32>>
// CHECK-LABEL: plan.program @brain
// CUDA-NOT: plan.launch
// CHECK: plan.convolution {{.*}} -> ![[RESULT]]{{$}}
// CHECK: plan.matmul %{{.*}} : ![[RESULT]], ![[RIGHT:.*]] -> !
// CUDA-NOT: plan.launch
func.func @brain(%x: tensor<1x4x8x8xbf16>, %w: tensor<4x8x3x3xbf16>, %m: tensor<15x8xbf16>) -> tensor<1x8x15x8xbf16> {
  %0 = dovetail.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, output_padding = array<i64: 0, 0>} : (tensor<1x4x8x8xbf16>, tensor<4x8x3x3xbf16>) -> tensor<1x8x15x15xbf16>
  %1 = dovetail.matmul %0, %m : (tensor<1x8x15x15xbf16>, tensor<15x8xbf16>) -> tensor<1x8x15x8xbf16>
  return %1 : tensor<1x8x15x8xbf16>
}
