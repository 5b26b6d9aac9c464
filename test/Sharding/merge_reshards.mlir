// RUN: dovetail-opt %s --dovetail-propagate --dovetail-partition --dovetail-merge-reshards --dovetail-verify-partition | FileCheck %s

// Windows of 3 and of 5 over one value: the wider one serves both.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @windows
// CHECK: %[[WIDE:.*]] = dovetail.reshard {{.*}}{"y" : (0, 14), (10, 24)}
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.conv %[[WIDE]]
// CHECK: dovetail.conv %[[WIDE]]
func.func @windows(%x: tensor<1x1x24xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 12, 24}>]}, %w3: tensor<1x1x3xf32>, %w5: tensor<1x1x5xf32>) -> tensor<1x1x24xf32> {
  %0 = dovetail.conv %x, %w3 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (tensor<1x1x24xf32>, tensor<1x1x3xf32>) -> tensor<1x1x24xf32>
  %1 = dovetail.conv %x, %w5 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 2>, pads_high = array<i64: 2>} : (tensor<1x1x24xf32>, tensor<1x1x5xf32>) -> tensor<1x1x24xf32>
  %2 = dovetail.add %0, %1 : (tensor<1x1x24xf32>, tensor<1x1x24xf32>) -> tensor<1x1x24xf32>
  return %2 : tensor<1x1x24xf32>
}
