// RUN: dovetail-opt %s --plan-split-reductions --plan-generate-block-kernels | FileCheck %s

dovetail.mesh @mesh = ["y" = 1]

// 49 positions of 512 channels are 8 tiles, for which a device has too many processors: 32 blocks share the 4608 terms
// of each tile. The dimension of images, of which there is one, numbers parts, although the image depends on it.

// CHECK-LABEL: plan.kernel @convolution(%{{.*}}: tensor<32x512x7x7xf32>) layouts [<[0, 2, 3, 1], [32, 512, 7, 7]>] -> [<[0, 2, 3, 1], [1, 512, 7, 7]>]
// CHECK: dovetail.reduce %{{.*}} {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>}
// CHECK-LABEL: plan.kernel @convolution_parts(
// CHECK-SAME: loops = [0, 2, 3, 1], steps = [1, 7, 7, 64], tiles = 1
// CHECK: plan.parts %{{.*}} {dim = 0 : i64} : tensor<1x512x7x7xf32> -> tensor<32x512x7x7xf32>
plan.kernel @convolution(%x: tensor<1x512x7x7xf32>, %w: tensor<512x512x3x3xf32>)
    layouts [<[0, 2, 3, 1], [1, 512, 7, 7]>, <[0, 1, 2, 3], [512, 512, 3, 3]>] -> [<[0, 2, 3, 1], [1, 512, 7, 7]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<1x512x7x7xf32>, tensor<512x512x3x3xf32>) -> tensor<1x512x7x7xf32>
  plan.yield %0 : tensor<1x512x7x7xf32>
}

// Terms in a group of channels are shared, too, although ranks may not divide them. Integers have parts of their type.

// CHECK-LABEL: plan.kernel @groups(%{{.*}}: tensor<{{[0-9]+}}x64x7x7xi32>)
// CHECK-LABEL: plan.kernel @groups_parts(
plan.kernel @groups(%x: tensor<1x512x7x7xi32>, %w: tensor<64x256x3x3xi32>)
    layouts [<[0, 2, 3, 1], [1, 512, 7, 7]>, <[0, 1, 2, 3], [64, 256, 3, 3]>] -> [<[0, 2, 3, 1], [1, 64, 7, 7]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, groups = 2 : i64}
      : (tensor<1x512x7x7xi32>, tensor<64x256x3x3xi32>) -> tensor<1x64x7x7xi32>
  plan.yield %0 : tensor<1x64x7x7xi32>
}

// Nothing is gained where there are few terms, or enough tiles.

// CHECK-LABEL: plan.kernel @short(
// CHECK-NOT: plan.parts
// CHECK-LABEL: plan.kernel @large(
// CHECK-NOT: plan.parts
plan.kernel @short(%a: tensor<1x64x100xf32>, %b: tensor<100x64xf32>) layouts [<[0, 1, 2], [1, 64, 100]>, <[0, 1], [100, 64]>] -> [<[0, 1, 2], [1, 64, 64]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3>} {
  %0 = dovetail.matmul %a, %b : (tensor<1x64x100xf32>, tensor<100x64xf32>) -> tensor<1x64x64xf32>
  plan.yield %0 : tensor<1x64x64xf32>
}
plan.kernel @large(%a: tensor<1x8192x4000xf32>, %b: tensor<4000x4096xf32>) layouts [<[0, 1, 2], [1, 8192, 4000]>, <[0, 1], [4000, 4096]>] -> [<[0, 1, 2], [1, 8192, 4096]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3>} {
  %0 = dovetail.matmul %a, %b : (tensor<1x8192x4000xf32>, tensor<4000x4096xf32>) -> tensor<1x8192x4096xf32>
  plan.yield %0 : tensor<1x8192x4096xf32>
}

// CHECK: plan.launch @convolution_parts(%{{.*}}) -> (%[[PARTS:.*]]) loops [32, 512, 7, 7, 512]
// CHECK-NEXT: plan.launch @convolution(%[[PARTS]]) -> (%{{.*}}) loops [1, 512, 7, 7, 32]
plan.program @main mesh @mesh target "emulated" on device {
  %0 = plan.buffer arena tensor<1x512x7x7xf32> <[0, 2, 3, 1]>
  %1 = plan.view %0 : !plan.ref<tensor<1x512x7x7xf32>>
  %2 = plan.buffer arena tensor<512x512x3x3xf32> <[0, 1, 2, 3]>
  %3 = plan.view %2 : !plan.ref<tensor<512x512x3x3xf32>>
  %4 = plan.buffer arena tensor<1x512x7x7xf32> <[0, 2, 3, 1]>
  %5 = plan.view %4 : !plan.ref<tensor<1x512x7x7xf32>>
  %6 = plan.buffer arena tensor<1x512x7x7xi32> <[0, 2, 3, 1]>
  %7 = plan.view %6 : !plan.ref<tensor<1x512x7x7xi32>>
  %8 = plan.buffer arena tensor<64x256x3x3xi32> <[0, 1, 2, 3]>
  %9 = plan.view %8 : !plan.ref<tensor<64x256x3x3xi32>>
  %10 = plan.buffer arena tensor<1x64x7x7xi32> <[0, 2, 3, 1]>
  %11 = plan.view %10 : !plan.ref<tensor<1x64x7x7xi32>>
  %12 = plan.buffer arena tensor<1x64x100xf32> <[0, 1, 2]>
  %13 = plan.view %12 : !plan.ref<tensor<1x64x100xf32>>
  %14 = plan.buffer arena tensor<100x64xf32> <[0, 1]>
  %15 = plan.view %14 : !plan.ref<tensor<100x64xf32>>
  %16 = plan.buffer arena tensor<1x64x64xf32> <[0, 1, 2]>
  %17 = plan.view %16 : !plan.ref<tensor<1x64x64xf32>>
  %18 = plan.buffer arena tensor<1x8192x4000xf32> <[0, 1, 2]>
  %19 = plan.view %18 : !plan.ref<tensor<1x8192x4000xf32>>
  %20 = plan.buffer arena tensor<4000x4096xf32> <[0, 1]>
  %21 = plan.view %20 : !plan.ref<tensor<4000x4096xf32>>
  %22 = plan.buffer arena tensor<1x8192x4096xf32> <[0, 1, 2]>
  %23 = plan.view %22 : !plan.ref<tensor<1x8192x4096xf32>>
  plan.launch @convolution(%1, %3) -> (%5) loops [1, 512, 7, 7, 512] : (!plan.ref<tensor<1x512x7x7xf32>>, !plan.ref<tensor<512x512x3x3xf32>>) -> (!plan.ref<tensor<1x512x7x7xf32>>)
  plan.launch @groups(%7, %9) -> (%11) loops [1, 64, 7, 7, 256] : (!plan.ref<tensor<1x512x7x7xi32>>, !plan.ref<tensor<64x256x3x3xi32>>) -> (!plan.ref<tensor<1x64x7x7xi32>>)
  plan.launch @short(%13, %15) -> (%17) loops [1, 64, 64, 100] : (!plan.ref<tensor<1x64x100xf32>>, !plan.ref<tensor<100x64xf32>>) -> (!plan.ref<tensor<1x64x64xf32>>)
  plan.launch @large(%19, %21) -> (%23) loops [1, 8192, 4096, 4000] : (!plan.ref<tensor<1x8192x4000xf32>>, !plan.ref<tensor<4000x4096xf32>>) -> (!plan.ref<tensor<1x8192x4096xf32>>)
}
