// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-choose-formats,dovetail-fuse-kernels))' | FileCheck %s

// A chain is one kernel; what it reads twice is one operand, and uniform constants are part of it. Loop shardings stay.

dovetail.mesh @mesh = ["y" = 2]

!split = tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>

// CHECK-LABEL: func.func @chain
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<40x8xf32{{.*}}, %[[Y:[a-z0-9]+]]: tensor<8xf32>
// CHECK: %[[R:.*]] = plan.group(%[[A:.*]] = %[[X]], %[[B:.*]] = %[[Y]]) attributes {plan.formats = [#plan.format<[0, 1]>]}
// CHECK-NEXT: %[[M:.*]] = dovetail.mul %[[A]], %[[B]] {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 10, 40}, {}]>} :
// CHECK-NEXT: %[[C:.*]] = dovetail.constant dense<2.000000e+00>
// CHECK-NEXT: %[[S:.*]] = dovetail.add %[[M]], %[[C]]
// CHECK-NEXT: %[[E:.*]] = dovetail.sub %[[S]], %[[A]]
// CHECK-NEXT: plan.yield %[[E]]
// CHECK: return %[[R]]
func.func @chain(%x: !split, %y: tensor<8xf32>) -> !split {
  %two = dovetail.constant dense<2.0> : tensor<f32>
  %0 = dovetail.mul %x, %y {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 10, 40}, {}]>} : (!split, tensor<8xf32>) -> !split
  %1 = dovetail.add %0, %two {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 10, 40}, {}]>} : (!split, tensor<f32>) -> !split
  %2 = dovetail.sub %1, %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 10, 40}, {}]>} : (!split, !split) -> !split
  return %2 : !split
}

// -----

// A sum of rows joins what goes over the rows again; one of columns does not, nor does what others read, too.

// CHECK-LABEL: func.func @reductions
// CHECK: plan.group
// CHECK-NEXT: dovetail.reduce {{.*}}axes = array<i64: 1>
// CHECK-NEXT: dovetail.sub
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.reduce {{.*}}axes = array<i64: 0>
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.sub
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.exp
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.neg
// CHECK-NEXT: plan.yield
// CHECK-NOT: plan.group
func.func @reductions(%x: tensor<6x40xf32>) -> (tensor<6x40xf32>, tensor<6x40xf32>, tensor<6x40xf32>, tensor<6x40xf32>) {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<6x40xf32>) -> tensor<6x1xf32>
  %1 = dovetail.sub %x, %0 : (tensor<6x40xf32>, tensor<6x1xf32>) -> tensor<6x40xf32>
  %2 = dovetail.reduce %x {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>} : (tensor<6x40xf32>) -> tensor<1x40xf32>
  %3 = dovetail.sub %x, %2 : (tensor<6x40xf32>, tensor<1x40xf32>) -> tensor<6x40xf32>
  %4 = dovetail.exp %x : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %5 = dovetail.neg %4 : (tensor<6x40xf32>) -> tensor<6x40xf32>
  return %1, %3, %4, %5 : tensor<6x40xf32>, tensor<6x40xf32>, tensor<6x40xf32>, tensor<6x40xf32>
}

// -----

// A kernel has all results of its last operation.

// CHECK-LABEL: func.func @top
// CHECK: %[[R:.*]]:2 = plan.group({{.*}}) attributes {plan.formats = [#plan.format<[0, 1]>, #plan.format<[0, 1]>]}
// CHECK-NEXT: %[[V:.*]], %[[I:.*]] = dovetail.top_k
// CHECK-NEXT: plan.yield %[[V]], %[[I]] : tensor<4x2xf32>, tensor<4x2xi64>
// CHECK: return %[[R]]#1, %[[R]]#0
func.func @top(%x: tensor<4x9xf32>) -> (tensor<4x2xi64>, tensor<4x2xf32>) {
  %0:2 = dovetail.top_k %x {k = 2 : i64, axis = 1 : i64, largest = true} : (tensor<4x9xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  return %0#1, %0#0 : tensor<4x2xi64>, tensor<4x2xf32>
}

// -----

// Where lines are shifted on the way to the result, a sum of one would be taken anew for each of its elements, though the shapes are the same.

// CHECK-LABEL: func.func @shifted
// CHECK: plan.group
// CHECK-NEXT: dovetail.reduce
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.sub
// CHECK-NEXT: dovetail.slice
// CHECK-NEXT: dovetail.slice
// CHECK-NEXT: dovetail.concat
// CHECK-NEXT: plan.yield
// CHECK-NOT: plan.group
func.func @shifted(%x: tensor<6x40xf32>) -> tensor<6x40xf32> {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<6x40xf32>) -> tensor<6x1xf32>
  %1 = dovetail.sub %x, %0 : (tensor<6x40xf32>, tensor<6x1xf32>) -> tensor<6x40xf32>
  %2 = dovetail.slice %1 {starts = array<i64: 2, 0>, sizes = array<i64: 4, 40>, steps = array<i64: 1, 1>} : (tensor<6x40xf32>) -> tensor<4x40xf32>
  %3 = dovetail.slice %1 {starts = array<i64: 0, 0>, sizes = array<i64: 2, 40>, steps = array<i64: 1, 1>} : (tensor<6x40xf32>) -> tensor<2x40xf32>
  %4 = dovetail.concat %2, %3 {axis = 0 : i64} : (tensor<4x40xf32>, tensor<2x40xf32>) -> tensor<6x40xf32>
  return %4 : tensor<6x40xf32>
}

