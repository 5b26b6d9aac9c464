// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(dovetail-convert-formats{libraries=onednn}))'

func.func @library(%x: tensor<4x4xf32> {plan.format = #plan.format<[0, 1]>}) -> tensor<4x4xf32> {
  // expected-error@+1 {{is done by library "cublaslt", which is not at hand}}
  %0 = plan.group(%a = %x, %b = %x) by "cublaslt" attributes {plan.formats = [#plan.format<[0, 1]>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    %p = dovetail.matmul %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %p : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

// -----

func.func @formats(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{reads or gives values without memory formats; dovetail-choose-formats chooses them}}
  %0 = plan.group(%a = %x, %b = %x) by "onednn" attributes {plan.formats = [#plan.format<[0, 1]>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    %p = dovetail.matmul %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %p : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

// -----

func.func @constant(%x: tensor<4x4xf32> {plan.format = #plan.format<[0, 1]>}) -> tensor<4x4xf32> {
  // expected-error@+1 {{has a call whose operand 1 is not an operand of the group}}
  %0 = plan.group(%a = %x) by "onednn" attributes {plan.formats = [#plan.format<[0, 1]>]} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    %c = dovetail.constant dense<1.0> : tensor<4x4xf32>
    %p = dovetail.matmul %a, %c : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %p : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}
