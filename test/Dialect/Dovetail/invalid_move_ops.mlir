// RUN: dovetail-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{changes the number of elements from 6 to 8: 'tensor<2x3xf32>' to 'tensor<8xf32>'}}
  %0 = dovetail.reshape %x : (tensor<2x3xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{changes the element type from 'tensor<2x3xf32>' to 'tensor<6xi32>'}}
  %0 = dovetail.reshape %x : (tensor<2x3xf32>) -> tensor<6xi32>
  return
}

// -----

func.func @f(%x: tensor<4294967296x4294967296xf32>) {
  // expected-error@+1 {{has more than 2^63 elements}}
  %0 = dovetail.reshape %x : (tensor<4294967296x4294967296xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+2 {{has permutation [0, 0], which is not one of the dimensions of 'tensor<2x3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.transpose %x {permutation = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+2 {{op inferred type(s) 'tensor<3x2xf32>' are incompatible with return type(s) of operation 'tensor<2x3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{cannot repeat 'tensor<2x3xf32>' to 'tensor<4x3xf32>'}}
  %0 = dovetail.broadcast %x : (tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{cannot repeat 'tensor<2x3xf32>' to 'tensor<3xf32>'}}
  %0 = dovetail.broadcast %x : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+2 {{has no inputs}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.concat {axis = 0 : i64} : () -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+2 {{has axis 2, which 'tensor<2x3xf32>' does not have}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.concat %x {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>) {
  // expected-error@+2 {{cannot join 'tensor<2x3xf32>' and 'tensor<3x3xf32>' along dimension 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.concat %x, %y {axis = 1 : i64} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @f(%x: tensor<9xf32>) {
  // expected-error@+2 {{has 1 starts, 2 sizes and 1 steps for the 1 dimensions of 'tensor<9xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.slice %x {starts = array<i64: 0>, sizes = array<i64: 1, 1>, steps = array<i64: 1>} : (tensor<9xf32>) -> tensor<1x1xf32>
  return
}

// -----

func.func @f(%x: tensor<9xf32>) {
  // expected-error@+2 {{takes 4 elements from 3 with step 2 in dimension 0 of 'tensor<9xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.slice %x {starts = array<i64: 3>, sizes = array<i64: 4>, steps = array<i64: 2>} : (tensor<9xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<9xf32>) {
  // expected-error@+2 {{takes 2 elements from 0 with step -1 in dimension 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.slice %x {starts = array<i64: 0>, sizes = array<i64: 2>, steps = array<i64: -1>} : (tensor<9xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<9xf32>) {
  // expected-error@+2 {{takes 2 elements from 1 with step -9223372036854775808 in dimension 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.slice %x {starts = array<i64: 1>, sizes = array<i64: 2>, steps = array<i64: -9223372036854775808>} : (tensor<9xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<9xf32>) {
  // expected-error@+2 {{takes 1 elements from 0 with step 0 in dimension 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.slice %x {starts = array<i64: 0>, sizes = array<i64: 1>, steps = array<i64: 0>} : (tensor<9xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+2 {{crops 5 of 4 elements in dimension 0 of 'tensor<4xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.pad %x {low = array<i64: -5>, high = array<i64: 3>, mode = #dovetail.pad_mode<constant>} : (tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+2 {{continues nothing in mode edge: dimension 0 of 'tensor<4xf32>' has no elements left}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.pad %x {low = array<i64: -4>, high = array<i64: 3>, mode = #dovetail.pad_mode<edge>} : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %value: tensor<1xf32>) {
  // expected-error@+2 {{pads 'tensor<4xf32>' with a value of type 'tensor<1xf32>'; it must be a scalar of the same element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.pad %x, %value {low = array<i64: 0>, high = array<i64: 3>, mode = #dovetail.pad_mode<constant>} : (tensor<4xf32>, tensor<1xf32>) -> tensor<7xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+2 {{pads are limited to 2^40}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.pad %x {low = array<i64: 9223372036854775807>, high = array<i64: 1>, mode = #dovetail.pad_mode<constant>} : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %indices: tensor<2xf32>) {
  // expected-error@+2 {{has indices of type 'tensor<2xf32>'; they must be integers}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.gather %x, %indices {axis = 0 : i64} : (tensor<4xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %indices: tensor<2xi64>) {
  // expected-error@+2 {{has axis -1, which 'tensor<4xf32>' does not have}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.gather %x, %indices {axis = -1 : i64} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<0xf32>, %indices: tensor<2xi64>) {
  // expected-error@+2 {{takes elements from dimension 0 of 'tensor<0xf32>', which has none}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.gather %x, %indices {axis = 0 : i64} : (tensor<0xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{has a result of rank 2; it is a vector}}
  %0 = dovetail.range 0 : i64 step 1 : i64 : tensor<2x2xi64>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{has start 0 : i64 and step 1 : i64, which must be of type 'f32' as the elements}}
  %0 = dovetail.range 0 : i64 step 1 : i64 : tensor<2xf32>
  return
}
