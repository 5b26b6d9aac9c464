// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(dovetail-to-plan)'

// expected-error@below {{has no mesh; a program needs a mesh of one rank or more}}
module {
}

// -----

dovetail.mesh @mesh = ["y" = 1]
// expected-error@+1 {{argument 0 of "argument" lies nowhere in memory; dovetail-share-storage decides where}}
func.func @argument(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 1]
func.func @group(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{is in no group; dovetail-form-calls and dovetail-fuse-kernels form groups}}
  %0 = dovetail.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  plan.storage arena tensor<4xf32> <[0]> of %x : tensor<4xf32>
  plan.storage arena tensor<4xf32> <[0]> of %0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 1]
func.func @result(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{reads or gives a value that lies nowhere in memory; dovetail-share-storage decides where}}
  %0 = plan.group(%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %1 = dovetail.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %1 : tensor<4xf32>
  }
  plan.storage arena tensor<4xf32> <[0]> of %x : tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

// What is read is not written over.

dovetail.mesh @mesh = ["y" = 1]
func.func @over(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{writes over operand 0}}
  %0 = plan.group(%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %1 = dovetail.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %1 : tensor<4xf32>
  }
  plan.storage arena tensor<4xf32> <[0]> of %x, %0 : tensor<4xf32>, tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 1]
func.func @place(%x: tensor<4x4xf32>, %i: tensor<4x1xi64>) -> tensor<4x4xf32> {
  %n = plan.group(%a = %x) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    %1 = dovetail.neg %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %1 : tensor<4x4xf32>
  }
  // expected-error@+1 {{is in place, but does not write over operand 0}}
  %0 = plan.group(%a = %n, %b = %i, %c = %x) attributes {in_place = 0} : (tensor<4x4xf32>, tensor<4x1xi64>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    %1 = dovetail.scatter_nd %a, %b, %c : (tensor<4x4xf32>, tensor<4x1xi64>, tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %1 : tensor<4x4xf32>
  }
  plan.storage arena tensor<4x4xf32> <[0, 1]> of %x : tensor<4x4xf32>
  plan.storage arena tensor<4x1xi64> <[0, 1]> of %i : tensor<4x1xi64>
  plan.storage arena tensor<4x4xf32> <[0, 1]> of %n : tensor<4x4xf32>
  plan.storage arena tensor<4x4xf32> <[0, 1]> of %0 : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// Rank 0 does not have row 4.

dovetail.mesh @mesh = ["y" = 2]
!own = tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>>
!halo = tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (4, 8)}]>>
func.func @lacking(%x: !own) -> !halo {
  // expected-error@+1 {{is a view, but ranks lack elements of its result}}
  %0 = dovetail.reshard %x {plan.view} : !own -> !halo
  plan.storage arena !halo <[0]> of %x, %0 : !own, !halo
  return %0 : !halo
}

// -----

// What is only made if a condition holds is not there for all.

dovetail.mesh @mesh = ["y" = 1]
func.func @reader(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  plan.begin_choice %c : tensor<i1>
  // expected-note@+1 {{it is made here}}
  %0 = plan.group(%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %2 = dovetail.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %2 : tensor<4xf32>
  }
  plan.end_choice
  // expected-error@+1 {{reads operand 1, which is made by a choice that it is not part of; only kernels that choose by the same condition may}}
  %1 = plan.group(%a = %x, %b = %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    %2 = dovetail.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    plan.yield %2 : tensor<4xf32>
  }
  plan.storage arena tensor<i1> <[]> of %c : tensor<i1>
  plan.storage arena tensor<4xf32> <[0]> of %x : tensor<4xf32>
  plan.storage arena tensor<4xf32> <[0]> of %0 : tensor<4xf32>
  plan.storage arena tensor<4xf32> <[0]> of %1 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A kernel that chooses takes the side of the condition that made it, and not the other one.

dovetail.mesh @mesh = ["y" = 1]
func.func @side(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  plan.begin_choice %c : tensor<i1>
  // expected-note@+1 {{it is made here}}
  %0 = plan.group(%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %2 = dovetail.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %2 : tensor<4xf32>
  }
  plan.end_choice
  // expected-error@+1 {{reads operand 2, which is made by a choice that it is not part of}}
  %1 = plan.group(%d = %c, %a = %x, %b = %0) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    %2 = dovetail.neg %b : (tensor<4xf32>) -> tensor<4xf32>
    %3 = dovetail.if %d, %a, %2 {choice = 0 : i64} : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    plan.yield %3 : tensor<4xf32>
  }
  plan.storage arena tensor<i1> <[]> of %c : tensor<i1>
  plan.storage arena tensor<4xf32> <[0]> of %x : tensor<4xf32>
  plan.storage arena tensor<4xf32> <[0]> of %0 : tensor<4xf32>
  plan.storage arena tensor<4xf32> <[0]> of %1 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// An index that nobody has computed is nowhere, whatever becomes of the element.

dovetail.mesh @mesh = ["y" = 1]
func.func @index(%c: tensor<i1>, %x: tensor<4xf32>, %i: tensor<4xi64>) -> tensor<4xf32> {
  plan.begin_choice %c : tensor<i1>
  // expected-note@+1 {{it is made here}}
  %0 = plan.group(%a = %i) : (tensor<4xi64>) -> tensor<4xi64> {
    %2 = dovetail.neg %a : (tensor<4xi64>) -> tensor<4xi64>
    plan.yield %2 : tensor<4xi64>
  }
  plan.end_choice
  // expected-error@+1 {{takes indices of what is made by a choice that it is not part of}}
  %1 = plan.group(%d = %c, %a = %x, %b = %0) : (tensor<i1>, tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32> {
    %2 = dovetail.gather_elements %a, %b {axis = 0 : si64} : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
    %3 = dovetail.if %d, %2, %a {choice = 0 : i64} : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    plan.yield %3 : tensor<4xf32>
  }
  plan.storage arena tensor<i1> <[]> of %c : tensor<i1>
  plan.storage arena tensor<4xf32> <[0]> of %x : tensor<4xf32>
  plan.storage arena tensor<4xi64> <[0]> of %i : tensor<4xi64>
  plan.storage arena tensor<4xi64> <[0]> of %0 : tensor<4xi64>
  plan.storage arena tensor<4xf32> <[0]> of %1 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// What is given back is there whatever is chosen.

dovetail.mesh @mesh = ["y" = 1]
func.func @given(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  plan.begin_choice not %c : tensor<i1>
  // expected-note@+1 {{it is made here}}
  %0 = plan.group(%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %2 = dovetail.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %2 : tensor<4xf32>
  }
  plan.end_choice
  plan.storage arena tensor<i1> <[]> of %c : tensor<i1>
  plan.storage arena tensor<4xf32> <[0]> of %x : tensor<4xf32>
  plan.storage arena tensor<4xf32> <[0]> of %0 : tensor<4xf32>
  // expected-error@+1 {{reads operand 0, which is made by a choice that it is not part of}}
  return %0 : tensor<4xf32>
}
