// RUN: dovetail-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @valid
// CHECK: dovetail.lstm
// CHECK-SAME: -> (tensor<5x2x3xf32>, tensor<5x2x3xf32>)
// CHECK: dovetail.gru
// CHECK: dovetail.rnn
// CHECK-SAME: -> tensor<5x2x3xf64>
func.func @valid(%x: tensor<5x2x4x3xf32>, %r: tensor<4x3x3xf32>, %h: tensor<2x3xf32>, %p: tensor<3x3xf32>, %l: tensor<2xi64>,
                 %xg: tensor<5x2x3x3xf32>, %rg: tensor<3x3x3xf32>, %b: tensor<3xf32>,
                 %xr: tensor<5x2x1x3xf64>, %rr: tensor<1x3x3xf64>, %hr: tensor<2x3xf64>) {
  %0:2 = dovetail.lstm %x, %r, %h, %h, %p, %l {functions = ["sigmoid", "tanh", "tanh"], alphas = array<f32: 0.0, 0.0, 0.0>, betas = array<f32: 0.0, 0.0, 0.0>, clip = 0.5 : f32, couple = true, reverse = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>} : (tensor<5x2x4x3xf32>, tensor<4x3x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<3x3xf32>, tensor<2xi64>) -> (tensor<5x2x3xf32>, tensor<5x2x3xf32>)
  %1:2 = dovetail.gru %xg, %rg, %h, %b {functions = ["hardsigmoid", "elu"], alphas = array<f32: 0.2, 1.0>, betas = array<f32: 0.5, 0.0>, clip = 0.0 : f32, reverse = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>} : (tensor<5x2x3x3xf32>, tensor<3x3x3xf32>, tensor<2x3xf32>, tensor<3xf32>) -> (tensor<5x2x3xf32>, tensor<5x2x3xf32>)
  %2 = dovetail.rnn %xr, %rr, %hr {functions = ["relu"], alphas = array<f32: 0.0>, betas = array<f32: 0.0>, clip = 0.0 : f32, reverse = false} : (tensor<5x2x1x3xf64>, tensor<1x3x3xf64>, tensor<2x3xf64>) -> tensor<5x2x3xf64>
  return
}

// -----

func.func @gates(%x: tensor<5x2x3x3xf32>, %r: tensor<4x3x3xf32>, %h: tensor<2x3xf32>) {
  // expected-error@+2 {{has input 'tensor<5x2x3x3xf32>', not f32 or f64 of [time, batch, 1, hidden]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.rnn %x, %r, %h {functions = ["relu"], alphas = array<f32: 0.0>, betas = array<f32: 0.0>, clip = 0.0 : f32, reverse = false} : (tensor<5x2x3x3xf32>, tensor<4x3x3xf32>, tensor<2x3xf32>) -> tensor<5x2x3xf32>
  return
}

// -----

func.func @weights(%x: tensor<5x2x1x3xf32>, %r: tensor<1x3x4xf32>, %h: tensor<2x3xf32>) {
  // expected-error@+2 {{has weights of 'tensor<1x3x4xf32>', not of shape 1x3x3 and the input's elements}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.rnn %x, %r, %h {functions = ["relu"], alphas = array<f32: 0.0>, betas = array<f32: 0.0>, clip = 0.0 : f32, reverse = false} : (tensor<5x2x1x3xf32>, tensor<1x3x4xf32>, tensor<2x3xf32>) -> tensor<5x2x3xf32>
  return
}

// -----

func.func @lengths(%x: tensor<5x2x1x3xf32>, %r: tensor<1x3x3xf32>, %h: tensor<2x3xf32>, %l: tensor<2xf32>) {
  // expected-error@+1 {{operand #3 must be statically shaped tensor of boolean or integer (8 bits or more) values}}
  %0 = dovetail.rnn %x, %r, %h, %l {functions = ["relu"], alphas = array<f32: 0.0>, betas = array<f32: 0.0>, clip = 0.0 : f32, reverse = false} : (tensor<5x2x1x3xf32>, tensor<1x3x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<5x2x3xf32>
  return
}

// -----

func.func @function(%x: tensor<5x2x1x3xf32>, %r: tensor<1x3x3xf32>, %h: tensor<2x3xf32>) {
  // expected-error@+2 {{has the function "sine", which is not known}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.rnn %x, %r, %h {functions = ["sine"], alphas = array<f32: 0.0>, betas = array<f32: 0.0>, clip = 0.0 : f32, reverse = false} : (tensor<5x2x1x3xf32>, tensor<1x3x3xf32>, tensor<2x3xf32>) -> tensor<5x2x3xf32>
  return
}
