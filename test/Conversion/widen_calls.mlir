// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-widen-calls{libraries=onednn}),dovetail-verify-partition)' | FileCheck %s --check-prefixes=CHECK,OLD
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-widen-calls{libraries=onednn features=avx512f,avx512bf16}),dovetail-verify-partition)' | FileCheck %s --check-prefixes=CHECK,NEW
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-widen-calls{libraries=cudnn,cublaslt}),dovetail-verify-partition)' | FileCheck %s --check-prefix=NONE
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-widen-calls),dovetail-verify-partition)' | FileCheck %s --check-prefix=NONE

// Libraries of devices have both types, and without libraries there is nothing to widen.
// NONE-LABEL: func.func @half
// NONE-NOT: dovetail.cast
// NONE-LABEL: func.func @normalised
// NONE: dovetail.conv {{.*}} -> tensor<1x8x6x6xf16>
// NONE-LABEL: func.func @halo
// NONE-NOT: dovetail.cast

// oneDNN has no f16: the operands are converted, and what the call does after the sum, bounds and a second tensor
// included, comes before the one rounding.

// CHECK-LABEL: func.func @half
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<1x4x8x8xf16>, %[[W:[a-z0-9]+]]: tensor<8x4x3x3xf16>, %[[Z:[a-z0-9]+]]: tensor<1x8x8x8xf16>
// CHECK-DAG: %[[WX:.*]] = dovetail.cast %[[X]] {to = f32}
// CHECK-DAG: %[[WW:.*]] = dovetail.cast %[[W]] {to = f32}
// CHECK-DAG: %[[SIX:.*]] = dovetail.constant dense<6.000000e+00> : tensor<f32>
// CHECK: %[[SUM:.*]] = dovetail.conv %[[WX]], %[[WW]] {{.*}} -> tensor<1x8x8x8xf32>
// CHECK: %[[WZ:.*]] = dovetail.cast %[[Z]] {to = f32}
// CHECK: %[[ADDED:.*]] = dovetail.add %[[SUM]], %[[WZ]]
// CHECK: %[[LOW:.*]] = dovetail.relu %[[ADDED]]
// CHECK: %[[HIGH:.*]] = dovetail.min %[[LOW]], %[[SIX]]
// CHECK: %[[Y:.*]] = dovetail.cast %[[HIGH]] {to = f16}
// CHECK: %[[E:.*]] = dovetail.exp %[[Y]] : (tensor<1x8x8x8xf16>) -> tensor<1x8x8x8xf16>
// CHECK: return %[[E]]
func.func @half(%x: tensor<1x4x8x8xf16>, %w: tensor<8x4x3x3xf16>, %z: tensor<1x8x8x8xf16>) -> tensor<1x8x8x8xf16> {
  %six = dovetail.constant dense<6.0> : tensor<f16>
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x4x8x8xf16>, tensor<8x4x3x3xf16>) -> tensor<1x8x8x8xf16>
  %1 = dovetail.add %0, %z : (tensor<1x8x8x8xf16>, tensor<1x8x8x8xf16>) -> tensor<1x8x8x8xf16>
  %2 = dovetail.relu %1 : (tensor<1x8x8x8xf16>) -> tensor<1x8x8x8xf16>
  %3 = dovetail.min %2, %six : (tensor<1x8x8x8xf16>, tensor<f16>) -> tensor<1x8x8x8xf16>
  %4 = dovetail.exp %3 : (tensor<1x8x8x8xf16>) -> tensor<1x8x8x8xf16>
  return %4 : tensor<1x8x8x8xf16>
}

// -----

// bf16 is the library's own where the processor has it.

// CHECK-LABEL: func.func @brain
// OLD: dovetail.matmul {{.*}} -> tensor<4x6xf32>
// OLD: dovetail.cast {{.*}} {to = bf16}
// NEW-NOT: dovetail.cast
// NEW: dovetail.matmul {{.*}} -> tensor<4x6xbf16>
func.func @brain(%a: tensor<4x5xbf16>, %b: tensor<5x6xbf16>) -> tensor<4x6xbf16> {
  %0 = dovetail.matmul %a, %b : (tensor<4x5xbf16>, tensor<5x6xbf16>) -> tensor<4x6xbf16>
  return %0 : tensor<4x6xbf16>
}

