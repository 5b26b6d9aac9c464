// RUN: dovetail-opt %s --dovetail-restore-rows --split-input-file | FileCheck %s
// RUN: dovetail-opt %s --dovetail-restore-rows --dovetail-restore-rows --split-input-file | FileCheck %s

// What is flattened for a product and its bias stays as it is.
// CHECK-LABEL: func @gemm
// CHECK-NEXT: %[[P:.*]] = dovetail.matmul %arg0, %arg1 : (tensor<2x8x16xf32>, tensor<16x4xf32>) -> tensor<2x8x4xf32>
// CHECK-NEXT: %[[S:.*]] = dovetail.add %[[P]], %arg2 : (tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8x4xf32>
// CHECK-NEXT: return %[[S]]
func.func @gemm(%arg0: tensor<2x8x16xf32>, %arg1: tensor<16x4xf32>, %arg2: tensor<4xf32>) -> tensor<2x8x4xf32> {
  %0 = dovetail.reshape %arg0 : (tensor<2x8x16xf32>) -> tensor<16x16xf32>
  %1 = dovetail.matmul %0, %arg1 : (tensor<16x16xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  %2 = dovetail.add %1, %arg2 : (tensor<16x4xf32>, tensor<4xf32>) -> tensor<16x4xf32>
  %3 = dovetail.reshape %2 : (tensor<16x4xf32>) -> tensor<2x8x4xf32>
  return %3 : tensor<2x8x4xf32>
}

// -----

// Several products of one tensor, an activation, and a constant for some of the dimensions. A reshape that merges heads
// merges no rows any more.
// CHECK-LABEL: func @heads
// CHECK-DAG: %[[C:.*]] = dovetail.reshape %arg3 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
// CHECK-DAG: %[[X:.*]] = dovetail.reshape %arg0 : (tensor<2x3x2x4xf32>) -> tensor<2x3x8xf32>
// CHECK-DAG: %[[A:.*]] = dovetail.matmul %[[X]], %arg1 : (tensor<2x3x8xf32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
// CHECK-DAG: %[[B:.*]] = dovetail.matmul %[[X]], %arg2 : (tensor<2x3x8xf32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
// CHECK-DAG: %[[G:.*]] = dovetail.gelu %[[A]] : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-DAG: %[[M:.*]] = dovetail.mul %[[G]], %[[B]] : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-DAG: %[[S:.*]] = dovetail.add %[[M]], %[[C]] : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK: return %[[S]]
func.func @heads(%arg0: tensor<2x3x2x4xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<8x4xf32>, %arg3: tensor<6x4xf32>) -> tensor<2x3x4xf32> {
  %0 = dovetail.reshape %arg0 : (tensor<2x3x2x4xf32>) -> tensor<6x8xf32>
  %1 = dovetail.matmul %0, %arg1 : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %2 = dovetail.matmul %0, %arg2 : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %3 = dovetail.gelu %1 : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %4 = dovetail.mul %3, %2 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %5 = dovetail.add %4, %arg3 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %6 = dovetail.reshape %5 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  return %6 : tensor<2x3x4xf32>
}

// -----

// Constants that vary along rows get their dimensions, be they broadcast or not.
// CHECK-LABEL: func @constants
// CHECK-DAG: %[[C:.*]] = dovetail.constant dense<1.000000e+00> : tensor<6x1xf32>
// CHECK-DAG: %[[D:.*]] = dovetail.constant dense<2.000000e+00> : tensor<1x4xf32>
// CHECK-DAG: %[[R:.*]] = dovetail.reshape %[[C]] : (tensor<6x1xf32>) -> tensor<2x3x1xf32>
// CHECK-DAG: %[[P:.*]] = dovetail.matmul %arg0, %arg1 : (tensor<2x3x8xf32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
// CHECK-DAG: %[[M:.*]] = dovetail.mul %[[P]], %[[R]] : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-DAG: dovetail.add %[[M]], %[[D]] : (tensor<2x3x4xf32>, tensor<1x4xf32>) -> tensor<2x3x4xf32>
func.func @constants(%arg0: tensor<2x3x8xf32>, %arg1: tensor<8x4xf32>) -> tensor<2x3x4xf32> {
  %c = dovetail.constant dense<1.0> : tensor<6x1xf32>
  %d = dovetail.constant dense<2.0> : tensor<1x4xf32>
  %0 = dovetail.reshape %arg0 : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
  %1 = dovetail.matmul %0, %arg1 : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %2 = dovetail.mul %1, %c : (tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
  %3 = dovetail.add %2, %d : (tensor<6x4xf32>, tensor<1x4xf32>) -> tensor<6x4xf32>
  %4 = dovetail.reshape %3 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  return %4 : tensor<2x3x4xf32>
}

// -----

// A dimension of 1 more or less divides nothing: where no cut changes, there are fewer reshapes.
// CHECK-LABEL: func @ones
// CHECK-NEXT: dovetail.matmul %arg0, %arg1 : (tensor<3x1x8xf32>, tensor<8x4xf32>) -> tensor<3x1x4xf32>
// CHECK-NEXT: dovetail.matmul %arg0, %arg2 : (tensor<3x1x8xf32>, tensor<8x4xf32>) -> tensor<3x1x4xf32>
// CHECK-NEXT: dovetail.reshape {{.*}} -> tensor<3x2x1x2xf32>
// CHECK-NEXT: dovetail.reshape {{.*}} -> tensor<3x2x1x2xf32>
// CHECK-NEXT: return
func.func @ones(%arg0: tensor<3x1x8xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<8x4xf32>) -> (tensor<3x2x1x2xf32>, tensor<3x2x1x2xf32>) {
  %0 = dovetail.reshape %arg0 : (tensor<3x1x8xf32>) -> tensor<3x8xf32>
  %1 = dovetail.matmul %0, %arg1 : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  %2 = dovetail.matmul %0, %arg2 : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  %3 = dovetail.reshape %1 : (tensor<3x4xf32>) -> tensor<3x2x1x2xf32>
  %4 = dovetail.reshape %2 : (tensor<3x4xf32>) -> tensor<3x2x1x2xf32>
  return %3, %4 : tensor<3x2x1x2xf32>, tensor<3x2x1x2xf32>
}

// -----

// Of two ways the one that divides rows into fewer dimensions: windows of six are cut where one may like.
// CHECK-LABEL: func @windows
// CHECK-NEXT: %[[X:.*]] = dovetail.reshape %arg0 : (tensor<2x3x2x4x8xf32>) -> tensor<6x8x8xf32>
// CHECK-NEXT: %[[P:.*]] = dovetail.matmul %[[X]], %arg1 : (tensor<6x8x8xf32>, tensor<8x4xf32>) -> tensor<6x8x4xf32>
// CHECK-NEXT: dovetail.reshape %[[P]] : (tensor<6x8x4xf32>) -> tensor<6x8x2x2xf32>
func.func @windows(%arg0: tensor<2x3x2x4x8xf32>, %arg1: tensor<8x4xf32>) -> tensor<6x8x2x2xf32> {
  %0 = dovetail.reshape %arg0 : (tensor<2x3x2x4x8xf32>) -> tensor<48x8xf32>
  %1 = dovetail.matmul %0, %arg1 : (tensor<48x8xf32>, tensor<8x4xf32>) -> tensor<48x4xf32>
  %2 = dovetail.reshape %1 : (tensor<48x4xf32>) -> tensor<6x8x2x2xf32>
  return %2 : tensor<6x8x2x2xf32>
}

// -----

// Nothing is gained: the dimensions before the product are not those behind it, and either way one reshape remains.
// CHECK-LABEL: func @no_gain
// CHECK-NEXT: dovetail.reshape
// CHECK-NEXT: dovetail.matmul {{.*}} -> tensor<6x8x4xf32>
// CHECK-NEXT: dovetail.reshape
func.func @no_gain(%arg0: tensor<2x3x8x8xf32>, %arg1: tensor<8x4xf32>) -> tensor<6x8x2x2xf32> {
  %0 = dovetail.reshape %arg0 : (tensor<2x3x8x8xf32>) -> tensor<6x8x8xf32>
  %1 = dovetail.matmul %0, %arg1 : (tensor<6x8x8xf32>, tensor<8x4xf32>) -> tensor<6x8x4xf32>
  %2 = dovetail.reshape %1 : (tensor<6x8x4xf32>) -> tensor<6x8x2x2xf32>
  return %2 : tensor<6x8x2x2xf32>
}

// -----

// Merged dimensions could be cut less finely, and 4 is no part of 6.
// CHECK-LABEL: func @other_parts
// CHECK-NEXT: dovetail.reshape {{.*}} -> tensor<6x4x8xf32>
// CHECK-NEXT: dovetail.matmul {{.*}} -> tensor<6x4x4xf32>
// CHECK-NEXT: dovetail.reshape
func.func @other_parts(%arg0: tensor<4x6x8xf32>, %arg1: tensor<8x4xf32>) -> tensor<4x6x4xf32> {
  %0 = dovetail.reshape %arg0 : (tensor<4x6x8xf32>) -> tensor<6x4x8xf32>
  %1 = dovetail.matmul %0, %arg1 : (tensor<6x4x8xf32>, tensor<8x4xf32>) -> tensor<6x4x4xf32>
  %2 = dovetail.reshape %1 : (tensor<6x4x4xf32>) -> tensor<4x6x4xf32>
  return %2 : tensor<4x6x4xf32>
}

// -----

// Rows that others read or give as they are would have to be reshaped then.
// CHECK-LABEL: func @others
// CHECK-NEXT: %[[X:.*]] = dovetail.reshape %arg0
// CHECK-NEXT: %[[P:.*]] = dovetail.matmul %[[X]], %arg1 : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: %[[S:.*]] = dovetail.add %[[P]], %arg2 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: dovetail.reshape %[[S]]
func.func @others(%arg0: tensor<2x3x8xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<2x3x4xf32>) {
  %0 = dovetail.reshape %arg0 : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
  %1 = dovetail.matmul %0, %arg1 : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %2 = dovetail.add %1, %arg2 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %3 = dovetail.reshape %2 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  return %2, %3 : tensor<6x4xf32>, tensor<2x3x4xf32>
}

// -----

// Nor does it go where rows know of each other, numbers of dimensions are attributes, or the product is of many matrices.
// CHECK-LABEL: func @not_of_rows
// CHECK: dovetail.softmax {{.*}} : (tensor<6x8xf32>) -> tensor<6x8xf32>
// CHECK: dovetail.matmul %arg1, {{.*}} : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
// CHECK: dovetail.matmul {{.*}} : (tensor<6x2x4xf32>, tensor<6x4x3xf32>) -> tensor<6x2x3xf32>
func.func @not_of_rows(%arg0: tensor<2x3x8xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<3x2x2x4xf32>, %arg3: tensor<6x4x3xf32>) -> (tensor<2x3x8xf32>, tensor<2x2x8xf32>, tensor<3x2x2x3xf32>) {
  %0 = dovetail.reshape %arg0 : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
  %1 = dovetail.softmax %0 {axis = 0 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %2 = dovetail.reshape %1 : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %3 = dovetail.matmul %arg1, %0 : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %4 = dovetail.reshape %3 : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
  %5 = dovetail.reshape %arg2 : (tensor<3x2x2x4xf32>) -> tensor<6x2x4xf32>
  %6 = dovetail.matmul %5, %arg3 : (tensor<6x2x4xf32>, tensor<6x4x3xf32>) -> tensor<6x2x3xf32>
  %7 = dovetail.reshape %6 : (tensor<6x2x3xf32>) -> tensor<3x2x2x3xf32>
  return %2, %4, %7 : tensor<2x3x8xf32>, tensor<2x2x8xf32>, tensor<3x2x2x3xf32>
}

// -----

// A constant for each row of a batch is one for each row and column of its images.
// CHECK-LABEL: func @broadcast
// CHECK-DAG: %[[C:.*]] = dovetail.constant dense<1.000000e+00> : tensor<6x1xf32>
// CHECK-DAG: %[[R:.*]] = dovetail.reshape %[[C]] : (tensor<6x1xf32>) -> tensor<2x3x1xf32>
// CHECK-DAG: %[[P:.*]] = dovetail.matmul %arg0, %arg1 : (tensor<5x2x3x8xf32>, tensor<8x4xf32>) -> tensor<5x2x3x4xf32>
// CHECK-DAG: dovetail.add %[[P]], %[[R]] : (tensor<5x2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<5x2x3x4xf32>
func.func @broadcast(%arg0: tensor<5x2x3x8xf32>, %arg1: tensor<8x4xf32>) -> tensor<5x2x3x4xf32> {
  %c = dovetail.constant dense<1.0> : tensor<6x1xf32>
  %0 = dovetail.reshape %arg0 : (tensor<5x2x3x8xf32>) -> tensor<5x6x8xf32>
  %1 = dovetail.matmul %0, %arg1 : (tensor<5x6x8xf32>, tensor<8x4xf32>) -> tensor<5x6x4xf32>
  %2 = dovetail.add %1, %c : (tensor<5x6x4xf32>, tensor<6x1xf32>) -> tensor<5x6x4xf32>
  %3 = dovetail.reshape %2 : (tensor<5x6x4xf32>) -> tensor<5x2x3x4xf32>
  return %3 : tensor<5x2x3x4xf32>
}

// -----

// Another value that varies along some of the rows ends what is computed together: a reshape would remain.
// CHECK-LABEL: func @not_constant
// CHECK: dovetail.matmul {{.*}} -> tensor<5x6x4xf32>
// CHECK: dovetail.add {{.*}}, %arg2 : (tensor<5x6x4xf32>, tensor<6x1xf32>) -> tensor<5x6x4xf32>
func.func @not_constant(%arg0: tensor<5x2x3x8xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<6x1xf32>) -> tensor<5x2x3x4xf32> {
  %0 = dovetail.reshape %arg0 : (tensor<5x2x3x8xf32>) -> tensor<5x6x8xf32>
  %1 = dovetail.matmul %0, %arg1 : (tensor<5x6x8xf32>, tensor<8x4xf32>) -> tensor<5x6x4xf32>
  %2 = dovetail.add %1, %arg2 : (tensor<5x6x4xf32>, tensor<6x1xf32>) -> tensor<5x6x4xf32>
  %3 = dovetail.reshape %2 : (tensor<5x6x4xf32>) -> tensor<5x2x3x4xf32>
  return %3 : tensor<5x2x3x4xf32>
}
