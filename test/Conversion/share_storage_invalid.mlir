// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(dovetail-share-storage)'

// expected-error@below {{has no mesh; a program needs a mesh of one rank or more}}
module {
}

// -----

module {
  dovetail.mesh @mesh = ["y" = 1]
  // expected-error@+1 {{value of type 'tensor<4xf32>' has no memory format; dovetail-choose-formats chooses one}}
  func.func @format(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
