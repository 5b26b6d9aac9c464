// RUN: dovetail-opt %s --plan-generate-block-kernels --verify-diagnostics

// expected-error@+1 {{reads operands that it overwrites, which only kernels for CPUs do}}
plan.kernel @neg(%x: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] attributes {in_place = 0} {
  %0 = dovetail.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  plan.yield %0 : tensor<4xf32>
}
