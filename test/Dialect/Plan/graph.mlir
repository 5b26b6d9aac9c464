// RUN: dovetail-opt %s | dovetail-opt | FileCheck %s

// What passes of `lower` decide stands in the graph.

dovetail.mesh @mesh = ["y" = 2]

!own = tensor<1x4x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 10}, {}]>>
!halo = tensor<1x4x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 10)}, {}]>>
!result = tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 10}, {}]>>

// CHECK-LABEL: func.func @graph
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor{{.*}} {plan.format = #plan.format<[0, 2, 3, 1]>}
func.func @graph(%x: !own {plan.format = #plan.format<[0, 2, 3, 1]>}, %r: tensor<4x4xf32>, %i: tensor<2x1xi64>, %u: tensor<2x4xf32>) -> (!result, tensor<4x4xf32>) {
  // CHECK: %[[W:.*]] = dovetail.constant
  %w = dovetail.constant {plan.formats = [#plan.format<[0, 1, 2, 3]>]} dense<2.0> : tensor<8x4x3x3xf32>
  %b = dovetail.constant dense<1.0> : tensor<8x1x1xf32>
  // CHECK: %[[HALO:.*]] = dovetail.reshard %[[X]] {plan.formats = [#plan.format<[0, 2, 3, 1]>]}
  %halo = dovetail.reshard %x {plan.formats = [#plan.format<[0, 2, 3, 1]>]} : !own -> !halo
  // CHECK: %[[BIAS:.*]] = plan.group(%[[ARG:.*]] = %{{.*}}) attributes {plan.prologue} : (tensor<8x1x1xf32>) -> tensor<8x1x1xf32> {
  // CHECK-NEXT: %[[NEG:.*]] = dovetail.neg %[[ARG]]
  // CHECK-NEXT: plan.yield %[[NEG]]
  %bias = plan.group(%a = %b) attributes {plan.prologue} : (tensor<8x1x1xf32>) -> tensor<8x1x1xf32> {
    %0 = dovetail.neg %a : (tensor<8x1x1xf32>) -> tensor<8x1x1xf32>
    plan.yield %0 : tensor<8x1x1xf32>
  }
  // CHECK: %[[Y:.*]] = plan.group(%{{.*}} = %[[BIAS]], %{{.*}} = %[[HALO]], %{{.*}} = %[[W]]) by "onednn" attributes {plan.formats = [#plan.format<[0, 2, 3, 1]>]} : (
  %y = plan.group(%c = %bias, %d = %halo, %e = %w) by "onednn" attributes {plan.formats = [#plan.format<[0, 2, 3, 1]>]}
      : (tensor<8x1x1xf32>, !halo, tensor<8x4x3x3xf32>) -> !result {
    %0 = dovetail.conv %d, %e {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 4, 10}, {}, {}]>} : (!halo, tensor<8x4x3x3xf32>) -> !result
    %1 = dovetail.add %0, %c {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 4, 10}, {}]>} : (!result, tensor<8x1x1xf32>) -> !result
    plan.yield %1 : !result
  }
  // CHECK: plan.group({{.*}}) by "onednn" : (
  %m = plan.group(%a = %r, %c = %r) by "onednn" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = dovetail.matmul %a, %c : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %0 : tensor<4x4xf32>
  }
  // CHECK: plan.convert_format %[[Y]] {plan.formats = [#plan.format<[0, 1, 2, 3]>]} : tensor<1x8x10x10xf32
  %z = plan.convert_format %y {plan.formats = [#plan.format<[0, 1, 2, 3]>]} : !result
  %data = plan.group(%a = %r) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = dovetail.neg %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %0 : tensor<4x4xf32>
  }
  // CHECK: plan.group({{.*}}) attributes {in_place = 0 : i64} :
  %s = plan.group(%a = %data, %c = %i, %d = %u) attributes {in_place = 0}
      : (tensor<4x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<4x4xf32> {
    %0 = dovetail.scatter_nd %a, %c, %d : (tensor<4x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<4x4xf32>
    plan.yield %0 : tensor<4x4xf32>
  }
  // CHECK: dovetail.reshard %{{.*}} {plan.view}
  %view = dovetail.reshard %halo {plan.view} : !halo -> !own
  // CHECK: plan.storage arena tensor<1x4x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 10)}, {}]>> <[0, 2, 3, 1]> of %[[X]], %[[HALO]], %{{.*}} :
  plan.storage arena !halo <[0, 2, 3, 1]> of %x, %halo, %view : !own, !halo, !own
  // CHECK: plan.storage constant tensor<8x4x3x3xf32> <[0, 1, 2, 3]> of %[[W]] : tensor<8x4x3x3xf32>
  plan.storage constant tensor<8x4x3x3xf32> <[0, 1, 2, 3]> of %w : tensor<8x4x3x3xf32>
  // CHECK: plan.storage persistent tensor<8x1x1xf32> <[0, 1, 2]> of %[[BIAS]]
  plan.storage persistent tensor<8x1x1xf32> <[0, 1, 2]> of %bias : tensor<8x1x1xf32>
  return %z, %s : !result, tensor<4x4xf32>
}