// -----

// What the library does not do stays as it is: other types, Lp pooling, results without elements.

// CHECK-LABEL: func.func @others
// CHECK-NOT: dovetail.cast
func.func @others(%a: tensor<4x5xf64>, %b: tensor<5x6xf64>, %c: tensor<0x5xf16>, %d: tensor<5x6xf16>, %x: tensor<1x4x8x8xf16>) -> (tensor<4x6xf64>, tensor<0x6xf16>, tensor<1x4x4x4xf16>) {
  %0 = dovetail.matmul %a, %b : (tensor<4x5xf64>, tensor<5x6xf64>) -> tensor<4x6xf64>
  %1 = dovetail.matmul %c, %d : (tensor<0x5xf16>, tensor<5x6xf16>) -> tensor<0x6xf16>
  %2 = dovetail.pool %x {kind = #dovetail.pool_kind<lp>, kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x4x8x8xf16>) -> tensor<1x4x4x4xf16>
  return %0, %1, %2 : tensor<4x6xf64>, tensor<0x6xf16>, tensor<1x4x4x4xf16>
}

// -----

// A value that two calls read is converted once, before the first of them, though the second's epilogue is seen first;
// a pooling has no epilogue; and where two operations read a result, it is rounded first.

// CHECK-LABEL: func.func @shared
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<6x6xf16>
// CHECK: %[[WX:.*]] = dovetail.cast %[[X]] {to = f32}
// CHECK-NEXT: dovetail.matmul %[[WX]], %[[WX]]
// CHECK-NOT: dovetail.cast %[[X]]
// CHECK: dovetail.add %{{.*}}, %[[WX]]
// CHECK: %[[SUM:.*]] = dovetail.cast %{{.*}} {to = f16}
// CHECK: dovetail.exp %[[SUM]]
// CHECK: dovetail.relu %[[SUM]]
func.func @shared(%x: tensor<6x6xf16>, %a: tensor<6x6xf16>, %b: tensor<6x6xf16>) -> (tensor<6x6xf16>, tensor<6x6xf16>, tensor<6x6xf16>) {
  %0 = dovetail.matmul %a, %b : (tensor<6x6xf16>, tensor<6x6xf16>) -> tensor<6x6xf16>
  %1 = dovetail.matmul %x, %x : (tensor<6x6xf16>, tensor<6x6xf16>) -> tensor<6x6xf16>
  %2 = dovetail.add %0, %x : (tensor<6x6xf16>, tensor<6x6xf16>) -> tensor<6x6xf16>
  %3 = dovetail.exp %2 : (tensor<6x6xf16>) -> tensor<6x6xf16>
  %4 = dovetail.relu %2 : (tensor<6x6xf16>) -> tensor<6x6xf16>
  return %1, %3, %4 : tensor<6x6xf16>, tensor<6x6xf16>, tensor<6x6xf16>
}

// -----

// What is computed in f32 anyway, here a factor for each channel, needs no rounding before or after it; where it is
// read in f32, none at all.

// CHECK-LABEL: func.func @normalised
// CHECK: %[[SUM:.*]] = dovetail.conv {{.*}} -> tensor<1x8x6x6xf32>
// CHECK-NEXT: %[[SCALED:.*]] = dovetail.mul %[[SUM]], %{{.*}} : (tensor<1x8x6x6xf32>, tensor<8x1x1xf32>)
// CHECK-NEXT: %[[Y:.*]] = dovetail.relu %[[SCALED]]
// CHECK-NEXT: %[[ROUNDED:.*]] = dovetail.cast %[[Y]] {to = f16}
// CHECK: %[[PRODUCT:.*]] = dovetail.matmul
// CHECK-NEXT: %[[E:.*]] = dovetail.exp %[[PRODUCT]] : (tensor<6x6xf32>)
// CHECK-NEXT: return %[[ROUNDED]], %[[E]]
func.func @normalised(%x: tensor<1x4x8x8xf16>, %w: tensor<8x4x3x3xf16>, %s: tensor<8x1x1xf32>, %a: tensor<6x6xf16>) -> (tensor<1x8x6x6xf16>, tensor<6x6xf32>) {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x4x8x8xf16>, tensor<8x4x3x3xf16>) -> tensor<1x8x6x6xf16>
  %1 = dovetail.cast %0 {to = f32} : (tensor<1x8x6x6xf16>) -> tensor<1x8x6x6xf32>
  %2 = dovetail.mul %1, %s : (tensor<1x8x6x6xf32>, tensor<8x1x1xf32>) -> tensor<1x8x6x6xf32>
  %3 = dovetail.cast %2 {to = f16} : (tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf16>
  %4 = dovetail.relu %3 : (tensor<1x8x6x6xf16>) -> tensor<1x8x6x6xf16>
  %5 = dovetail.matmul %a, %a : (tensor<6x6xf16>, tensor<6x6xf16>) -> tensor<6x6xf16>
  %6 = dovetail.cast %5 {to = f32} : (tensor<6x6xf16>) -> tensor<6x6xf32>
  %7 = dovetail.exp %6 : (tensor<6x6xf32>) -> tensor<6x6xf32>
  return %4, %7 : tensor<1x8x6x6xf16>, tensor<6x6xf32>
}

// -----

// Halos are exchanged in the type of the value, and converted with it.

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<1x4x8x8xf16, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 3, 8}, {}]>>
!window = tensor<1x4x8x8xf16, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 4), (2, 8)}, {}]>>

