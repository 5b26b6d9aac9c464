// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(dovetail-lower-graph{libraries=onednn,mkl})'

dovetail.mesh @mesh = ["y" = 1]
// expected-error@+1 {{library 'mkl' is not known; the libraries are onednn, cudnn, cublaslt}}
func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
