// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-share-storage)' | FileCheck %s
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-share-storage{kernels-in-place=false})' | FileCheck %s --check-prefix=APART

// APART-NOT: in_place

// Results of kernels in the memory of what they read.

// Elements are read where they are written. The operand may be any; it may be read before, and several times.

dovetail.mesh @mesh = ["y" = 1]
!t = tensor<4x6xf32>

// CHECK-LABEL: func.func @elements
// CHECK: %[[A:.*]] = plan.group(%{{.*}} = %{{.*}}) attributes {plan.formats
// CHECK: %[[B:.*]] = plan.group({{.*}}) attributes {in_place = 1 : i64,
// CHECK: %[[C:.*]] = plan.group(%{{.*}} = %[[B]]) attributes {plan.formats
// CHECK: %[[D:.*]] = plan.group(%{{.*}} = %[[C]], %{{.*}} = %[[B]]) attributes {in_place = 0 : i64,
// CHECK: plan.storage arena {{.*}} of %[[A]], %[[B]] :
// CHECK-NEXT: plan.storage arena {{.*}} of %[[C]], %[[D]] :
func.func @elements(%x: !t {plan.format = #plan.format<[0, 1]>}) -> !t {
  %a = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %b = plan.group(%q = %x, %p = %a) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t, !t) -> !t {
    %1 = dovetail.exp %p : (!t) -> !t
    %2 = dovetail.sub %q, %1 : (!t, !t) -> !t
    %3 = dovetail.mul %2, %p : (!t, !t) -> !t
    plan.yield %3 : !t
  }
  %c = plan.group(%p = %b) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.exp %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %d = plan.group(%q = %c, %p = %b) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t, !t) -> !t {
    %1 = dovetail.add %q, %p : (!t, !t) -> !t
    plan.yield %1 : !t
  }
  return %d : !t
}

// -----

// What is the same for all of a row is computed before an element of the row is written.

dovetail.mesh @mesh = ["y" = 1]
!t = tensor<4x6xf32>
!r = tensor<4x1xf32>

