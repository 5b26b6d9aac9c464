// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file 2>/dev/null | FileCheck %s

// How operations are divided that carry their definitions.

// Exchanges add sums of ranks.

dovetail.mesh @mesh = ["y" = 3]

// CHECK-LABEL: func.func @sum
// CHECK: dovetail.generic({{.*}}) -> tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 2, 5, 9}]>
func.func @sum(%x: tensor<9x4xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 2, 5, 9}>, #dovetail.dim_sharding<{}>]}) -> tensor<4xf32> {
  %0 = dovetail.generic(%x) : (tensor<9x4xf32>) -> tensor<4xf32>
      loops [c = 4, k = 9 reduction]
      reads [0 : (k, c)]
      combine sum body {
    %a = dovetail.read 0 : f32
    %b = math.exp %a : f32
    dovetail.return %b : f32
  }
  return %0 : tensor<4xf32>
}

// -----

// Tuples are combined by the operation itself: one of parts, which ranks divide, and one that combines and finishes them.

dovetail.mesh @mesh = ["y" = 3]

// CHECK-LABEL: func.func @farthest
// CHECK: %[[PARTS:.*]]:2 = dovetail.generic({{.*}}) -> (tensor<23x3xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 2, 3}]>>, tensor<23x3xi64, {{.*}}>)
// CHECK-NEXT: loops [point = 23, other_part = 3, other = 101 part(none) of other_part at [0, 10, 70, 101]]
// CHECK-NEXT: reads [0 : (point, u0), 1 : (u1(other_part -> 0 to 9, 10 to 69, 70 to 100), u0)]
// CHECK-NOT: finish
// CHECK: %[[OTHER:.*]] = dovetail.index other
// CHECK-NEXT: dovetail.read 1(%{{.*}}, %[[OTHER]]) : f32
// CHECK: dovetail.generic(%[[PARTS]]#0, %[[PARTS]]#1)
// CHECK-NEXT: loops [point = 23, part0 = 3 whole(none)]
// CHECK-NEXT: reads [0 : (point, part0), 1 : (point, part0)]
// CHECK: math.sqrt
// CHECK: dovetail.read 1 : i64
func.func @farthest(%p: tensor<23x3xf32>, %q: tensor<101x3xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 10, 70, 101}>, #dovetail.dim_sharding<{}>]}) -> (tensor<23xf32>, tensor<23xi64>) {
  %d, %i = dovetail.generic(%p, %q) : (tensor<23x3xf32>, tensor<101x3xf32>) -> (tensor<23xf32>, tensor<23xi64>)
      loops [point = 23, other = 101 reduction]
      reads [0 : (point, u0), 1 : (other, u0)]
      init {
    %none = arith.constant -1.0 : f32
    %nowhere = arith.constant -1 : i64
    dovetail.return %none, %nowhere : f32, i64
  } combine(%a: f32, %i: i64, %b: f32, %j: i64) {
    %farther = arith.cmpf ogt, %b, %a : f32
    %distance = arith.select %farther, %b, %a : f32
    %place = arith.select %farther, %j, %i : i64
    dovetail.return %distance, %place : f32, i64
  } finish(%a: f32, %i: i64) {
    %distance = math.sqrt %a : f32
    dovetail.return %distance, %i : f32, i64
  } body {
    %c0 = arith.constant 0 : index
    %a = dovetail.read 0(%c0) : f32
    %b = dovetail.read 1(%c0) : f32
    %d = arith.subf %a, %b : f32
    %e = arith.mulf %d, %d : f32
    %other = dovetail.index other
    %place = arith.index_cast %other : index to i64
    dovetail.return %e, %place : f32, i64
  }
  return %d, %i : tensor<23xf32>, tensor<23xi64>
}

// -----

// A scan begins anew at the cuts, from a scan of what parts come to. These are as accumulators are.

dovetail.mesh @mesh = ["y" = 3]

// CHECK-LABEL: func.func @scan
// CHECK: %[[TOTALS:.*]] = dovetail.generic(%arg0) : ({{.*}}) -> tensor<3x4xf32,
// CHECK-NEXT: loops [t_part = 3, c = 4, t = 9 part of t_part at [0, 2, 5, 9]]
// CHECK-NEXT: reads [0 : (u0(t_part -> 0 to 1, 2 to 4, 5 to 8), c)]
// CHECK-NEXT: combine sum body {
// CHECK: arith.extf
// CHECK: %[[STARTS:.*]] = dovetail.generic(%[[TOTALS]]) : ({{.*}}) -> tensor<3x4xf32,
// CHECK: scan t exclusive
// CHECK: dovetail.generic(%arg0, %[[STARTS]])
// CHECK-NEXT: loops [t = 9 scan, c = 4]
// CHECK-NEXT: reads [0 : (t, c), 1 : (u0, c)]
// CHECK-NEXT: scan t restarts [0, 2, 5, 9] start 1
// CHECK-NEXT: combine sum body {
func.func @scan(%x: tensor<9x4xf16> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 2, 5, 9}>, #dovetail.dim_sharding<{}>]}) -> tensor<9x4xf16> {
  %0 = dovetail.generic(%x) : (tensor<9x4xf16>) -> tensor<9x4xf16>
      loops [t = 9 scan, c = 4]
      reads [0 : (t, c)]
      scan t
      combine sum body {
    %a = dovetail.read 0 : f16
    dovetail.return %a : f16
  }
  return %0 : tensor<9x4xf16>
}

// -----

// What is finished cannot be combined by exchanges, though it is combined by a kind. Parts keep the sign of elements.

dovetail.mesh @mesh = ["y" = 3]

// CHECK-LABEL: func.func @half
// CHECK: -> tensor<4x3xui8,
// CHECK-NEXT: loops [c = 4, k_part = 3, k = 9 part(none) of k_part at [0, 2, 5, 9]]
// CHECK-NOT: shrui
// CHECK: loops [c = 4, part0 = 3 whole(none)]
// CHECK: combine max finish(%{{.*}}: i8) {
// CHECK: arith.shrui
func.func @half(%x: tensor<9x4xui8> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 2, 5, 9}>, #dovetail.dim_sharding<{}>]}) -> tensor<4xui8> {
  %0 = dovetail.generic(%x) : (tensor<9x4xui8>) -> tensor<4xui8>
      loops [c = 4, k = 9 reduction(none)]
      reads [0 : (k, c)]
      combine max finish(%m: i8) {
    %one = arith.constant 1 : i8
    %s = arith.shrui %m, %one : i8
    dovetail.return %s : i8
  } body {
    %a = dovetail.read 0 : i8
    dovetail.return %a : i8
  }
  return %0 : tensor<4xui8>
}

// -----

// A window over a loop that it divides: where terms may lie outside, they are not read by parts.

dovetail.mesh @mesh = ["y" = 3]

// CHECK-LABEL: func.func @window
// CHECK: dovetail.generic
// CHECK-NEXT: loops [c = 1, k = 9 reduction(none), t = 3 tap]
// CHECK-NOT: dovetail.generic
func.func @window(%x: tensor<9xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 2, 5, 9}>]}) -> tensor<1xf32> {
  %0 = dovetail.generic(%x) : (tensor<9xf32>) -> tensor<1xf32>
      loops [c = 1, k = 9 reduction, t = 3 tap]
      reads [0 : (k + t - 1)]
      init {
    %i = arith.constant 0.0 : f32
    dovetail.return %i : f32
  } combine(%a: f32, %b: f32) {
    %m = arith.maxnumf %a, %b : f32
    dovetail.return %m : f32
  } body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return %0 : tensor<1xf32>
}
