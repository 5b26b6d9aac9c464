// RUN: dovetail-opt %s --dovetail-expand-rows --split-input-file | FileCheck %s

// The exponentials that a softmax divides are summed as they are; how loops are split stays.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func @softmax
func.func @softmax(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  // CHECK: %[[MAXIMA:.*]] = dovetail.reduce %{{.*}} {axes = array<i64: 1>, {{.*}}kind = #dovetail.reduce_kind<max>, test.loops}
  // CHECK: %[[SHIFTED:.*]] = dovetail.sub %{{.*}}, %[[MAXIMA]]
  // CHECK: %[[EXPONENTIALS:.*]] = dovetail.exp %[[SHIFTED]]
  // CHECK: %[[SUMS:.*]] = dovetail.reduce %[[EXPONENTIALS]] {axes = array<i64: 1>, {{.*}}kind = #dovetail.reduce_kind<sum>, test.loops}
  // CHECK: %[[INVERSE:.*]] = dovetail.reciprocal %[[SUMS]]
  // CHECK: dovetail.mul %[[EXPONENTIALS]], %[[INVERSE]]
  // CHECK-NOT: sum_exp
  %maxima, %sums = dovetail.sum_exp %x {axes = array<i64: 1>, test.loops} : (tensor<64x128xf32>) -> (tensor<64x1xf32>, tensor<64x1xf32>)
  %inverse = dovetail.reciprocal %sums : (tensor<64x1xf32>) -> tensor<64x1xf32>
  %shifted = dovetail.sub %x, %maxima : (tensor<64x128xf32>, tensor<64x1xf32>) -> tensor<64x128xf32>
  %exponentials = dovetail.exp %shifted : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %y = dovetail.mul %exponentials, %inverse : (tensor<64x128xf32>, tensor<64x1xf32>) -> tensor<64x128xf32>
  return %y : tensor<64x128xf32>
}

// Logarithms read no exponentials.
// CHECK-LABEL: func @log_softmax
// CHECK: dovetail.sum_exp
func.func @log_softmax(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %maxima, %sums = dovetail.sum_exp %x {axes = array<i64: 1>} : (tensor<64x128xf32>) -> (tensor<64x1xf32>, tensor<64x1xf32>)
  %log = dovetail.log %sums : (tensor<64x1xf32>) -> tensor<64x1xf32>
  %shifted = dovetail.sub %x, %maxima : (tensor<64x128xf32>, tensor<64x1xf32>) -> tensor<64x128xf32>
  %y = dovetail.sub %shifted, %log : (tensor<64x128xf32>, tensor<64x1xf32>) -> tensor<64x128xf32>
  return %y : tensor<64x128xf32>
}

// Rows that are not the last dimension, or longer than a cache, are gone through in other ways.
// CHECK-LABEL: func @channels
// CHECK: dovetail.sum_exp
func.func @channels(%x: tensor<8x64x128xf32>) -> tensor<8x64x128xf32> {
  %maxima, %sums = dovetail.sum_exp %x {axes = array<i64: 1>} : (tensor<8x64x128xf32>) -> (tensor<8x1x128xf32>, tensor<8x1x128xf32>)
  %inverse = dovetail.reciprocal %sums : (tensor<8x1x128xf32>) -> tensor<8x1x128xf32>
  %shifted = dovetail.sub %x, %maxima : (tensor<8x64x128xf32>, tensor<8x1x128xf32>) -> tensor<8x64x128xf32>
  %exponentials = dovetail.exp %shifted : (tensor<8x64x128xf32>) -> tensor<8x64x128xf32>
  %y = dovetail.mul %exponentials, %inverse : (tensor<8x64x128xf32>, tensor<8x1x128xf32>) -> tensor<8x64x128xf32>
  return %y : tensor<8x64x128xf32>
}

// CHECK-LABEL: func @long
// CHECK: dovetail.sum_exp
func.func @long(%x: tensor<4x20000xf32>) -> tensor<4x20000xf32> {
  %maxima, %sums = dovetail.sum_exp %x {axes = array<i64: 1>} : (tensor<4x20000xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>)
  %inverse = dovetail.reciprocal %sums : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %shifted = dovetail.sub %x, %maxima : (tensor<4x20000xf32>, tensor<4x1xf32>) -> tensor<4x20000xf32>
  %exponentials = dovetail.exp %shifted : (tensor<4x20000xf32>) -> tensor<4x20000xf32>
  %y = dovetail.mul %exponentials, %inverse : (tensor<4x20000xf32>, tensor<4x1xf32>) -> tensor<4x20000xf32>
  return %y : tensor<4x20000xf32>
}

// Parts of rows have a maximum each.
// CHECK-LABEL: func @split
// CHECK: dovetail.sum_exp
func.func @split(%x: tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>) -> tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>> {
  %maxima, %sums = dovetail.sum_exp %x {axes = array<i64: 1>} : (tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>) -> (tensor<4x1xf32>, tensor<4x1xf32>)
  %inverse = dovetail.reciprocal %sums : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %shifted = dovetail.sub %x, %maxima : (tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>, tensor<4x1xf32>) -> tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>
  %exponentials = dovetail.exp %shifted : (tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>) -> tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>
  %y = dovetail.mul %exponentials, %inverse : (tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>, tensor<4x1xf32>) -> tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>
  return %y : tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>
}

// What the sum is needed for besides, such as its logarithm, is right for rows of minus infinity, too.
// CHECK-LABEL: func @also_log
// CHECK: dovetail.sum_exp
func.func @also_log(%x: tensor<64x128xf32>) -> (tensor<64x128xf32>, tensor<64x1xf32>) {
  %maxima, %sums = dovetail.sum_exp %x {axes = array<i64: 1>} : (tensor<64x128xf32>) -> (tensor<64x1xf32>, tensor<64x1xf32>)
  %inverse = dovetail.reciprocal %sums : (tensor<64x1xf32>) -> tensor<64x1xf32>
  %log = dovetail.log %sums : (tensor<64x1xf32>) -> tensor<64x1xf32>
  %shifted = dovetail.sub %x, %maxima : (tensor<64x128xf32>, tensor<64x1xf32>) -> tensor<64x128xf32>
  %exponentials = dovetail.exp %shifted : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %y = dovetail.mul %exponentials, %inverse : (tensor<64x128xf32>, tensor<64x1xf32>) -> tensor<64x128xf32>
  return %y, %log : tensor<64x128xf32>, tensor<64x1xf32>
}

// Ranks have other parts of the exponentials than of what is folded.
// CHECK-LABEL: func @other_parts
// CHECK: dovetail.sum_exp
func.func @other_parts(%x: tensor<4x128xf32>) -> tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>> {
  %maxima, %sums = dovetail.sum_exp %x {axes = array<i64: 1>} : (tensor<4x128xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>)
  %inverse = dovetail.reciprocal %sums : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %shifted = dovetail.sub %x, %maxima : (tensor<4x128xf32>, tensor<4x1xf32>) -> tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>
  %exponentials = dovetail.exp %shifted : (tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>) -> tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>
  %y = dovetail.mul %exponentials, %inverse : (tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>, tensor<4x1xf32>) -> tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>
  return %y : tensor<4x128xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 64, 128}]>>
}
