// RUN: dovetail-opt %s -split-input-file --plan-generate-cpu-kernels -verify-diagnostics

plan.kernel @weights(%x: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] {
  // expected-error@+1 {{is a resource, which a kernel cannot hold; it must be an argument of the kernel}}
  %0 = dovetail.constant dense_resource<weights> : tensor<4xf32>
  %1 = dovetail.add %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  plan.yield %1 : tensor<4xf32>
}

{-#
  dialect_resources: { builtin: { weights: "0x040000000000803F000000400000404000008040" } }
#-}

// -----

// expected-error@+1 {{has an argument of type 'tensor<4xi6>', which kernels cannot read}}
plan.kernel @odd_width(%x: tensor<4xi6>) layouts [<[0], [4]>] -> [<[0], [4]>] {
  plan.yield %x : tensor<4xi6>
}
