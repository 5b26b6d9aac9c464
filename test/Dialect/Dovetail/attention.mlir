// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --dovetail-fold-constants | FileCheck %s

// Two queries and three keys of depth 1, and values of two columns. The first query is zero, so that all keys weigh the
// same; a mask leaves the second one nothing but the last key.

// CHECK-LABEL: func.func @values
// CHECK: dense<{{\[}}[2.000000e+00, 3.000000e+00], [4.000000e+00, 7.000000e+00]]>
func.func @values() -> tensor<2x2xf32> {
  %q = dovetail.constant dense<[[0.0], [1.0]]> : tensor<2x1xf32>
  %k = dovetail.constant dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf32>
  %v = dovetail.constant dense<[[1.0, 1.0], [1.0, 1.0], [4.0, 7.0]]> : tensor<3x2xf32>
  %m = dovetail.constant dense<[[true, true, true], [false, false, true]]> : tensor<2x3xi1>
  %0 = dovetail.attention %q, %k, %v mask %m {scale = 1.0 : f32} : (tensor<2x1xf32>, tensor<3x1xf32>, tensor<3x2xf32>, tensor<2x3xi1>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// The same with two heads that follow each other in columns: of the second one, all weighs the same.

// CHECK-LABEL: func.func @heads
// CHECK: dense<{{\[}}[2.000000e+00, 3.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 7.000000e+00, 2.000000e+00, 3.000000e+00]]>
func.func @heads() -> tensor<2x4xf32> {
  %q = dovetail.constant dense<[[0.0, 0.0], [1.0, 0.0]]> : tensor<2x2xf32>
  %kv = dovetail.constant dense<[[9.0, 1.0, 1.0, 1.0], [9.0, 2.0, 1.0, 1.0], [9.0, 3.0, 4.0, 7.0]]> : tensor<3x4xf32>
  %m = dovetail.constant dense<[[[true, true, true], [false, false, true]], [[true, true, true], [true, true, true]]]> : tensor<2x2x3xi1>
  %0 = dovetail.attention %q, %kv, %kv mask %m {scale = 1.0 : f32, heads = array<i64: 2, 1, 1, 2>, offsets = array<i64: 0, 1, 2>} : (tensor<2x2xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x2x3xi1>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @other_heads(%q: tensor<2x2xf32>, %kv: tensor<3x4xf32>) {
  // expected-error @+2 {{one of them has other heads}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.attention %q, %kv, %kv {scale = 1.0 : f32, heads = array<i64: 2, 1, 1, 2>, offsets = array<i64: 0, 1, 3>} : (tensor<2x2xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @shared_heads(%q: tensor<2x3xf32>, %kv: tensor<3x4xf32>) {
  // expected-error @+2 {{the number of heads of keys divides the number of heads of queries}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.attention %q, %kv, %kv {scale = 1.0 : f32, heads = array<i64: 3, 2, 1, 1>, offsets = array<i64: 0, 0, 2>} : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @no_offsets(%q: tensor<2x2xf32>) {
  // expected-error @+2 {{heads are four numbers, with three offsets}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.attention %q, %q, %q {scale = 1.0 : f32, heads = array<i64: 2, 2, 1, 1>} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @depth(%q: tensor<2x3x4xf32>, %k: tensor<2x5x3xf32>, %v: tensor<2x5x6xf32>) {
  // expected-error @+2 {{queries and keys differ in depth}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<2x3x4xf32>, tensor<2x5x3xf32>, tensor<2x5x6xf32>) -> tensor<2x3x6xf32>
  return
}

// -----

func.func @keys(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x4x6xf32>) {
  // expected-error @+2 {{there are not as many keys as values}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x4x6xf32>) -> tensor<2x3x6xf32>
  return
}

// -----

func.func @batch(%q: tensor<2x3x4xf32>, %k: tensor<3x5x4xf32>, %v: tensor<2x5x6xf32>) {
  // expected-error @+2 {{keys and values have as many batches as queries, or 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<2x3x4xf32>, tensor<3x5x4xf32>, tensor<2x5x6xf32>) -> tensor<2x3x6xf32>
  return
}

// -----

func.func @nothing(%q: tensor<3x4xf32>, %k: tensor<0x4xf32>, %v: tensor<0x6xf32>) {
  // expected-error @+2 {{there are no keys}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<3x4xf32>, tensor<0x4xf32>, tensor<0x6xf32>) -> tensor<3x6xf32>
  return
}

// -----

func.func @mask(%q: tensor<3x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x6xf32>, %m: tensor<4x5xf32>) {
  // expected-error @+2 {{the mask does not broadcast to the shape of the scores}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.attention %q, %k, %v mask %m {scale = 1.0 : f32} : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<5x6xf32>, tensor<4x5xf32>) -> tensor<3x6xf32>
  return
}

// -----

func.func @mask_type(%q: tensor<3x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x6xf32>, %m: tensor<3x5xi32>) {
  // expected-error @+2 {{the mask's elements are neither i1 nor of their type}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.attention %q, %k, %v mask %m {scale = 1.0 : f32} : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<5x6xf32>, tensor<3x5xi32>) -> tensor<3x6xf32>
  return
}

// -----

// Columns and depth stay whole, and keys are divided by decomposition.

dovetail.mesh @mesh = ["y" = 2]
func.func @columns(%q: tensor<3x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x6xf32>) {
  // expected-error @+1 {{splits loop 1, which must stay whole}}
  %0 = dovetail.attention %q, %k, %v {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 2, 6}, {}]>, scale = 1.0 : f32} : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2]
func.func @split_keys(%q: tensor<3x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x6xf32>) {
  // expected-error @+1 {{splits loop 2, over which exchanges cannot combine results of ranks; decompose the operation first}}
  %0 = dovetail.attention %q, %k, %v {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 2, 5}]>, scale = 1.0 : f32} : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>
  return
}

// -----

func.func @restarts(%q: tensor<3x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x6xf32>) {
  // expected-error @+2 {{begins anew at 2, which is not between 3 and the end, 5}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.attention %q, %k, %v {restarts = array<i64: 3, 2>, scale = 1.0 : f32} : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<5x6xf32>) -> tensor<3x3x8xf32>
  return
}

// -----

func.func @divided_heads(%q: tensor<3x8xf32>, %k: tensor<5x8xf32>, %v: tensor<5x8xf32>) {
  // expected-error @+2 {{keys are divided where heads are a dimension}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.attention %q, %k, %v {heads = array<i64: 2, 2, 4, 4>, offsets = array<i64: 0, 0, 0>, restarts = array<i64: 2>, scale = 1.0 : f32} : (tensor<3x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<2x3x10xf32>
  return
}
