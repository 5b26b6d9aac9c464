// RUN: dovetail-opt %s --split-input-file --verify-diagnostics

func.func @shape(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error@+1 {{gives 'tensor<5xf32>' of 'tensor<4xf32>': a loop-carried value keeps its type}}
  %0 = dovetail.iter_arg %x {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @type(%x: tensor<4xf32>, %y: tensor<4xf16>) -> tensor<4xf32> {
  // expected-error@+1 {{gives 'tensor<4xf32>' of 'tensor<4xf16>': a loop-carried value keeps its type}}
  %0 = dovetail.yield %x, %y {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @condition(%x: tensor<1xi1>) -> tensor<1xi1> {
  // expected-error@+1 {{is of value 0, the condition, but has type 'tensor<1xi1>'}}
  %0 = dovetail.iter_arg %x {loop = 0 : i64, slot = 0 : i64} : (tensor<1xi1>) -> tensor<1xi1>
  return %0 : tensor<1xi1>
}

// -----

func.func @sides(%c: tensor<i1>, %x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{chooses 'tensor<5xf32>' for 'tensor<4xf32>'}}
  %0 = dovetail.if %c, %x, %y {choice = 0 : i64} : (tensor<i1>, tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @chooses_by(%c: tensor<4xi1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has a condition of type 'tensor<4xi1>'; it must be a boolean of rank 0}}
  %0 = dovetail.if %c, %x, %x {choice = 0 : i64} : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
