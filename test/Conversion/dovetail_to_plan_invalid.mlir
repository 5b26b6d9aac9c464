// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(dovetail-to-plan{libraries=onednn,mkl})'

// expected-error@below {{library 'mkl' is not known; there are onednn, cudnn, cublaslt}}
module {
  dovetail.mesh @mesh = ["y" = 1]
}

// -----

// expected-error@below {{has no mesh: a program needs one, if only of one rank}}
module {
}