// CHECK-LABEL: func.func @halo
// CHECK: %[[WINDOW:.*]] = dovetail.reshard {{.*}}xf16{{.*}} -> tensor<{{.*}}xf16{{.*}}{"y" : (0, 4), (2, 8)}
// CHECK: dovetail.cast %[[WINDOW]] {{{.*}}to = f32}
// CHECK: dovetail.pool
func.func @halo(%x: !cut) -> !cut {
  %0 = dovetail.reshard %x : !cut -> !window
  %1 = dovetail.pool %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 3, 8}, {}]>, kind = #dovetail.pool_kind<max>, kernel = array<i64: 3, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 0>, pads_high = array<i64: 1, 0>} : (!window) -> !cut
  return %1 : !cut
}

// -----

// Where no rank needs an element between two windows, none converts it: the conversion comes before the exchange.

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<1x4x8x8xf16, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>>
!window = tensor<1x4x8x8xf16, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 3), (4, 7)}, {}]>>
!half = tensor<1x4x4x8xf16, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 2, 4}, {}]>>

// CHECK-LABEL: func.func @gap
// CHECK-SAME: %[[X:[a-z0-9]+]]:
// CHECK: %[[WIDE:.*]] = dovetail.cast %[[X]] {{{.*}}to = f32}
// CHECK-NEXT: %[[WINDOW:.*]] = dovetail.reshard %[[WIDE]] {{.*}} -> tensor<1x4x8x8xf32{{.*}}{"y" : (0, 3), (4, 7)}
// CHECK: dovetail.conv %[[WINDOW]]
func.func @gap(%x: !cut, %w: tensor<4x4x1x1xf16>) -> !half {
  %0 = dovetail.reshard %x : !cut -> !window
  %1 = dovetail.conv %0, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 2, 4}, {}, {}]>, strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (!window, tensor<4x4x1x1xf16>) -> !half
  return %1 : !half
}

// -----

// A partial sum stays wide, through what is linear in it, until it is complete.

dovetail.mesh @mesh = ["y" = 2]
!a = tensor<4x6xf16, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2, 6}]>>
!b = tensor<6x4xf16, #dovetail.sharding<@mesh, [{"y" : 0, 2, 6}, {}]>>
!part = tensor<4x4xf16, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y"]>>
!sum = tensor<4x4xf16, #dovetail.sharding<@mesh, [{}, {}]>>

