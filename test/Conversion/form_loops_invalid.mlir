// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(dovetail-form-loops))'

func.func @no_next(%a: tensor<i1>) -> tensor<i1> {
  // expected-error@+1 {{has no dovetail.yield of its number}}
  %on = dovetail.iter_arg %a {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  return %on : tensor<i1>
}

// -----

func.func @no_condition(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{is of a loop without a condition, value 0}}
  %x = dovetail.iter_arg %a {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = dovetail.yield %x, %a {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @twice(%a: tensor<i1>) -> tensor<i1> {
  %on = dovetail.iter_arg %a {loop = 3 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  // expected-error@+1 {{is the second one of value 0 of loop 3}}
  %also = dovetail.iter_arg %a {loop = 3 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  return %on : tensor<i1>
}

// -----

func.func @not_carried(%a: tensor<i1>) -> tensor<i1> {
  %on = dovetail.iter_arg %a {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %0 = dovetail.yield %on, %a {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  // expected-error@+1 {{is of value 5, which loop 0 does not carry}}
  %1 = dovetail.loop_result %on, %0 {loop = 0 : i64, slot = 5 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  return %1 : tensor<i1>
}

// -----

func.func @behind(%a: tensor<i1>, %b: tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) {
  %on = dovetail.iter_arg %a {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %x = dovetail.iter_arg %b {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = dovetail.yield %on, %a {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %1 = dovetail.yield %x, %b {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = dovetail.loop_result %on, %0 {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  // expected-error@+1 {{reads values that loop 0 carries, after the loop, where they are gone}}
  %3 = dovetail.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %3 : tensor<i1>, tensor<4xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

!split = tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>
!other = tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}]>>

func.func @splits(%a: tensor<i1>, %b: !split, %c: !other) -> !split {
  %on = dovetail.iter_arg %a {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %x = dovetail.iter_arg %b {loop = 0 : i64, slot = 1 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2, 4}]>} : (!split) -> !split
  %0 = dovetail.yield %on, %a {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  // expected-error@+1 {{: values are split alike in each iteration, and after the last}}
  %1 = dovetail.yield %c, %c {loop = 0 : i64, slot = 1 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 1, 4}]>} : (!other, !other) -> !other
  return %b : !split
}
