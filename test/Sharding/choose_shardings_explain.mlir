// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time explain" -o /dev/null 2>&1 | FileCheck %s
// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time memory=1000000000 explain" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=LIMIT
// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=bytes explain" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=BYTES

// What is chosen for the operations that take most time is explained, with the next best: dimensions of the result, then
// what is summed over.

dovetail.mesh @mesh = ["y" = 2]

// CHECK: remark: has loops split as [y, _]; the next best, {{.*}}, is expected to take {{[0-9.]+}} % more time in all{{$}}
// LIMIT: remark: has loops split as [y, _]; the next best, {{.*}}, is expected to take {{[0-9.]+}} % more time in all, if it fits{{$}}
func.func @rows(%x: tensor<4096x512xf32>, %w: tensor<512x256xf32>) -> tensor<4096x256xf32> {
  %0 = dovetail.matmul %x, %w : (tensor<4096x512xf32>, tensor<512x256xf32>) -> tensor<4096x256xf32>
  return %0 : tensor<4096x256xf32>
}

// What is too small to be split has no list of axes.

// CHECK: remark: has loops that are not split; the next best, [{{.*}}], is expected to take {{[0-9.]+}} % more time in all{{$}}
!whole = tensor<8x4xf32, #dovetail.sharding<@mesh, [{}, {}]>>
func.func @small(%x: !whole, %w: tensor<4x4xf32>) -> (tensor<8x4xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>]}) {
  %0 = dovetail.matmul %x, %w : (!whole, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// Where the user's cuts give a rank almost all of the work, that is said.

// BYTES: remark: is expected to take {{[12]\.[0-9]}} times as long as with its work divided evenly
!rows = tensor<4096x512xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3900, 4096}, {}]>>
func.func @uneven(%x: !rows, %w: tensor<512x8xf32>) -> (tensor<4096x8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 3900, 4096}>, #dovetail.dim_sharding<{}>]}) {
  %0 = dovetail.matmul %x, %w : (!rows, tensor<512x8xf32>) -> tensor<4096x8xf32>
  return %0 : tensor<4096x8xf32>
}