// -----

// What only says where elements are is part of each kernel that reads it, unless it brings what is read with gaps into
// order, or somebody needs it in memory.

// CHECK-LABEL: func.func @addresses
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<6x160xf32>
// CHECK: plan.group(%{{.*}} = %[[X]])
// CHECK-NEXT: dovetail.reshape
// CHECK-NEXT: dovetail.slice {{.*}}starts = array<i64: 0, 0, 0>
// CHECK-NEXT: plan.yield
// CHECK: plan.group(%{{.*}} = %[[X]])
// CHECK-NEXT: dovetail.reshape
// CHECK-NEXT: dovetail.slice {{.*}}starts = array<i64: 0, 2, 0>
// CHECK-NEXT: dovetail.exp
// CHECK-NEXT: plan.yield
// CHECK-NOT: plan.group
func.func @addresses(%x: tensor<6x160xf32>) -> (tensor<6x2x40xf32>, tensor<6x2x40xf32>) {
  %0 = dovetail.reshape %x : (tensor<6x160xf32>) -> tensor<6x4x40xf32>
  %1 = dovetail.slice %0 {starts = array<i64: 0, 0, 0>, sizes = array<i64: 6, 2, 40>, steps = array<i64: 1, 1, 1>} : (tensor<6x4x40xf32>) -> tensor<6x2x40xf32>
  %2 = dovetail.slice %0 {starts = array<i64: 0, 2, 0>, sizes = array<i64: 6, 2, 40>, steps = array<i64: 1, 1, 1>} : (tensor<6x4x40xf32>) -> tensor<6x2x40xf32>
  %3 = dovetail.exp %2 : (tensor<6x2x40xf32>) -> tensor<6x2x40xf32>
  return %1, %3 : tensor<6x2x40xf32>, tensor<6x2x40xf32>
}

// CHECK-LABEL: func.func @gaps
// CHECK: %[[T:.*]] = plan.group
// CHECK-NEXT: dovetail.transpose
// CHECK-NEXT: plan.yield
// CHECK: plan.group(%{{.*}} = %[[T]])
// CHECK-NEXT: dovetail.exp
// CHECK-NEXT: plan.yield
// CHECK: plan.group(%{{.*}} = %[[T]])
// CHECK-NEXT: dovetail.neg
// CHECK-NEXT: plan.yield
// CHECK-NOT: plan.group
func.func @gaps(%x: tensor<40x40xf32>) -> (tensor<40x40xf32>, tensor<40x40xf32>) {
  %0 = dovetail.transpose %x {permutation = array<i64: 1, 0>} : (tensor<40x40xf32>) -> tensor<40x40xf32>
  %1 = dovetail.exp %0 : (tensor<40x40xf32>) -> tensor<40x40xf32>
  %2 = dovetail.neg %0 : (tensor<40x40xf32>) -> tensor<40x40xf32>
  return %1, %2 : tensor<40x40xf32>, tensor<40x40xf32>
}

// CHECK-LABEL: func.func @inMemory
// CHECK: %[[R:.*]] = plan.group
// CHECK-NEXT: dovetail.reshape
// CHECK-NEXT: plan.yield
// CHECK: plan.group(%{{.*}} = %[[R]])
// CHECK-NEXT: dovetail.exp
// CHECK-NEXT: plan.yield
// CHECK: return %[[R]]
func.func @inMemory(%x: tensor<6x160xf32>) -> (tensor<6x4x40xf32>, tensor<6x4x40xf32>) {
  %0 = dovetail.reshape %x : (tensor<6x160xf32>) -> tensor<6x4x40xf32>
  %1 = dovetail.exp %0 : (tensor<6x4x40xf32>) -> tensor<6x4x40xf32>
  return %0, %1 : tensor<6x4x40xf32>, tensor<6x4x40xf32>
}

