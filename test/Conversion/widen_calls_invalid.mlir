// RUN: dovetail-opt %s --verify-diagnostics --pass-pipeline='builtin.module(func.func(dovetail-widen-calls{libraries=mkl}))'

// expected-error@below {{library 'mkl' is not known; the libraries are onednn, cudnn, cublaslt}}
func.func @unknown(%x: tensor<4xf16>) -> tensor<4xf16> {
  return %x : tensor<4xf16>
}