// CHECK-LABEL: func.func @partial
// CHECK: %[[PART:.*]] = dovetail.matmul {{.*}} -> tensor<4x4xf32, {{.*}}partial = sum ["y"]
// CHECK: %[[NEGATIVE:.*]] = dovetail.neg %[[PART]]
// CHECK: %[[SUM:.*]] = dovetail.reshard %[[NEGATIVE]] : tensor<4x4xf32{{.*}} -> tensor<4x4xf32
// CHECK: dovetail.cast %[[SUM]] {{{.*}}to = f16}
func.func @partial(%a: !a, %b: !b) -> !sum {
  %0 = dovetail.matmul %a, %b {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 2, 6}]>} : (!a, !b) -> !part
  %1 = dovetail.neg %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>} : (!part) -> !part
  %2 = dovetail.reshard %1 : !part -> !sum
  return %2 : !sum
}

// -----

// A sum that goes on with gaps is complete, and rounded once, before it is cut.

dovetail.mesh @mesh = ["y" = 2]
!a = tensor<4x6xf16, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2, 6}]>>
!b = tensor<6x4xf16, #dovetail.sharding<@mesh, [{"y" : 0, 2, 6}, {}]>>
!part = tensor<4x4xf16, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y"]>>
!window = tensor<4x4xf16, #dovetail.sharding<@mesh, [{"y" : (0, 1), (2, 3)}, {}]>>
!half = tensor<2x4xf16, #dovetail.sharding<@mesh, [{"y" : 0, 1, 2}, {}]>>

// CHECK-LABEL: func.func @partial_gap
// CHECK: %[[PART:.*]] = dovetail.matmul {{.*}} -> tensor<4x4xf32, {{.*}}partial = sum ["y"]
// CHECK: %[[SUM:.*]] = dovetail.reshard %[[PART]] : tensor<4x4xf32{{.*}} -> tensor<4x4xf32
// CHECK: %[[ROUNDED:.*]] = dovetail.cast %[[SUM]] {{{.*}}to = f16}
// CHECK: dovetail.reshard %[[ROUNDED]] {{.*}} -> tensor<4x4xf16{{.*}}{"y" : (0, 1), (2, 3)}
func.func @partial_gap(%a: !a, %b: !b) -> !half {
  %0 = dovetail.matmul %a, %b {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 2, 6}]>} : (!a, !b) -> !part
  %1 = dovetail.reshard %0 : !part -> !window
  %2 = dovetail.slice %1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 1, 2}, {}]>, starts = array<i64: 0, 0>, sizes = array<i64: 2, 4>, steps = array<i64: 2, 1>} : (!window) -> !half
  return %2 : !half
}

// -----

// Two sums that pass together are wide together, and rounded once.

dovetail.mesh @mesh = ["k" = 2]
!a = tensor<4x8xf16, #dovetail.sharding<@mesh, [{}, {"k" : 0, 4, 8}]>>
!w = tensor<8x6xf16, #dovetail.sharding<@mesh, [{"k" : 0, 4, 8}, {}]>>
!part = tensor<4x6xf16, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>
!whole = tensor<4x6xf16, #dovetail.sharding<@mesh, [{}, {}]>>

// CHECK-LABEL: func.func @sums
// CHECK: dovetail.matmul {{.*}} -> tensor<4x6xf32, {{.*}}partial = sum ["k"]
// CHECK: dovetail.matmul {{.*}} -> tensor<4x6xf32, {{.*}}partial = sum ["k"]
// CHECK: dovetail.sub {{.*}} -> tensor<4x6xf32, {{.*}}partial = sum ["k"]
// CHECK: dovetail.reshard {{.*}} -> tensor<4x6xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK: dovetail.cast {{.*}}to = f16
// CHECK-NOT: dovetail.matmul
func.func @sums(%a: !a, %b: !a, %w: !w, %v: !w) -> !whole {
  %0 = dovetail.matmul %a, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"k" : 0, 4, 8}]>} : (!a, !w) -> !part
  %1 = dovetail.matmul %b, %v {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"k" : 0, 4, 8}]>} : (!a, !w) -> !part
  %2 = dovetail.sub %0, %1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>} : (!part, !part) -> !part
  %3 = dovetail.reshard %2 : !part -> !whole
  return %3 : !whole
}

