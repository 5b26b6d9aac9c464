// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-choose-formats,dovetail-keep-packed{kernel-rows=16}))' | FileCheck %s

// Weights of 4 bits: of few rows a kernel computes them, of many they are computed as a whole. Each product has its own,
// right before, though the model has them first. Scales stay in the prologue until they are spread.

// CHECK-LABEL: func.func @rows
// CHECK-NOT: each_run
// CHECK: dovetail.reshape
// CHECK-NOT: each_run
// CHECK: dovetail.exp
// CHECK: dovetail.unpack {{.*}}plan.each_run
// CHECK: dovetail.cast {{.*}}plan.each_run
// CHECK: dovetail.broadcast {{.*}}plan.each_run
// CHECK: dovetail.mul {{.*}}plan.each_run
// CHECK: dovetail.matmul {{.*}}plan.generated
// CHECK: dovetail.unpack {{.*}}plan.each_run
// CHECK: dovetail.mul {{.*}}plan.each_run
// CHECK-NOT: plan.generated
// CHECK: dovetail.matmul
// CHECK-NOT: plan.generated
// CHECK: return
func.func @rows(%x: tensor<3x128xf32>, %y: tensor<17x128xf32>) -> (tensor<3x256xf32>, tensor<17x256xf32>) {
  %w = dovetail.constant dense_resource<w> : tensor<64x256xui8>
  %u = dovetail.unpack %w {dim = 0 : i64} : (tensor<64x256xui8>) -> tensor<128x256xi4>
  %i = dovetail.widen %u : (tensor<128x256xi4>) -> tensor<128x256xi8>
  %f = dovetail.cast %i {to = f32} : (tensor<128x256xi8>) -> tensor<128x256xf32>
  %s = dovetail.constant dense_resource<s> : tensor<256xf32>
  %r = dovetail.reshape %s : (tensor<256xf32>) -> tensor<1x256xf32>
  %b = dovetail.broadcast %r : (tensor<1x256xf32>) -> tensor<128x256xf32>
  %m = dovetail.mul %f, %b : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
  %e = dovetail.exp %x : (tensor<3x128xf32>) -> tensor<3x128xf32>
  %0 = dovetail.matmul %e, %m : (tensor<3x128xf32>, tensor<128x256xf32>) -> tensor<3x256xf32>
  %1 = dovetail.matmul %y, %m : (tensor<17x128xf32>, tensor<128x256xf32>) -> tensor<17x256xf32>
  return %0, %1 : tensor<3x256xf32>, tensor<17x256xf32>
}

// -----

// A kernel goes along columns, which are not neighbours here, unless there are a few rows only.

// CHECK-LABEL: func.func @transposed
// CHECK: dovetail.transpose {{.*}}plan.each_run
// CHECK: dovetail.matmul {{.*}}plan.generated
// CHECK: dovetail.transpose {{.*}}plan.each_run
// CHECK-NOT: plan.generated
// CHECK: return
func.func @transposed(%x: tensor<2x128xf32>, %y: tensor<9x128xf32>) -> (tensor<2x256xf32>, tensor<9x256xf32>) {
  %w = dovetail.constant dense_resource<w> : tensor<128x128xui8>
  %u = dovetail.unpack %w {dim = 0 : i64} : (tensor<128x128xui8>) -> tensor<256x128xi4>
  %i = dovetail.widen %u : (tensor<256x128xi4>) -> tensor<256x128xi8>
  %f = dovetail.cast %i {to = f32} : (tensor<256x128xi8>) -> tensor<256x128xf32>
  %t = dovetail.transpose %f {permutation = array<i64: 1, 0>} : (tensor<256x128xf32>) -> tensor<128x256xf32>
  %0 = dovetail.matmul %x, %t : (tensor<2x128xf32>, tensor<128x256xf32>) -> tensor<2x256xf32>
  %1 = dovetail.matmul %y, %t : (tensor<9x128xf32>, tensor<128x256xf32>) -> tensor<9x256xf32>
  return %0, %1 : tensor<2x256xf32>, tensor<9x256xf32>
}

// -----

// Weights of 8 bits stay where rows are few, or many; else, and in convolutions, the prologue widens them. What
// saves little memory, or is not much larger, and products of constants alone, are as they were.

