// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(dovetail-form-calls{libraries=onednn}))'

func.func @formats(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{has no memory formats; dovetail-choose-formats chooses them}}
  %0 = dovetail.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
