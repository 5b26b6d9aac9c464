// RUN: dovetail-opt %s -split-input-file -verify-diagnostics

func.func @formats(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{has 1 results, which plan.formats = [#plan.format<[0, 1]>, #plan.format<[0, 1]>] does not fit}}
  %0 = dovetail.neg %x {plan.formats = [#plan.format<[0, 1]>, #plan.format<[0, 1]>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @rank(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{result 0 of type 'tensor<4x4xf32>' cannot have format #plan.format<[0]>}}
  %0 = dovetail.neg %x {plan.formats = [#plan.format<[0]>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// expected-error@+1 {{argument 1 of type 'tensor<4xf32>' cannot have format 3 : i64}}
func.func @argument(%x: tensor<4x4xf32>, %y: tensor<4xf32> {plan.format = 3 : i64}) {
  return
}

// -----

// expected-error@+1 {{has an attribute "plan.order", which the plan dialect does not have}}
func.func @order(%x: tensor<4x4xf32> {plan.order = 3 : i64}) {
  return
}

// -----

func.func @value(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has plan.generated = 3 : i64, which has no value to be}}
  %0 = dovetail.neg %x {plan.generated = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @both() -> tensor<4xf32> {
  %c = dovetail.constant dense<1.0> : tensor<4xf32>
  // expected-error@+1 {{is part of the prologue, but computed in each run}}
  %0 = dovetail.neg %c {plan.each_run, plan.prologue} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has an attribute "plan.fast", which the plan dialect does not have}}
  %0 = dovetail.neg %x {plan.fast} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @prologue(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = dovetail.constant dense<1.0> : tensor<4xf32>
  // expected-error@+1 {{is part of the prologue, but operand 1 is neither constant nor part of it}}
  %0 = dovetail.add %c, %x {plan.prologue} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @view(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has plan.view, but is not a reshard}}
  %0 = dovetail.neg %x {plan.view} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @elsewhere(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{is a view, but its operand does not lie in the memory of its result}}
  %0 = dovetail.reshard %x {plan.view} : tensor<4xf32> -> tensor<4xf32>
  plan.storage arena tensor<4xf32> <[0]> of %x : tensor<4xf32>
  plan.storage arena tensor<4xf32> <[0]> of %0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @arguments(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has operands of other types than the arguments of its body}}
  %0 = "plan.group"(%x) ({
  ^bb0(%a: tensor<5xf32>):
    %1 = dovetail.neg %a : (tensor<5xf32>) -> tensor<5xf32>
    plan.yield %1 : tensor<5xf32>
  }) : (tensor<4xf32>) -> tensor<5xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @results(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has results of other types than it yields}}
  %0 = plan.group(%a = %x) : (tensor<4xf32>) -> tensor<5xf32> {
    %1 = dovetail.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %1 : tensor<4xf32>
  }
  return %x : tensor<4xf32>
}

// -----

func.func @root(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{does not yield the results of its last operation}}
  %0 = plan.group(%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %1 = dovetail.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    %2 = dovetail.exp %1 : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @empty(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{does not yield the results of its last operation}}
  %0 = plan.group(%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    plan.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @members(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = plan.group(%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{cannot be in a plan.group}}
    %1 = dovetail.reshard %a : tensor<4xf32> -> tensor<4xf32>
    %2 = dovetail.neg %1 : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @epilogue(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{has dovetail.exp, which is not a step of an epilogue}}
  %0 = plan.group(%a = %x, %b = %x) by "onednn" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    %1 = dovetail.matmul %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = dovetail.exp %1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %2 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

// -----

// A call stores what it computes once.

func.func @twice(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{has dovetail.add, which is not a step of an epilogue}}
  %0 = plan.group(%a = %x, %b = %x) by "onednn" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    %1 = dovetail.matmul %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = dovetail.add %1, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %2 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

// -----

// What the user gave is read again.

func.func @argument(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{is in place, but operand 0 cannot be written over}}
  %0 = plan.group(%a = %x) attributes {in_place = 0} : (tensor<4xf32>) -> tensor<4xf32> {
    %1 = dovetail.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @reversed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %n = dovetail.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{is in place, but operand 0 cannot be written over}}
  %0 = plan.group(%a = %n) attributes {in_place = 0} : (tensor<4xf32>) -> tensor<4xf32> {
    %1 = dovetail.slice %a {starts = array<i64: 3>, sizes = array<i64: 4>, steps = array<i64: -1>} : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @number(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{is in place, but has not one result and an operand 1}}
  %0 = plan.group(%a = %x) attributes {in_place = 1} : (tensor<4xf32>) -> tensor<4xf32> {
    %1 = dovetail.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A call has its result where an operand of the same type is.

func.func @call(%x: tensor<4x2xf32>, %w: tensor<2x4xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{is in place, but operand 0 is of another type than its result}}
  %0 = plan.group(%a = %x, %b = %w) by "onednn" attributes {in_place = 0 : i64} : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32> {
    %1 = dovetail.matmul %a, %b : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    plan.yield %1 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

// -----

// The data are updates, too.

func.func @updates(%x: tensor<4x4xf32>, %i: tensor<4x1xi64>) -> tensor<4x4xf32> {
  %n = dovetail.neg %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error@+1 {{is in place, but operand 0 cannot be written over}}
  %0 = plan.group(%a = %n, %b = %i) attributes {in_place = 0} : (tensor<4x4xf32>, tensor<4x1xi64>) -> tensor<4x4xf32> {
    %1 = dovetail.scatter_nd %a, %b, %a : (tensor<4x4xf32>, tensor<4x1xi64>, tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %1 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

// -----

func.func @nothing() {
  // expected-error@+1 {{holds no value}}
  "plan.storage"() {kind = #plan<buffer_kind arena>, tensor_type = tensor<4xf32>, format = #plan.format<[0]>} : () -> ()
  return
}

// -----

func.func @order(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{cannot hold 'tensor<4x4xf32>' in a format of 1 dimensions}}
  plan.storage arena tensor<4x4xf32> <[0]> of %x : tensor<4x4xf32>
  return
}

// -----

func.func @type(%x: tensor<4xf32>) {
  // expected-error@+1 {{of 'tensor<5xf32>' cannot hold value 0 of type 'tensor<4xf32>'}}
  plan.storage arena tensor<5xf32> <[0]> of %x : tensor<4xf32>
  return
}

// -----

func.func @format(%x: tensor<4x4xf32> {plan.format = #plan.format<[0, 1]>}) {
  // expected-error@+1 {{of format #plan.format<[1, 0]> cannot hold value 0 of format #plan.format<[0, 1]>}}
  plan.storage arena tensor<4x4xf32> <[1, 0]> of %x : tensor<4x4xf32>
  return
}

// -----

func.func @places(%x: tensor<4xf32>) {
  // expected-error@+1 {{holds value 0, which lies elsewhere, too}}
  plan.storage arena tensor<4xf32> <[0]> of %x : tensor<4xf32>
  plan.storage arena tensor<4xf32> <[0]> of %x : tensor<4xf32>
  return
}

// -----

func.func @constant() {
  %c = dovetail.constant dense<1.0> : tensor<4xf32>
  // expected-error@+1 {{holds a constant, but is not constant}}
  plan.storage arena tensor<4xf32> <[0]> of %c : tensor<4xf32>
  return
}

// -----

func.func @variable(%x: tensor<4xf32>) {
  // expected-error@+1 {{is constant, but does not hold one}}
  plan.storage constant tensor<4xf32> <[0]> of %x : tensor<4xf32>
  return
}

// -----

func.func @second(%x: tensor<4xf32>) {
  %c = dovetail.constant dense<1.0> : tensor<4xf32>
  // expected-error@+1 {{holds a constant that is not its first value}}
  plan.storage arena tensor<4xf32> <[0]> of %x, %c : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @kept(%x: tensor<4xf32>) {
  // expected-error@+1 {{holds value 0, which is not a result of the prologue}}
  plan.storage persistent tensor<4xf32> <[0]> of %x : tensor<4xf32>
  return
}

// -----

func.func @lost() {
  %c = dovetail.constant dense<1.0> : tensor<4xf32>
  %0 = dovetail.neg %c {plan.prologue} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{holds value 0, which is a result of the prologue}}
  plan.storage arena tensor<4xf32> <[0]> of %0 : tensor<4xf32>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2]
func.func @outside(%x: tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 5, 8}]>>) {
  // expected-error@+1 {{reaches outside of its buffer: in dimension 0, piece 0 of the value is [0, 5), but the buffer holds [0, 4)}}
  plan.storage arena tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>> <[0]> of %x : tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 5, 8}]>>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2]
func.func @partial(%x: tensor<8xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>) {
  // expected-error@+1 {{is partial; that is a property of the values in a buffer}}
  plan.storage arena tensor<8xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>> <[0]> of %x : tensor<8xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2]
func.func @axis(%x: tensor<8xf32>) {
  // expected-error@+1 {{axis "z"}}
  plan.storage arena tensor<8xf32, #dovetail.sharding<@mesh, [{"z" : 0, 4, 8}]>> <[0]> of %x : tensor<8xf32>
  return
}
