// Large constants of few bits: bytes hold several elements, of different rows where there are rows.
// RUN: dovetail-opt %s --dovetail-pack-constants | FileCheck %s

// Rows of 3 elements: 1, 2, 3; -1, -2, -3; 4, 5, 6. The third row has a byte for itself.
// CHECK-LABEL: func @rows
// CHECK: dovetail.constant dense_resource<rows{{.*}}> : tensor<2x3xui8>
// CHECK: dovetail.unpack {{.*}} {dim = 0 : i64} : (tensor<2x3xui8>) -> tensor<3x3xi4>
func.func @rows() -> tensor<3x3xi4> {
  %0 = dovetail.constant dense_resource<rows> : tensor<3x3xi4>
  return %0 : tensor<3x3xi4>
}

// CHECK-LABEL: func @vector
// CHECK: dovetail.constant dense_resource<vector{{.*}}> : tensor<2xui8>
// CHECK: dovetail.unpack {{.*}} {dim = 0 : i64} : (tensor<2xui8>) -> tensor<5xui2>
func.func @vector() -> tensor<5xui2> {
  %0 = dovetail.constant dense_resource<vector> : tensor<5xui2>
  return %0 : tensor<5xui2>
}

// Bytes that hold elements of one row, as files have them, hold those of two rows then.
// CHECK-LABEL: func @again
// CHECK-NOT: tensor<4x1xui8>
// CHECK: dovetail.constant dense_resource<again{{.*}}> : tensor<2x2xui8>
// CHECK: dovetail.unpack {{.*}} {dim = 0 : i64} : (tensor<2x2xui8>) -> tensor<4x2xui4>
func.func @again() -> tensor<4x2xui4> {
  %0 = dovetail.constant dense_resource<again> : tensor<4x1xui8>
  %1 = dovetail.unpack %0 {dim = 1} : (tensor<4x1xui8>) -> tensor<4x2xui4>
  return %1 : tensor<4x2xui4>
}

// Eight bits fill a byte, and small constants fold.
// CHECK-LABEL: func @others
// CHECK-NOT: unpack
func.func @others() -> (tensor<4xf8E5M2>, tensor<2xi4>) {
  %0 = dovetail.constant dense_resource<bytes> : tensor<4xf8E5M2>
  %1 = dovetail.constant dense<[1, 2]> : tensor<2xi4>
  return %0, %1 : tensor<4xf8E5M2>, tensor<2xi4>
}

// CHECK-DAG: again{{.*}}: "0x4000000031427586"
// CHECK-DAG: rows{{.*}}: "0x40000000F1E2D3040506"
// CHECK-DAG: vector{{.*}}: "0x40000000E401"
{-#
  dialect_resources: {
    builtin: {
      again: "0x0100000021436587",
      rows: "0x010000000102030F0E0D040506",
      vector: "0x010000000001020301",
      bytes: "0x0100000001020304"
    }
  }
#-}
