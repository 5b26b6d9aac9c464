// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-share-storage{libraries=onednn,kernels})' | FileCheck %s
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-share-storage)' | FileCheck %s --check-prefix=APART

// APART-NOT: in_place

// Results of calls in the memory of what they read: large products in that of their first factors, and attention in that
// of its queries.

dovetail.mesh @mesh = ["y" = 1]
!t = tensor<8192x512xf32>
!w = tensor<512x512xf32>

// CHECK-LABEL: func.func @calls
// CHECK: %[[Q:.*]] = plan.group({{.*}}) by "onednn" attributes {plan.formats
// CHECK: %[[K:.*]] = plan.group({{.*}}) by "onednn" attributes {in_place = 0 : i64,
// CHECK: %[[Y:.*]] = plan.group({{.*}}) by "kernels" attributes {in_place = 0 : i64,
// CHECK: plan.storage arena {{.*}} of %arg0, %[[K]] :
// CHECK: plan.storage arena {{.*}} of %[[Q]], %[[Y]] :
func.func @calls(%x: !t {plan.format = #plan.format<[0, 1]>}) -> !t {
  %w = dovetail.constant {plan.formats = [#plan.format<[0, 1]>]} dense<2.0> : !w
  %q = plan.group(%a = %x, %b = %w) by "onednn" attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t, !w) -> !t {
    %1 = dovetail.matmul %a, %b : (!t, !w) -> !t
    plan.yield %1 : !t
  }
  %k = plan.group(%a = %x, %b = %w) by "onednn" attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t, !w) -> !t {
    %1 = dovetail.matmul %a, %b : (!t, !w) -> !t
    plan.yield %1 : !t
  }
  %y = plan.group(%a = %q, %b = %k, %c = %k) by "kernels" attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t, !t, !t) -> !t {
    %1 = dovetail.attention %a, %b, %c {scale = 0.5 : f32, heads = array<i64: 8, 8, 64, 64>, offsets = array<i64: 0, 0, 0>} : (!t, !t, !t) -> !t
    plan.yield %1 : !t
  }
  return %y : !t
}

// -----

// What is read later, or twice, or is not of the result's rows, stays.

dovetail.mesh @mesh = ["y" = 1]
!t = tensor<2048x2048xf32>

// CHECK-LABEL: func.func @apart
// CHECK-NOT: in_place
func.func @apart(%x: !t {plan.format = #plan.format<[0, 1]>}, %z: !t {plan.format = #plan.format<[0, 1]>}) -> (!t, !t) {
  %a = plan.group(%p = %x, %q = %z) by "onednn" attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t, !t) -> !t {
    %1 = dovetail.matmul %p, %q : (!t, !t) -> !t
    plan.yield %1 : !t
  }
  %b = plan.group(%p = %x, %q = %x) by "onednn" attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t, !t) -> !t {
    %1 = dovetail.matmul %p, %q : (!t, !t) -> !t
    plan.yield %1 : !t
  }
  %y = plan.group(%p = %a, %q = %b, %r = %b) by "kernels" attributes {plan.formats = [#plan.format<[0, 1]>]} : (!t, !t, !t) -> !t {
    %1 = dovetail.attention %p, %q, %r {scale = 0.5 : f32, heads = array<i64: 2, 1, 512, 1024>, offsets = array<i64: 1024, 0, 0>} : (!t, !t, !t) -> !t
    plan.yield %1 : !t
  }
  return %y, %b : !t, !t
}
