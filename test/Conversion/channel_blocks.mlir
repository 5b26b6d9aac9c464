// RUN: dovetail-opt %s --dovetail-lower-graph="libraries=onednn-blocks features=avx512f" | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: dovetail-opt %s --dovetail-lower-graph="libraries=onednn-blocks" | FileCheck %s --check-prefixes=CHECK,NARROW

// What a convolution reads and writes is in blocks of channels, and so is what a kernel makes of it. The user's image is
// put into blocks first, which are as long as vectors.

dovetail.mesh @mesh = ["y" = 1]

// CHECK: plan.kernel @[[KERNEL:.*]](
// WIDE-SAME: layouts [<[0, 1, 2, 3], block 1 by 16, [1, 37, 9, 9]>] -> [<[0, 1, 2, 3], block 1 by 16, [1, 37, 9, 9]>]
// NARROW-SAME: layouts [<[0, 1, 2, 3], block 1 by 8, [1, 37, 9, 9]>] -> [<[0, 1, 2, 3], block 1 by 8, [1, 37, 9, 9]>]
// CHECK: dovetail.sin
func.func @main(%image: tensor<1x20x9x9xf32> {dovetail.name = "image"}) -> tensor<1x37x9x9xf32> {
  // CHECK: %[[PLAIN:.*]] = plan.buffer {{.*}}tensor<1x20x9x9xf32> <[0, 1, 2, 3]>
  // CHECK-NEXT: %[[IMAGE:.*]] = plan.view %[[PLAIN]]
  // WIDE: %[[BLOCKS:.*]] = plan.buffer {{.*}}tensor<1x20x9x9xf32> <[0, 1, 2, 3], block 1 by 16>
  // NARROW: %[[BLOCKS:.*]] = plan.buffer {{.*}}tensor<1x20x9x9xf32> <[0, 1, 2, 3], block 1 by 8>
  // CHECK-NEXT: %[[COPY:.*]] = plan.view %[[BLOCKS]]
  // CHECK: plan.input "image" %[[IMAGE]]
  // CHECK: plan.reorder %[[IMAGE]] -> %[[COPY]]
  // CHECK-NEXT: plan.convolution %[[COPY]], %{{.*}} -> %[[RESULT:.*]] loops
  // CHECK-NEXT: plan.launch @[[KERNEL]](%[[RESULT]])
  %weights = dovetail.constant dense<1.0> : tensor<37x20x3x3xf32>
  %0 = dovetail.conv %image, %weights {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>,
      pads_high = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x20x9x9xf32>, tensor<37x20x3x3xf32>) -> tensor<1x37x9x9xf32>
  %1 = dovetail.sin %0 : (tensor<1x37x9x9xf32>) -> tensor<1x37x9x9xf32>
  return %1 : tensor<1x37x9x9xf32>
}

// An image of three channels would leave most of a block empty: the first convolution reads and writes its channels one
// after the other, and what it gives is put into blocks.

// CHECK-LABEL: plan.program @photo
// CHECK: plan.buffer {{.*}}tensor<1x3x9x9xf32> <[0, 2, 3, 1]>
// CHECK-NEXT: %[[PHOTO:.*]] = plan.view
// CHECK: plan.buffer {{.*}}tensor<1x32x9x9xf32> <[0, 2, 3, 1]>
// CHECK-NEXT: %[[FIRST:.*]] = plan.view
// WIDE: plan.buffer {{.*}}tensor<1x32x9x9xf32> <[0, 1, 2, 3], block 1 by 16>
// NARROW: plan.buffer {{.*}}tensor<1x32x9x9xf32> <[0, 1, 2, 3], block 1 by 8>
// CHECK-NEXT: %[[BLOCKED:.*]] = plan.view
// CHECK: plan.input "photo" %[[PHOTO]]
// CHECK: plan.convolution %[[PHOTO]], %{{.*}} -> %[[FIRST]] loops
// CHECK-NEXT: plan.reorder %[[FIRST]] -> %[[BLOCKED]]
// CHECK-NEXT: plan.convolution %[[BLOCKED]]
func.func @photo(%image: tensor<1x3x9x9xf32> {dovetail.name = "photo"}) -> tensor<1x32x9x9xf32> {
  %first = dovetail.constant dense<1.0> : tensor<32x3x3x3xf32>
  %0 = dovetail.conv %image, %first {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>,
      pads_high = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x3x9x9xf32>, tensor<32x3x3x3xf32>) -> tensor<1x32x9x9xf32>
  %second = dovetail.constant dense<1.0> : tensor<32x32x3x3xf32>
  %1 = dovetail.conv %0, %second {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>,
      pads_high = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x32x9x9xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x9x9xf32>
  return %1 : tensor<1x32x9x9xf32>
}
