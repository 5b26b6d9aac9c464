// RUN: dovetail-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>, %y: tensor<2xf32>) {
  // expected-error@+2 {{'dovetail.add' op has operands that do not broadcast: 'tensor<2x3xf32>' 'tensor<2xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.add %x, %y : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>, %y: tensor<3xf16>) {
  // expected-error@+1 {{all of {lhs, rhs} have same element type}}
  %0 = dovetail.add %x, %y : (tensor<3xf32>, tensor<3xf16>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+2 {{op inferred type(s) 'tensor<3xf32>' are incompatible with return type(s) of operation 'tensor<4xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.exp %x : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error@+1 {{operand #0 must be statically shaped tensor of floating-point (16 bits or more) values}}
  %0 = dovetail.exp %x : (tensor<3xi32>) -> tensor<3xi32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{operand #0 must be statically shaped tensor of 1-bit signless integer values}}
  %0 = dovetail.and %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<?xf32>) {
  // expected-error@+1 {{operand #0 must be statically shaped tensor}}
  %0 = dovetail.exp %x : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{has approximate = "quick"; it is "none" or "tanh"}}
  %0 = dovetail.gelu %x {approximate = "quick"} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<3xui8>) {
  // expected-error@+1 {{has direction = "UP"; it is "LEFT" or "RIGHT"}}
  %0 = dovetail.bit_shift %x, %x {direction = "UP"} : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
  return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error@+1 {{has a condition of type 'tensor<3xi32>'; its elements must be i1}}
  %0 = dovetail.select %x, %x, %x : (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
  return
}

// -----

func.func @f(%c: tensor<3xi1>, %x: tensor<3xi32>, %y: tensor<3xf32>) {
  // expected-error@+1 {{selects between different element types: 'tensor<3xi32>' and 'tensor<3xf32>'}}
  %0 = dovetail.select %c, %x, %y : (tensor<3xi1>, tensor<3xi32>, tensor<3xf32>) -> tensor<3xi32>
  return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error@+1 {{attribute 'to' failed to satisfy constraint}}
  %0 = dovetail.cast %x {to = index} : (tensor<3xi32>) -> tensor<3xi32>
  return
}

// -----

func.func @f(%0: tensor<2xf32>) {
  // expected-error@+1 {{takes the bits of 'f32' as bits of 'i16', which differs in width}}
  %r = dovetail.bit_cast %0 {to = i16} : (tensor<2xf32>) -> tensor<2xi16>
  return
}