// -----

// Whatever is between the products and their sum, and in whichever order it comes.

dovetail.mesh @mesh = ["k" = 2]
!a = tensor<4x8xf16, #dovetail.sharding<@mesh, [{}, {"k" : 0, 4, 8}]>>
!w = tensor<8x6xf16, #dovetail.sharding<@mesh, [{"k" : 0, 4, 8}, {}]>>
!part = tensor<4x6xf16, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>
!whole = tensor<4x6xf16, #dovetail.sharding<@mesh, [{}, {}]>>

// CHECK-LABEL: func.func @sums_of_sums
// CHECK-COUNT-2: dovetail.matmul {{.*}} -> tensor<4x6xf32, {{.*}}partial = sum ["k"]
// CHECK: dovetail.neg {{.*}} -> tensor<4x6xf32, {{.*}}partial = sum ["k"]
// CHECK: dovetail.add {{.*}} -> tensor<4x6xf32, {{.*}}partial = sum ["k"]
// CHECK: dovetail.add {{.*}} -> tensor<4x6xf32, {{.*}}partial = sum ["k"]
// CHECK: dovetail.reshard {{.*}} -> tensor<4x6xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK: dovetail.cast {{.*}}to = f16
func.func @sums_of_sums(%a: !a, %b: !a, %w: !w, %v: !w) -> !whole {
  %0 = dovetail.matmul %a, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"k" : 0, 4, 8}]>} : (!a, !w) -> !part
  %1 = dovetail.matmul %b, %v {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"k" : 0, 4, 8}]>} : (!a, !w) -> !part
  %2 = dovetail.neg %1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>} : (!part) -> !part
  %3 = dovetail.add %2, %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>} : (!part, !part) -> !part
  %4 = dovetail.add %3, %3 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>} : (!part, !part) -> !part
  %5 = dovetail.reshard %4 : !part -> !whole
  return %5 : !whole
}

// -----

// Code of a generic has types of its own: it reads a sum that stays narrow.

dovetail.mesh @mesh = ["k" = 2]
!a = tensor<4x8xf16, #dovetail.sharding<@mesh, [{}, {"k" : 0, 4, 8}]>>
!w = tensor<8x6xf16, #dovetail.sharding<@mesh, [{"k" : 0, 4, 8}, {}]>>
!part = tensor<4x6xf16, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>
!whole = tensor<4x6xf16, #dovetail.sharding<@mesh, [{}, {}]>>

// CHECK-LABEL: func.func @code
// CHECK: dovetail.matmul {{.*}} -> tensor<4x6xf16, {{.*}}partial = sum ["k"]
// CHECK: dovetail.neg {{.*}} -> tensor<4x6xf16, {{.*}}partial = sum ["k"]
// CHECK: dovetail.generic
// CHECK: dovetail.reshard {{.*}} -> tensor<4x6xf16, #dovetail.sharding<@mesh, [{}, {}]>>
func.func @code(%a: !a, %w: !w) -> !whole {
  %0 = dovetail.matmul %a, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"k" : 0, 4, 8}]>} : (!a, !w) -> !part
  %1 = dovetail.neg %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>} : (!part) -> !part
  %2 = dovetail.generic(%1) : (!part) -> !part attributes {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>}
      loops [y = 4, x = 6] reads [0 : (y, x)] body {
    %e = dovetail.read 0 : f16
    %n = arith.negf %e : f16
    dovetail.return %n : f16
  }
  %3 = dovetail.reshard %2 : !part -> !whole
  return %3 : !whole
}