// -----

// What costs more than to be computed twice is part of the kernel that computes each of its elements once, as it goes to
// a place of its own in a concatenation, but not where elements are read by several.

// CHECK-LABEL: func.func @once
// CHECK: plan.group
// CHECK-NEXT: dovetail.resize
// CHECK-NEXT: dovetail.relu
// CHECK-NEXT: dovetail.concat
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.constant
// CHECK-NEXT: dovetail.conv
func.func @once(%x: tensor<1x8x4x4xf32>, %y: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = dovetail.constant dense<2.0> : tensor<4x12x1x1xf32>
  %0 = dovetail.resize %x {coordinates = #dovetail.coordinate_mode<half_pixel>, cubic_coeff_a = -7.5e-01 : f32, extrapolation_value = 0.0 : f32, mode = #dovetail.resize_mode<linear>, nearest = #dovetail.nearest_mode<floor>, roi = array<f64>, scales = array<f64: 1.0, 1.0, 2.0, 2.0>, sizes = array<i64: 1, 8, 8, 8>} : (tensor<1x8x4x4xf32>) -> tensor<1x8x8x8xf32>
  %1 = dovetail.relu %0 : (tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %2 = dovetail.concat %1, %y {axis = 1 : i64} : (tensor<1x8x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x12x8x8xf32>
  %3 = dovetail.conv %2, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x12x8x8xf32>, tensor<4x12x1x1xf32>) -> tensor<1x4x8x8xf32>
  return %3 : tensor<1x4x8x8xf32>
}

// CHECK-LABEL: func.func @twice
// CHECK: plan.group
// CHECK-NEXT: dovetail.resize
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.concat
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.resize
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.add
// CHECK-NEXT: plan.yield
// CHECK-NOT: plan.group
func.func @twice(%x: tensor<1x1x4x4xf32>, %y: tensor<1x1x8x8xf32>, %z: tensor<3x1x8x8xf32>) -> (tensor<1x2x8x8xf32>, tensor<3x1x8x8xf32>) {
  %0 = dovetail.resize %x {coordinates = #dovetail.coordinate_mode<half_pixel>, cubic_coeff_a = -7.5e-01 : f32, extrapolation_value = 0.0 : f32, mode = #dovetail.resize_mode<linear>, nearest = #dovetail.nearest_mode<floor>, roi = array<f64>, scales = array<f64: 1.0, 1.0, 2.0, 2.0>, sizes = array<i64: 1, 1, 8, 8>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x8x8xf32>
  %1 = dovetail.concat %0, %0 {axis = 1 : i64} : (tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) -> tensor<1x2x8x8xf32>
  %2 = dovetail.resize %x {coordinates = #dovetail.coordinate_mode<half_pixel>, cubic_coeff_a = -7.5e-01 : f32, extrapolation_value = 0.0 : f32, mode = #dovetail.resize_mode<linear>, nearest = #dovetail.nearest_mode<floor>, roi = array<f64>, scales = array<f64: 1.0, 1.0, 2.0, 2.0>, sizes = array<i64: 1, 1, 8, 8>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x8x8xf32>
  %3 = dovetail.add %z, %2 : (tensor<3x1x8x8xf32>, tensor<1x1x8x8xf32>) -> tensor<3x1x8x8xf32>
  return %1, %3 : tensor<1x2x8x8xf32>, tensor<3x1x8x8xf32>
}

// -----

// An address costs nothing, however often it is read: of blocks that are added up, of a pool, of updates that are placed.
// What the updates are placed in is read where it is, and what computes something is stored.

// CHECK-LABEL: func.func @addresses
// CHECK: plan.group
// CHECK-NEXT: dovetail.reshape
// CHECK-NEXT: dovetail.col2im
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.reshape
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.reshape
// CHECK-NEXT: dovetail.scatter_nd
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.exp
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.col2im
// CHECK-NEXT: plan.yield
func.func @addresses(%x: tensor<1x12x50xf32>, %d: tensor<10x10xf32>, %i: tensor<9x1xi64>, %u: tensor<3x3xf32>, %e: tensor<1x4x3x50xf32>) -> (tensor<1x4x101xf32>, tensor<100xf32>, tensor<1x4x101xf32>) {
  %0 = dovetail.reshape %x : (tensor<1x12x50xf32>) -> tensor<1x4x3x50xf32>
  %1 = dovetail.col2im %0 {sizes = array<i64: 101>, strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x4x3x50xf32>) -> tensor<1x4x101xf32>
  %2 = dovetail.reshape %d : (tensor<10x10xf32>) -> tensor<100xf32>
  %3 = dovetail.reshape %u : (tensor<3x3xf32>) -> tensor<9xf32>
  %4 = dovetail.scatter_nd %2, %i, %3 : (tensor<100xf32>, tensor<9x1xi64>, tensor<9xf32>) -> tensor<100xf32>
  %5 = dovetail.exp %e : (tensor<1x4x3x50xf32>) -> tensor<1x4x3x50xf32>
  %6 = dovetail.col2im %5 {sizes = array<i64: 101>, strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x4x3x50xf32>) -> tensor<1x4x101xf32>
  return %1, %4, %6 : tensor<1x4x101xf32>, tensor<100xf32>, tensor<1x4x101xf32>
}

// -----

// What is the same everywhere need not be in memory for updates to be placed in, and where they go is computed with
// them, as each is read once. What updates are is computed once for all threads.

// CHECK-LABEL: func.func @places
// CHECK: plan.group
// CHECK-NEXT: dovetail.exp
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.constant
// CHECK-NEXT: dovetail.broadcast
// CHECK-NEXT: dovetail.cast
// CHECK-NEXT: dovetail.scatter_nd
// CHECK-NEXT: plan.yield
func.func @places(%i: tensor<9x1xi64>, %u: tensor<9xf32>) -> tensor<100xf32> {
  %zero = dovetail.constant dense<0.0> : tensor<f32>
  %0 = dovetail.broadcast %zero : (tensor<f32>) -> tensor<100xf32>
  %1 = dovetail.cast %i {to = ui64} : (tensor<9x1xi64>) -> tensor<9x1xui64>
  %2 = dovetail.exp %u : (tensor<9xf32>) -> tensor<9xf32>
  %3 = dovetail.scatter_nd %0, %1, %2 : (tensor<100xf32>, tensor<9x1xui64>, tensor<9xf32>) -> tensor<100xf32>
  return %3 : tensor<100xf32>
}

// -----

// However it is computed: coordinates of positions in a matrix of 20 columns.

// CHECK-LABEL: func.func @coordinates
// CHECK-COUNT-1: plan.group
// CHECK: dovetail.div
// CHECK: dovetail.mod
// CHECK: dovetail.concat
// CHECK-NEXT: dovetail.scatter_nd
// CHECK-NEXT: plan.yield
// CHECK-NOT: plan.group
func.func @coordinates(%i: tensor<9x1xui64>, %u: tensor<9xf32>) -> tensor<500x20xf32> {
  %zero = dovetail.constant dense<0.0> : tensor<f32>
  %columns = dovetail.constant dense<20> : tensor<ui64>
  %0 = dovetail.broadcast %zero : (tensor<f32>) -> tensor<500x20xf32>
  %1 = dovetail.div %i, %columns : (tensor<9x1xui64>, tensor<ui64>) -> tensor<9x1xui64>
  %2 = dovetail.mod %i, %columns {fmod = 0 : si64} : (tensor<9x1xui64>, tensor<ui64>) -> tensor<9x1xui64>
  %3 = dovetail.concat %1, %2 {axis = 1 : i64} : (tensor<9x1xui64>, tensor<9x1xui64>) -> tensor<9x2xui64>
  %4 = dovetail.scatter_nd %0, %3, %u : (tensor<500x20xf32>, tensor<9x2xui64>, tensor<9xf32>) -> tensor<500x20xf32>
  return %4 : tensor<500x20xf32>
}

// -----

// Each is looked at once, however many ways there are from it to the places.

// CHECK-LABEL: func.func @powers
// CHECK: dovetail.scatter_nd
func.func @powers(%x: tensor<100xf32>, %i: tensor<9x1xi64>, %u: tensor<9xf32>) -> tensor<100xf32> {
  %n0 = dovetail.neg %i : (tensor<9x1xi64>) -> tensor<9x1xi64>
  %n1 = dovetail.mul %n0, %n0 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n2 = dovetail.mul %n1, %n1 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n3 = dovetail.mul %n2, %n2 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n4 = dovetail.mul %n3, %n3 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n5 = dovetail.mul %n4, %n4 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n6 = dovetail.mul %n5, %n5 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n7 = dovetail.mul %n6, %n6 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n8 = dovetail.mul %n7, %n7 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n9 = dovetail.mul %n8, %n8 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n10 = dovetail.mul %n9, %n9 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n11 = dovetail.mul %n10, %n10 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n12 = dovetail.mul %n11, %n11 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n13 = dovetail.mul %n12, %n12 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n14 = dovetail.mul %n13, %n13 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n15 = dovetail.mul %n14, %n14 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n16 = dovetail.mul %n15, %n15 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n17 = dovetail.mul %n16, %n16 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n18 = dovetail.mul %n17, %n17 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n19 = dovetail.mul %n18, %n18 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n20 = dovetail.mul %n19, %n19 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n21 = dovetail.mul %n20, %n20 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n22 = dovetail.mul %n21, %n21 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n23 = dovetail.mul %n22, %n22 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n24 = dovetail.mul %n23, %n23 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n25 = dovetail.mul %n24, %n24 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n26 = dovetail.mul %n25, %n25 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n27 = dovetail.mul %n26, %n26 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n28 = dovetail.mul %n27, %n27 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n29 = dovetail.mul %n28, %n28 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n30 = dovetail.mul %n29, %n29 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n31 = dovetail.mul %n30, %n30 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n32 = dovetail.mul %n31, %n31 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n33 = dovetail.mul %n32, %n32 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n34 = dovetail.mul %n33, %n33 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n35 = dovetail.mul %n34, %n34 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n36 = dovetail.mul %n35, %n35 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n37 = dovetail.mul %n36, %n36 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n38 = dovetail.mul %n37, %n37 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n39 = dovetail.mul %n38, %n38 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %n40 = dovetail.mul %n39, %n39 : (tensor<9x1xi64>, tensor<9x1xi64>) -> tensor<9x1xi64>
  %0 = dovetail.scatter_nd %x, %n40, %u : (tensor<100xf32>, tensor<9x1xi64>, tensor<9xf32>) -> tensor<100xf32>
  return %0 : tensor<100xf32>
}

// -----

// A product reads its factors often, and so in memory, unless they are to be computed there.

// CHECK-LABEL: func.func @factors
// CHECK: plan.group
// CHECK-NEXT: dovetail.cast
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.matmul
// CHECK-NEXT: plan.yield
// CHECK: plan.group({{.*}}) attributes {plan.formats = [#plan.format<[0, 1]>]}
// CHECK-NEXT: dovetail.cast %{{.*}} {to = f32}
// CHECK-NEXT: dovetail.matmul %{{[a-z0-9]+}}, %{{[a-z0-9]+}} :
// CHECK-NEXT: plan.yield
func.func @factors(%x: tensor<4x8xf32>, %v: tensor<8x6xi8>, %w: tensor<8x6xi8>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = dovetail.cast %v {to = f32} : (tensor<8x6xi8>) -> tensor<8x6xf32>
  %1 = dovetail.matmul %x, %0 : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %2 = dovetail.cast %w {to = f32, plan.each_run} : (tensor<8x6xi8>) -> tensor<8x6xf32>
  %3 = dovetail.matmul %x, %2 {plan.generated} : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %1, %3 : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// The small end of a tensor, as one part of a larger result, is read where it lies; small as it is, many elements do not
// share it. A sum over a small slice, whose elements many share, is not.

// CHECK-LABEL: func.func @ends
// CHECK: plan.group
// CHECK-NEXT: dovetail.slice
// CHECK-NEXT: dovetail.concat
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.slice
// CHECK-NEXT: plan.yield
// CHECK: plan.group
// CHECK-NEXT: dovetail.add
// CHECK-NEXT: plan.yield
// CHECK-NOT: plan.group
func.func @ends(%x: tensor<64x8xf32>) -> (tensor<65x8xf32>, tensor<64x8xf32>) {
  %0 = dovetail.slice %x {starts = array<i64: 63, 0>, sizes = array<i64: 1, 8>, steps = array<i64: 1, 1>} : (tensor<64x8xf32>) -> tensor<1x8xf32>
  %1 = dovetail.concat %0, %x {axis = 0 : i64} : (tensor<1x8xf32>, tensor<64x8xf32>) -> tensor<65x8xf32>
  %2 = dovetail.slice %x {starts = array<i64: 7, 0>, sizes = array<i64: 1, 8>, steps = array<i64: 1, 1>} : (tensor<64x8xf32>) -> tensor<1x8xf32>
  %3 = dovetail.add %x, %2 : (tensor<64x8xf32>, tensor<1x8xf32>) -> tensor<64x8xf32>
  return %1, %3 : tensor<65x8xf32>, tensor<64x8xf32>
}
