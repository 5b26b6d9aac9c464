// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(dovetail-fuse-kernels))'

func.func @formats(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{has no memory formats; dovetail-choose-formats chooses them}}
  %0 = dovetail.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
