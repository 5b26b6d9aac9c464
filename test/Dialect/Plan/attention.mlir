// RUN: dovetail-opt %s --split-input-file --verify-diagnostics | FileCheck %s

dovetail.mesh @mesh = ["y" = 2]
// CHECK-LABEL: plan.program @attention
plan.program @attention mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<2x9x4xf32> <[0, 1, 2]>
  %1 = plan.buffer arena tensor<1x7x4xf32> <[0, 1, 2]>
  %2 = plan.buffer arena tensor<1x7x3xf32> <[0, 1, 2]>
  %3 = plan.buffer arena tensor<9x1xi1> <[0, 1]>
  %4 = plan.buffer arena tensor<2x9x3xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 9}, {}]>> <[0, 1, 2]>
  %q = plan.view %0 : !plan.ref<tensor<2x9x4xf32>>
  %k = plan.view %1 : !plan.ref<tensor<1x7x4xf32>>
  %v = plan.view %2 : !plan.ref<tensor<1x7x3xf32>>
  %m = plan.view %3 : !plan.ref<tensor<9x1xi1>>
  %y = plan.view %4 : !plan.ref<tensor<2x9x3xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 9}, {}]>>>
  // CHECK: plan.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} : !{{.*}} -> %{{.*}} loops [2, 9 by <{"y" : 0, 4, 9}>, 3, 7, 4]
  // CHECK-SAME: reads [(d0, d1, d4), (0, d3, d4), (0, d3, d2), (d1, 0)] {fill = -1.000000e+00 : f32, scale = 5.000000e-01 : f32} :
  plan.attention %q, %k, %v mask %m : !plan.ref<tensor<9x1xi1>> -> %y loops [2, 9 by <{"y" : 0, 4, 9}>, 3, 7, 4]
    reads [(d0, d1, d4), (0, d3, d4), (0, d3, d2), (d1, 0)] {scale = 0.5 : f32, fill = -1.0 : f32}
    : !plan.ref<tensor<2x9x4xf32>>, !plan.ref<tensor<1x7x4xf32>>, !plan.ref<tensor<1x7x3xf32>>
    -> !plan.ref<tensor<2x9x3xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 9}, {}]>>>
}

// -----

// Keys are split as the parts are that they make.
dovetail.mesh @mesh = ["y" = 3]
// CHECK-LABEL: plan.program @parts
plan.program @parts mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<9x4xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<7x4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 3, 7}, {}]>> <[0, 1]>
  %2 = plan.buffer arena tensor<2x9x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 1, 2}, {}, {}]>> <[0, 1, 2]>
  %q = plan.view %0 : !plan.ref<tensor<9x4xf32>>
  %k = plan.view %1 : !plan.ref<tensor<7x4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 3, 7}, {}]>>>
  %y = plan.view %2 : !plan.ref<tensor<2x9x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 1, 2}, {}, {}]>>>
  // CHECK: loops [2 by <{"y" : 0, 1, 1, 2}>, 9, 6, 7 by <{"y" : 0, 3, 3, 7}>, 4] reads [(d1, d4), (d3, d4), (d3, d2)] {parts, scale
  plan.attention %q, %k, %k -> %y loops [2 by <{"y" : 0, 1, 1, 2}>, 9, 6, 7 by <{"y" : 0, 3, 3, 7}>, 4]
    reads [(d1, d4), (d3, d4), (d3, d2)] {parts, scale = 0.5 : f32}
    : !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<7x4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 3, 7}, {}]>>>,
      !plan.ref<tensor<7x4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 3, 7}, {}]>>>
    -> !plan.ref<tensor<2x9x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 1, 2}, {}, {}]>>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @no_parts mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<9x4xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<9x1xf32> <[0, 1]>
  %x = plan.view %0 : !plan.ref<tensor<9x4xf32>>
  %y = plan.view %1 : !plan.ref<tensor<9x1xf32>>
  // expected-error@+1 {{gives parts, but has no loop over them, or not the columns of one head with scores and sums}}
  plan.attention %x, %x, %x -> %y loops [9, 1, 9, 4] reads [(d0, d3), (d2, d3), (d2, d1)] {parts, scale = 0.5 : f32}
    : !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<9x4xf32>> -> !plan.ref<tensor<9x1xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @form mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<9x4xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<9x4xf32> <[0, 1]>
  %x = plan.view %0 : !plan.ref<tensor<9x4xf32>>
  %y = plan.view %1 : !plan.ref<tensor<9x4xf32>>
  // expected-error@+1 {{reads its operands as no attention does}}
  plan.attention %x, %x, %x -> %y loops [9, 4, 9, 4] reads [(d0, d3), (d2, d3), (d0, d1)] {scale = 0.5 : f32}
    : !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<9x4xf32>> -> !plan.ref<tensor<9x4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @keys mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<9x4xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<9x4xf32> <[0, 1]>
  %x = plan.view %0 : !plan.ref<tensor<9x4xf32>>
  %y = plan.view %1 : !plan.ref<tensor<9x4xf32>>
  // expected-error@+1 {{splits the loop over keys, but gives no parts}}
  plan.attention %x, %x, %x -> %y loops [9, 4, 9 by <{"y" : 0, 4, 9}>, 4] reads [(d0, d3), (d2, d3), (d2, d1)] {scale = 0.5 : f32}
    : !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<9x4xf32>> -> !plan.ref<tensor<9x4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @extents mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<9x4xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<9x4xf32> <[0, 1]>
  %x = plan.view %0 : !plan.ref<tensor<9x4xf32>>
  %y = plan.view %1 : !plan.ref<tensor<9x4xf32>>
  // expected-error@+1 {{reads operand 1 as a tensor of other extents than 'tensor<9x4xf32>'}}
  plan.attention %x, %x, %x -> %y loops [9, 4, 10, 4] reads [(d0, d3), (d2, d3), (d2, d1)] {scale = 0.5 : f32}
    : !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<9x4xf32>> -> !plan.ref<tensor<9x4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @mask mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<9x4xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<9x4xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<9x9xi32> <[0, 1]>
  %x = plan.view %0 : !plan.ref<tensor<9x4xf32>>
  %y = plan.view %1 : !plan.ref<tensor<9x4xf32>>
  %m = plan.view %2 : !plan.ref<tensor<9x9xi32>>
  // expected-error@+1 {{which is neither of i1 nor of 'f32'}}
  plan.attention %x, %x, %x mask %m : !plan.ref<tensor<9x9xi32>> -> %y loops [9, 4, 9, 4]
    reads [(d0, d3), (d2, d3), (d2, d1), (d0, d2)] {scale = 0.5 : f32}
    : !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<9x4xf32>> -> !plan.ref<tensor<9x4xf32>>
}

