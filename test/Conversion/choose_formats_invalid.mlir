// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(dovetail-choose-formats))'

func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has no memory formats}}
  %0 = arith.constant dense<1.0> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
