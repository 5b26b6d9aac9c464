// RUN: dovetail-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{converts to 'bf16', which is a type to compute with; that is a 'cast'}}
  %0 = dovetail.narrow %x {to = bf16} : (tensor<3xf32>) -> tensor<3xbf16>
  return
}

// -----

func.func @f(%x: tensor<3xf16>) {
  // expected-error@+1 {{converts 'f16' to 'f8E5M2'; to floats it converts f32 and f64, to integers i8}}
  %0 = dovetail.narrow %x {to = f8E5M2} : (tensor<3xf16>) -> tensor<3xf8E5M2>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{converts 'f32' to 'i4'; to floats it converts f32 and f64, to integers i8}}
  %0 = dovetail.narrow %x {to = i4} : (tensor<3xf32>) -> tensor<3xi4>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{has the unknown 'round_mode' "away"}}
  %0 = dovetail.narrow %x {to = f8E8M0FNU, round_mode = "away"} : (tensor<3xf32>) -> tensor<3xf8E8M0FNU>
  return
}

// -----

func.func @f(%x: tensor<3xi8>) {
  // expected-error@+1 {{operand #0 must be statically shaped tensor of 8-bit or 4-bit floating-point or 4-bit or 2-bit integer values}}
  %0 = dovetail.widen %x : (tensor<3xi8>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf8E5M2>) {
  // expected-error@+1 {{operand #0 must be statically shaped tensor of floating-point (16 bits or more) or boolean or integer (8 bits or more) values}}
  %0 = dovetail.add %x, %x : (tensor<3xf8E5M2>, tensor<3xf8E5M2>) -> tensor<3xf8E5M2>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{attribute 'to' failed to satisfy constraint}}
  %0 = dovetail.cast %x {to = f8E5M2} : (tensor<3xf32>) -> tensor<3xf8E5M2>
  return
}

// -----

func.func @f(%x: tensor<3xi4>) {
  // expected-error@+1 {{takes the bits of 'i4' as bits of 'i8', which differs in width}}
  %0 = dovetail.bit_cast %x {to = i8} : (tensor<3xi4>) -> tensor<3xi8>
  return
}

// -----

func.func @f(%data: tensor<4xi4>, %indices: tensor<2x1xi64>, %updates: tensor<2xi4>) {
  // expected-error@+2 {{'dovetail.scatter_nd' op that combines needs numbers, but has elements of 'i4', which are only stored}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.scatter_nd %data, %indices, %updates {reduction = #dovetail.reduce_kind<sum>} : (tensor<4xi4>, tensor<2x1xi64>, tensor<2xi4>) -> tensor<4xi4>
  return
}

// -----

func.func @f(%x: tensor<3x4xui8>) {
  // expected-error@+1 {{unpacks 'tensor<3x4xui8>' to 'tensor<7x4xi4>', whose bytes along dimension 0 are 4}}
  %0 = dovetail.unpack %x {dim = 0 : i64} : (tensor<3x4xui8>) -> tensor<7x4xi4>
  return
}

// -----

func.func @f(%x: tensor<3xui8>) {
  // expected-error@+1 {{makes elements of 'f8E5M2'; they have 4 or 2 bits}}
  %0 = dovetail.unpack %x {dim = 0 : i64} : (tensor<3xui8>) -> tensor<3xf8E5M2>
  return
}

// -----

func.func @f(%x: tensor<3xui8>) {
  // expected-error@+1 {{unpacks dimension 1, which 'tensor<6xi4>' does not have}}
  %0 = dovetail.unpack %x {dim = 1 : i64} : (tensor<3xui8>) -> tensor<6xi4>
  return
}