// -----

// Two heads of queries follow each other in columns, and share what one tensor has of keys and values. The result lies
// where queries do.

dovetail.mesh @mesh = ["y" = 2]
// CHECK-LABEL: plan.program @heads
plan.program @heads mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<9x8xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<7x8xf32> <[0, 1]>
  %q = plan.view %0 : !plan.ref<tensor<9x8xf32>>
  %k = plan.view %1 : !plan.ref<tensor<7x8xf32>>
  %y = plan.view %0 : !plan.ref<tensor<9x8xf32>>
  // CHECK: loops [9, 8, 7, 4] reads [(d0, d3 + 4*floor((d1) / 4)), (d2, d3), (d2, ((d1) mod 4) + 4)]
  plan.attention %q, %k, %k -> %y loops [9, 8, 7, 4]
    reads [(d0, 4*floor((d1) / 4) + d3), (d2, d3), (d2, ((d1) mod 4) + 4)] {scale = 0.5 : f32}
    : !plan.ref<tensor<9x8xf32>>, !plan.ref<tensor<7x8xf32>>, !plan.ref<tensor<7x8xf32>> -> !plan.ref<tensor<9x8xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @over_keys mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<9x4xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<9x4xf32> <[0, 1]>
  %x = plan.view %0 : !plan.ref<tensor<9x4xf32>>
  %k = plan.view %1 : !plan.ref<tensor<9x4xf32>>
  // expected-error@+1 {{writes over operand 1, which it still reads}}
  plan.attention %x, %k, %x -> %k loops [9, 4, 9, 4] reads [(d0, d3), (d2, d3), (d2, d1)] {scale = 0.5 : f32}
    : !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<9x4xf32>>, !plan.ref<tensor<9x4xf32>> -> !plan.ref<tensor<9x4xf32>>
}

// -----

// Heads of queries are as long as those of the result, but the second one is read where the first one is written.

dovetail.mesh @mesh = ["y" = 2]
plan.program @over_other_heads mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<9x8xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<7x8xf32> <[0, 1]>
  %q = plan.view %0 : !plan.ref<tensor<9x8xf32>>
  %k = plan.view %1 : !plan.ref<tensor<7x8xf32>>
  // expected-error@+1 {{writes over operand 0, which it still reads}}
  plan.attention %q, %k, %k -> %q loops [9, 8, 7, 4]
    reads [(d0, d3), (d2, d3), (d2, ((d1) mod 4) + 4)] {scale = 0.5 : f32}
    : !plan.ref<tensor<9x8xf32>>, !plan.ref<tensor<7x8xf32>>, !plan.ref<tensor<7x8xf32>> -> !plan.ref<tensor<9x8xf32>>
}
