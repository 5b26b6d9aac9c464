// RUN: dovetail-opt %s | dovetail-opt | FileCheck %s
// RUN: dovetail-opt %s --mlir-print-op-generic | dovetail-opt | FileCheck %s
// RUN: dovetail-opt %s --canonicalize --cse --cse | dovetail-opt | FileCheck %s --check-prefix=SIMPLE

// A sum of products: reductions add as `combine` says.
// CHECK-LABEL: func.func @products
// CHECK: %[[R:.*]] = dovetail.generic(%{{.*}}, %{{.*}}) : (tensor<1x8x20x20xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x18x18xf32> attributes {note = "first"}
// CHECK-NEXT: loops [n = 1, o = 4, y = 18, x = 18, c = 8 reduction(sum), ky = 3 tap, kx = 3 tap]
// CHECK-NEXT: reads [0 : (n, c, y + ky, x + kx), 1 : (o, c, ky, kx)]
// CHECK-NEXT: {{^}}        combine sum body {
// CHECK-NEXT: %[[A:.*]] = dovetail.read 0 : f32
// CHECK-NEXT: %[[B:.*]] = dovetail.read 1 : f32
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT: dovetail.return %[[P]] : f32
// CHECK-NEXT: {{^}}    }
func.func @products(%x: tensor<1x8x20x20xf32>, %w: tensor<4x8x3x3xf32>) -> tensor<1x4x18x18xf32> {
  %r = dovetail.generic(%x, %w) : (tensor<1x8x20x20xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x18x18xf32>
      attributes {note = "first"}
      loops [n = 1, o = 4, y = 18, x = 18, c = 8 reduction, ky = 3 tap, kx = 3 tap]
      reads [0 : (n, c, y + ky, x + kx), 1 : (o, c, ky, kx)]
      combine sum body {
    %a = dovetail.read 0 : f32
    %b = dovetail.read 1 : f32
    %p = arith.mulf %a, %b : f32
    dovetail.return %p : f32
  }
  return %r : tensor<1x4x18x18xf32>
}

// An element may be missing, and reads may be at other iterations.
// CHECK-LABEL: func.func @guards
// CHECK: loops [y = 6, row = 4 reduction(sum)]
// CHECK-NEXT: reads [0 : (y - 1), 0 : (row), 0 : (exact((y) / 2))]
// CHECK-NEXT: {{^}}        body {
// CHECK: dovetail.inside 0 dim 0
// CHECK: dovetail.inside 2
// CHECK: %[[F:.*]], %[[E:.*]] = dovetail.bounds row
// CHECK: scf.for %[[I:.*]] = %[[F]] to %[[E]]
// CHECK: dovetail.position 1 at [row = %[[I]]] : index
// CHECK: dovetail.read 1 at [row = %[[I]]] : f32
func.func @guards(%x: tensor<4xf32>) -> tensor<6xf32> {
  %r = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<6xf32>
      loops [y = 6, row = 4 reduction(sum)]
      reads [0 : (y - 1), 0 : (row), 0 : (exact((y) / 2))]
      body {
    %zero = arith.constant 0.0 : f32
    %c1 = arith.constant 1 : index
    %in = dovetail.inside 0 dim 0
    %a = scf.if %in -> f32 {
      %b = dovetail.read 0 : f32
      scf.yield %b : f32
    } else {
      scf.yield %zero : f32
    }
    %whole = dovetail.inside 2
    %both = arith.andi %whole, %in : i1
    %c = scf.if %both -> f32 {
      %b = dovetail.read 2 : f32
      scf.yield %b : f32
    } else {
      scf.yield %zero : f32
    }
    %s = arith.addf %a, %c : f32
    %first, %end = dovetail.bounds row
    %t = scf.for %i = %first to %end step %c1 iter_args(%sum = %s) -> f32 {
      %p = dovetail.position 1 at [row = %i] : index
      %j = arith.index_cast %p : index to i64
      %k = arith.sitofp %j : i64 to f32
      %b = dovetail.read 1 at [row = %i] : f32
      %d = arith.mulf %b, %k : f32
      %u = arith.addf %sum, %d : f32
      scf.yield %u : f32
    }
    dovetail.return %t : f32
  }
  return %r : tensor<6xf32>
}

// A lookup, and a table of intervals in which an unknown value is.
// CHECK-LABEL: func.func @lookups
// CHECK: loops [y = 3, row = 9 reduction(owner) by 1]
// CHECK-NEXT: reads [0 : (row, u0(y -> 0, 1 to 2, 3)), 1 : (y)]
// CHECK: %[[OWN:.*]], %[[ROW:.*]] = dovetail.look_up row
// CHECK: scf.if %[[OWN]]
// CHECK: dovetail.read 0(%{{.*}}) at [row = %[[ROW]]] : i8
func.func @lookups(%x: tensor<9x4xui8>, %i: tensor<3xi32>) -> tensor<3xui8> {
  %r = dovetail.generic(%x, %i) : (tensor<9x4xui8>, tensor<3xi32>) -> tensor<3xui8>
      loops [y = 3, row = 9 reduction(owner) by 1]
      reads [0 : (row, u0(y -> 0, 1 to 2, 3)), 1 : (y)]
      body {
    %zero = arith.constant 0 : i8
    %own, %row = dovetail.look_up row
    %y = dovetail.index y
    %a = scf.if %own -> i8 {
      %b = dovetail.read 0(%y) at [row = %row] : i8
      scf.yield %b : i8
    } else {
      scf.yield %zero : i8
    }
    dovetail.return %a : i8
  }
  return %r : tensor<3xui8>
}

// Regions say how terms become one.
// CHECK-LABEL: func.func @tuples
// CHECK: %{{.*}}:2 = dovetail.generic
// CHECK-NEXT: loops [y = 3, k = 5 reduction(none)]
// CHECK-NEXT: reads [0 : (y, k)]
// CHECK-NEXT: {{^}}        init {
// CHECK: } combine(%{{.*}}: f32, %{{.*}}: i64, %{{.*}}: f32, %{{.*}}: i64) {
// CHECK: } finish(%{{.*}}: f32, %{{.*}}: i64) {
// CHECK: } body {
// CHECK: dovetail.index k
func.func @tuples(%x: tensor<3x5xf16>) -> (tensor<3xf16>, tensor<3xi64>) {
  %v, %p = dovetail.generic(%x) : (tensor<3x5xf16>) -> (tensor<3xf16>, tensor<3xi64>)
      loops [y = 3, k = 5 reduction]
      reads [0 : (y, k)]
      init {
    %none = arith.constant 0xFF800000 : f32
    %nowhere = arith.constant -1 : i64
    dovetail.return %none, %nowhere : f32, i64
  } combine(%a: f32, %i: i64, %b: f32, %j: i64) {
    %more = arith.cmpf ogt, %b, %a : f32
    %c = arith.select %more, %b, %a : f32
    %k = arith.select %more, %j, %i : i64
    dovetail.return %c, %k : f32, i64
  } finish(%a: f32, %i: i64) {
    %v = arith.truncf %a : f32 to f16
    dovetail.return %v, %i : f16, i64
  } body {
    %a = dovetail.read 0 : f16
    %b = arith.extf %a : f16 to f32
    %k = dovetail.index k
    %i = arith.index_cast %k : index to i64
    dovetail.return %b, %i : f32, i64
  }
  return %v, %p : tensor<3xf16>, tensor<3xi64>
}

// Passes over all terms, and terms of parts.
// CHECK-LABEL: func.func @passes
// CHECK: loops [p = 2, k = 8 part of p at [0, 3, 8]]
// CHECK-NEXT: reads [0 : (u0(p -> 0 to 2, 3 to 7))]
// CHECK-NEXT: passes [max : f32, sum : f32]
// CHECK-NEXT: {{^}}        combine sum pass {
// CHECK: } pass(%[[MOST:.*]]: f32) {
// CHECK: } found(%[[FOLDED:.*]]: f32, %[[COUNT:.*]]: index) {
// CHECK: } block(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: index) {
func.func @passes(%x: tensor<8xf32>) -> tensor<2xf32> {
  %r = dovetail.generic(%x) : (tensor<8xf32>) -> tensor<2xf32>
      loops [p = 2, k = 8 part of p at [0, 3, 8]]
      reads [0 : (u0(p -> 0 to 2, 3 to 7))]
      passes [max : f32, sum : f32]
      combine sum pass {
    %k = dovetail.index k
    %a = dovetail.read 0(%k) : f32
    dovetail.return %a : f32
  } pass(%most: f32) {
    %k = dovetail.index k
    %a = dovetail.read 0(%k) : f32
    %d = arith.subf %a, %most : f32
    dovetail.return %d : f32
  } found(%sum: f32, %count: index) {
    %n = arith.index_cast %count : index to i64
    %m = arith.sitofp %n : i64 to f32
    %mean = arith.divf %sum, %m : f32
    dovetail.return %mean : f32
  } block(%most: f32, %mean: f32, %count: index) {
    %s = arith.addf %most, %mean : f32
    dovetail.return %s : f32
  }
  return %r : tensor<2xf32>
}

// A scan, and writes where data say.
// CHECK-LABEL: func.func @lines
// CHECK: loops [t = 6 scan, c = 2]
// CHECK-NEXT: reads [0 : (t, c), 1 : (u0, c)]
// CHECK-NEXT: scan t restarts [0, 4, 6] reversed exclusive start 1
// CHECK-NEXT: {{^}}        combine prod body {
// CHECK: loops [t = 6, c = 2, k = 3 tap]
// CHECK-NEXT: reads [0 : (t, c), 1 : (k, c), 2 : (k)]
// CHECK-NEXT: writes (u0, c) by 2
// CHECK-NEXT: {{^}}        combine(%{{.*}}: f32, %[[NEW:.*]]: f32) {
// CHECK-NEXT: dovetail.return %[[NEW]] : f32
func.func @lines(%x: tensor<6x2xf32>, %s: tensor<2x2xf32>, %u: tensor<3x2xf32>, %i: tensor<3xi64>) -> tensor<6x2xf32> {
  %r = dovetail.generic(%x, %s) : (tensor<6x2xf32>, tensor<2x2xf32>) -> tensor<6x2xf32>
      loops [t = 6 scan, c = 2]
      reads [0 : (t, c), 1 : (u0, c)]
      scan t restarts [0, 4, 6] reversed exclusive start 1
      combine prod body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  %q = dovetail.generic(%r, %u, %i) : (tensor<6x2xf32>, tensor<3x2xf32>, tensor<3xi64>) -> tensor<6x2xf32>
      loops [t = 6, c = 2, k = 3 tap]
      reads [0 : (t, c), 1 : (k, c), 2 : (k)]
      writes (u0, c) by 2
      combine(%old: f32, %new: f32) {
    dovetail.return %new : f32
  } body {
    %a = dovetail.read 1 : f32
    dovetail.return %a : f32
  }
  return %q : tensor<6x2xf32>
}

// Equal generics are one, and their code is simplified.
// SIMPLE-LABEL: func.func @equal
// SIMPLE: %[[R:.*]] = dovetail.generic
// SIMPLE-NEXT: loops [y = 4]
// SIMPLE-NEXT: reads [0 : (y)]
// SIMPLE-NEXT: body {
// SIMPLE-NEXT: %[[A:.*]] = dovetail.read 0 : f32
// SIMPLE-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[A]] : f32
// SIMPLE-NEXT: dovetail.return %[[S]] : f32
// SIMPLE-NEXT: }
// SIMPLE-NEXT: return %[[R]], %[[R]]
func.func @equal(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    %a = dovetail.read 0 : f32
    %b = dovetail.read 0 : f32
    %s = arith.addf %a, %b : f32
    dovetail.return %s : f32
  }
  %1 = dovetail.generic(%x) : (tensor<4xf32>) -> tensor<4xf32>
      loops [y = 4] reads [0 : (y)] body {
    %a = dovetail.read 0 : f32
    %s = arith.addf %a, %a : f32
    dovetail.return %s : f32
  }
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
