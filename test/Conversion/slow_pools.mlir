// RUN: dovetail-opt %s --pass-pipeline='builtin.module(func.func(dovetail-choose-formats{libraries=onednn features=avx2},dovetail-form-calls{libraries=onednn features=avx2}))' | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: dovetail-opt %s --pass-pipeline='builtin.module(func.func(dovetail-choose-formats{libraries=onednn features=avx2,avx512f},dovetail-form-calls{libraries=onednn features=avx2,avx512f}))' | FileCheck %s --check-prefixes=CHECK,WIDE

// With AVX2, but without AVX-512, oneDNN takes several times as long for the largest of a window as generated code does.

// CHECK-LABEL: func.func @pools
func.func @pools(%x: tensor<1x8x8x8xf32>) -> (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) {
  // NARROW-NOT: plan.group
  // NARROW: dovetail.pool %{{.*}} {{.*}}kind = #dovetail.pool_kind<max>
  // WIDE: plan.group
  // WIDE: dovetail.pool %{{.*}} {{.*}}kind = #dovetail.pool_kind<max>
  %largest = dovetail.pool %x {kind = #dovetail.pool_kind<max>, kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x8x8x8xf32>) -> tensor<1x8x4x4xf32>
  // CHECK: plan.group
  // CHECK: dovetail.pool %{{.*}} {{.*}}kind = #dovetail.pool_kind<average_include_pad>
  %mean = dovetail.pool %x {kind = #dovetail.pool_kind<average_include_pad>, kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x8x8x8xf32>) -> tensor<1x8x4x4xf32>
  return %largest, %mean : tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>
}