// CHECK-LABEL: func.func @eight_bits
// CHECK: dovetail.cast {{.*}}plan.each_run
// CHECK: dovetail.matmul {{.*}}plan.generated
// CHECK-NOT: each_run
// CHECK: dovetail.matmul
// CHECK: dovetail.cast {{.*}}plan.each_run
// CHECK: dovetail.matmul
// CHECK-NOT: each_run
// CHECK: return
func.func @eight_bits(%x: tensor<8x128xf32>, %y: tensor<9x128xf32>, %z: tensor<512x128xf32>, %v: tensor<1x64x40x40xf32>)
    -> (tensor<8x256xf32>, tensor<9x256xf32>, tensor<512x256xf32>, tensor<1x64x38x38xf32>) {
  %w = dovetail.constant dense_resource<w> : tensor<128x256xi8>
  %f = dovetail.cast %w {to = f32} : (tensor<128x256xi8>) -> tensor<128x256xf32>
  %0 = dovetail.matmul %x, %f : (tensor<8x128xf32>, tensor<128x256xf32>) -> tensor<8x256xf32>
  %1 = dovetail.matmul %y, %f : (tensor<9x128xf32>, tensor<128x256xf32>) -> tensor<9x256xf32>
  %2 = dovetail.matmul %z, %f : (tensor<512x128xf32>, tensor<128x256xf32>) -> tensor<512x256xf32>
  %c = dovetail.constant dense_resource<c> : tensor<64x64x3x3xi8>
  %g = dovetail.cast %c {to = f32} : (tensor<64x64x3x3xi8>) -> tensor<64x64x3x3xf32>
  %3 = dovetail.conv %v, %g {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>,
      pads_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x64x40x40xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x38x38xf32>
  return %0, %1, %2, %3 : tensor<8x256xf32>, tensor<9x256xf32>, tensor<512x256xf32>, tensor<1x64x38x38xf32>
}

// CHECK-LABEL: func.func @others
// CHECK-NOT: each_run
// CHECK: return
func.func @others(%x: tensor<3x128xf32>, %y: tensor<3x16xf32>) -> (tensor<3x256xf32>, tensor<3x16xf32>, tensor<3x256xf32>) {
  %h = dovetail.constant dense_resource<h> : tensor<128x256xf16>
  %f = dovetail.cast %h {to = f32} : (tensor<128x256xf16>) -> tensor<128x256xf32>
  %0 = dovetail.matmul %x, %f : (tensor<3x128xf32>, tensor<128x256xf32>) -> tensor<3x256xf32>
  %s = dovetail.constant dense_resource<s> : tensor<16x16xi8>
  %g = dovetail.cast %s {to = f32} : (tensor<16x16xi8>) -> tensor<16x16xf32>
  %1 = dovetail.matmul %y, %g : (tensor<3x16xf32>, tensor<16x16xf32>) -> tensor<3x16xf32>
  %c = dovetail.constant dense_resource<c> : tensor<3x128xf32>
  %w = dovetail.constant dense_resource<w> : tensor<128x256xi8>
  %e = dovetail.cast %w {to = f32} : (tensor<128x256xi8>) -> tensor<128x256xf32>
  %2 = dovetail.matmul %c, %e : (tensor<3x128xf32>, tensor<128x256xf32>) -> tensor<3x256xf32>
  return %0, %1, %2 : tensor<3x256xf32>, tensor<3x16xf32>, tensor<3x256xf32>
}

// -----

// Ranks compute, and keep, what they need for their terms: the first 101 rows are in 51 bytes, and the byte in the
// middle is on both; so is the block of scales.

dovetail.mesh @mesh = ["y" = 2]

!x = tensor<3x224xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 101, 224}]>>
!w = tensor<224x256xf32, #dovetail.sharding<@mesh, [{}, {}]>>
!y = tensor<3x256xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y"]>>
#two = #dovetail.loop_shardings<@mesh, [{}, {}]>

// CHECK-LABEL: func.func @divided
// CHECK: %[[W:.*]] = dovetail.reshard {{.*}} : tensor<112x256xui8> -> tensor<112x256xui8, #dovetail.sharding<@mesh, [{"y" : (0, 51), (50, 112)}, {}]>>
// CHECK: dovetail.unpack %[[W]] {{{.*}}dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 101, 224}, {}]>
// CHECK: %[[S:.*]] = dovetail.reshard {{.*}} : tensor<7x1x256xf32> -> tensor<7x1x256xf32, #dovetail.sharding<@mesh, [{"y" : (0, 4), (3, 7)}, {}, {}]>>
// CHECK: dovetail.broadcast %[[S]]
// CHECK: dovetail.matmul {{.*}}plan.generated{{.*}}tensor<224x256xf32, #dovetail.sharding<@mesh, [{"y" : 0, 101, 224}, {}]>>
func.func @divided(%x: !x) -> !y {
  %c = dovetail.constant dense_resource<w> : tensor<112x256xui8>
  %u = dovetail.unpack %c {dim = 0 : i64, dovetail.loops = #two} : (tensor<112x256xui8>) -> tensor<224x256xi4, #dovetail.sharding<@mesh, [{}, {}]>>
  %i = dovetail.widen %u {dovetail.loops = #two} : (tensor<224x256xi4, #dovetail.sharding<@mesh, [{}, {}]>>) -> tensor<224x256xi8, #dovetail.sharding<@mesh, [{}, {}]>>
  %f = dovetail.cast %i {to = f32, dovetail.loops = #two} : (tensor<224x256xi8, #dovetail.sharding<@mesh, [{}, {}]>>) -> !w
  %s = dovetail.constant dense_resource<s> : tensor<7x1x256xf32>
  %b = dovetail.broadcast %s {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {}]>} : (tensor<7x1x256xf32>) -> tensor<7x32x256xf32, #dovetail.sharding<@mesh, [{}, {}, {}]>>
  %r = dovetail.reshape %b {dovetail.loops = #two} : (tensor<7x32x256xf32, #dovetail.sharding<@mesh, [{}, {}, {}]>>) -> !w
  %m = dovetail.mul %f, %r {dovetail.loops = #two} : (!w, !w) -> !w
  %0 = dovetail.matmul %x, %m {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 101, 224}]>} : (!x, !w) -> !y
  return %0 : !y
}