// CHECK-LABEL: func.func @rows
// CHECK: plan.group
// CHECK: plan.group({{.*}}) attributes {in_place = 0 : i64,
func.func @rows(%x: !t {plan.format = #plan.format<[0, 1]>}) -> !t {
  %a = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %b = plan.group(%p = %a) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %max = dovetail.reduce %p {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>} : (!t) -> !r
    %shifted = dovetail.sub %p, %max : (!t, !r) -> !t
    %exp = dovetail.exp %shifted : (!t) -> !t
    %sum = dovetail.reduce %exp {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (!t) -> !r
    %1 = dovetail.div %exp, %sum : (!t, !r) -> !t
    plan.yield %1 : !t
  }
  return %b : !t
}

// -----

// Where there is a single row, threads would write what others read.

dovetail.mesh @mesh = ["y" = 1]
!t = tensor<1x6xf32>
!r = tensor<1x1xf32>

// CHECK-LABEL: func.func @single_row
// CHECK-NOT: in_place
func.func @single_row(%x: !t {plan.format = #plan.format<[0, 1]>}) -> !t {
  %a = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %b = plan.group(%p = %a) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %max = dovetail.reduce %p {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>} : (!t) -> !r
    %shifted = dovetail.sub %p, %max : (!t, !r) -> !t
    %exp = dovetail.exp %shifted : (!t) -> !t
    %sum = dovetail.reduce %exp {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (!t) -> !r
    %1 = dovetail.div %exp, %sum : (!t, !r) -> !t
    plan.yield %1 : !t
  }
  return %b : !t
}

// -----

// Elements of other rows.

dovetail.mesh @mesh = ["y" = 1]
!t = tensor<4x6xf32>
!r = tensor<4x1xf32>
!c = tensor<1x6xf32>

// CHECK-LABEL: func.func @across
// CHECK-NOT: in_place
func.func @across(%x: !t {plan.format = #plan.format<[0, 1]>}) -> !t {
  %a = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %b = plan.group(%p = %a) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %sum = dovetail.reduce %p {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (!t) -> !r
    %column = dovetail.reduce %p {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>} : (!t) -> !c
    %2 = dovetail.add %p, %sum : (!t, !r) -> !t
    %3 = dovetail.add %2, %column : (!t, !c) -> !t
    plan.yield %3 : !t
  }
  return %b : !t
}

// -----

// The neighbour, which may have been written; and other elements of the row, which each element reads for itself.

dovetail.mesh @mesh = ["y" = 1]
!t = tensor<4x6xf32>
!r = tensor<4x1xf32>

// CHECK-LABEL: func.func @shifted
// CHECK: plan.group
// CHECK: plan.group({{.*}}) attributes {plan.formats
// CHECK: plan.group
// CHECK: plan.group({{.*}}) attributes {in_place = 0 : i64,
func.func @shifted(%x: !t {plan.format = #plan.format<[0, 1]>}) -> (!t, !t) {
  %a = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %b = plan.group(%p = %a) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.slice %p {starts = array<i64: 0, 5>, sizes = array<i64: 4, 6>, steps = array<i64: 1, -1>} : (!t) -> !t
    %2 = dovetail.add %p, %1 : (!t, !t) -> !t
    plan.yield %2 : !t
  }
  %c = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %d = plan.group(%p = %c) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.slice %p {starts = array<i64: 0, 0>, sizes = array<i64: 4, 1>, steps = array<i64: 1, 1>} : (!t) -> !r
    %2 = dovetail.add %p, %1 : (!t, !r) -> !t
    plan.yield %2 : !t
  }
  return %b, %d : !t, !t
}

// -----

// Transposed.

dovetail.mesh @mesh = ["y" = 1]
!t = tensor<6x6xf32>

// CHECK-LABEL: func.func @transposed
// CHECK-NOT: in_place
func.func @transposed(%x: !t {plan.format = #plan.format<[0, 1]>}) -> !t {
  %a = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %b = plan.group(%p = %a) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.transpose %p {permutation = array<i64: 1, 0>} : (!t) -> !t
    %2 = dovetail.add %p, %1 : (!t, !t) -> !t
    plan.yield %2 : !t
  }
  return %b : !t
}

// -----

// A window, sums up to the element, and products with the row.

dovetail.mesh @mesh = ["y" = 1]
!t = tensor<2x6x6xf32>

// CHECK-LABEL: func.func @folds
// CHECK-NOT: in_place
func.func @folds(%x: !t {plan.format = #plan.format<[0, 1, 2]>}) -> (!t, !t, !t) {
  %a = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1, 2]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %b = plan.group(%p = %a) attributes {plan.formats = [#plan.format<[0, 1, 2]>]} : (!t) -> !t {
    %1 = dovetail.pool %p {kind = #dovetail.pool_kind<max>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (!t) -> !t
    plan.yield %1 : !t
  }
  %c = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1, 2]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %d = plan.group(%p = %c) attributes {plan.formats = [#plan.format<[0, 1, 2]>]} : (!t) -> !t {
    %1 = dovetail.scan %p {axis = 2 : i64, kind = #dovetail.reduce_kind<sum>} : (!t) -> !t
    plan.yield %1 : !t
  }
  %e = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1, 2]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %f = plan.group(%p = %e) attributes {plan.formats = [#plan.format<[0, 1, 2]>]} : (!t) -> !t {
    %1 = dovetail.matmul %p, %p : (!t, !t) -> !t
    plan.yield %1 : !t
  }
  return %b, %d, %f : !t, !t, !t
}

// -----

// Beside a product, elements are read where they are written.

dovetail.mesh @mesh = ["y" = 1]
!t = tensor<2x6x6xf32>

// CHECK-LABEL: func.func @residual
// CHECK: plan.group
// CHECK: plan.group({{.*}}) attributes {in_place = 0 : i64,
func.func @residual(%x: !t {plan.format = #plan.format<[0, 1, 2]>}) -> !t {
  %a = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1, 2]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %b = plan.group(%p = %a, %q = %x) attributes {plan.formats = [#plan.format<[0, 1, 2]>]} : (!t, !t) -> !t {
    %1 = dovetail.matmul %q, %q : (!t, !t) -> !t
    %2 = dovetail.add %1, %p : (!t, !t) -> !t
    plan.yield %2 : !t
  }
  return %b : !t
}

// -----

// Several results.

dovetail.mesh @mesh = ["y" = 1]
!t = tensor<2x6x6xf32>

// CHECK-LABEL: func.func @several
// CHECK-NOT: in_place
func.func @several(%x: !t {plan.format = #plan.format<[0, 1, 2]>}) -> (!t, tensor<2x6x6xi64>) {
  %a = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1, 2]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %b:2 = plan.group(%p = %a) attributes {plan.formats = [#plan.format<[0, 1, 2]>, #plan.format<[0, 1, 2]>]} : (!t) -> (!t, tensor<2x6x6xi64>) {
    %1:2 = dovetail.top_k %p {axis = 2 : i64, k = 6 : i64, largest = true} : (!t) -> (!t, tensor<2x6x6xi64>)
    plan.yield %1#0, %1#1 : !t, tensor<2x6x6xi64>
  }
  return %b#0, %b#1 : !t, tensor<2x6x6xi64>
}

// -----

// What is read later, given by the user, returned, or read by other ranks; another format; a part of the elements.

dovetail.mesh @mesh = ["y" = 1]
!t = tensor<4x6xf32>

// CHECK-LABEL: func.func @kept
// CHECK: plan.group
// CHECK: plan.group({{.*}}) attributes {plan.formats
// CHECK: plan.group({{.*}}) attributes {in_place = 0 : i64,
// CHECK-NOT: in_place
func.func @kept(%x: !t {plan.format = #plan.format<[0, 1]>}) -> (!t, !t, !t, !t, !t, tensor<4x6xi32>, tensor<2x6xf32>) {
  %a = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %b = plan.group(%p = %a) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.exp %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %c = plan.group(%p = %a, %q = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t, !t) -> !t {
    %1 = dovetail.add %p, %q : (!t, !t) -> !t
    plan.yield %1 : !t
  }
  %e = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %f = plan.group(%p = %e) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.exp %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %g = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %h = plan.group(%p = %g) attributes {plan.formats = [#plan.format<[1, 0]>]} : (!t) -> !t {
    %1 = dovetail.exp %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %i = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %j = plan.group(%p = %i) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> tensor<4x6xi32> {
    %1 = dovetail.cast %p {to = i32} : (!t) -> tensor<4x6xi32>
    plan.yield %1 : tensor<4x6xi32>
  }
  %k = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p : (!t) -> !t
    plan.yield %1 : !t
  }
  %l = plan.group(%p = %k) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> tensor<2x6xf32> {
    %1 = dovetail.slice %p {starts = array<i64: 0, 0>, sizes = array<i64: 2, 6>, steps = array<i64: 1, 1>} : (!t) -> tensor<2x6xf32>
    %2 = dovetail.exp %1 : (tensor<2x6xf32>) -> tensor<2x6xf32>
    plan.yield %2 : tensor<2x6xf32>
  }
  return %b, %c, %e, %f, %h, %j, %l : !t, !t, !t, !t, !t, tensor<4x6xi32>, tensor<2x6xf32>
}

// -----

// Of %a other ranks read a halo, %d is to have one, and what %h is of has one.

dovetail.mesh @mesh = ["y" = 2]
!t = tensor<4x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}, {}]>>
!halo = tensor<4x6xf32, #dovetail.sharding<@mesh, [{"y" : (0, 3), (1, 4)}, {}]>>

// CHECK-LABEL: func.func @halos
// CHECK-NOT: in_place
func.func @halos(%x: !t {plan.format = #plan.format<[0, 1]>}) -> (!t, !halo, !halo) {
  %a = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2, 4}, {}]>} : (!t) -> !t
    plan.yield %1 : !t
  }
  %b = dovetail.reshard %a {plan.formats = [#plan.format<[0, 1]>]} : !t -> !halo
  %c = plan.group(%p = %a) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2, 4}, {}]>} : (!t) -> !t
    plan.yield %1 : !t
  }
  %d = plan.group(%p = %x) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2, 4}, {}]>} : (!t) -> !t
    plan.yield %1 : !t
  }
  %e = plan.group(%p = %d) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t) -> !t {
    %1 = dovetail.neg %p {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2, 4}, {}]>} : (!t) -> !t
    plan.yield %1 : !t
  }
  %f = dovetail.reshard %e {plan.formats = [#plan.format<[0, 1]>]} : !t -> !halo
  %h = plan.group(%p = %b) attributes {plan.formats = [#plan.format<[0, 1]>]} : (!halo) -> !halo {
    %1 = dovetail.neg %p {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : (0, 3), (1, 4)}, {}]>} : (!halo) -> !halo
    plan.yield %1 : !halo
  }
  return %c, %f, %h : !t, !halo, !halo
}
