// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time" | FileCheck %s --check-prefix=WHOLE
// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time memory=1114096" | FileCheck %s --check-prefix=WHOLE
// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time memory=1098228" | FileCheck %s
// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=memory" | FileCheck %s
// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=memory gather=false" | FileCheck %s --check-prefix=WHOLE
// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time memory=1107000" | FileCheck %s --check-prefix=ONE
// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time memory=1098228 explain" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time memory=1130000 weight-factor=2" | FileCheck %s --check-prefix=FACTOR

// Ranks have half of many rows each: 2048 x 63 and 2048 x 65 elements at the time of most, 1048576 bytes. To divide
// columns instead, each would need all rows. Whole weights, of 16380 bytes each, make that 1114096. Pieces, of 32 or 33
// rows, are 8320 or 8316 bytes: 33272 in all, and with one weight that is gathered 1098228. With half of what lies
// between these, one weight stays whole. Where libraries pack weights, whole ones take twice as much, and so does
// the one that is gathered: 1048576 + 33272 + 32760 = 1114608.

dovetail.mesh @mesh = ["y" = 2]

// WHOLE-LABEL: func.func @layers
// WHOLE-SAME: memory = 1114096 : i64
// WHOLE-NOT: dovetail.reshard
// WHOLE: return

// CHECK-LABEL: func.func @layers
// CHECK-SAME: memory = 1098228 : i64
// CHECK-SAME: weights = 33272 : i64
// CHECK: %[[A:.*]] = dovetail.constant dense_resource<a>
// CHECK-NEXT: %[[PIECES:.*]] = dovetail.reshard %[[A]] : tensor<63x65xf32> -> tensor<63x65xf32, #dovetail.sharding<@mesh, [{"y" : 0, 32, 63}, {}]>>
// CHECK: %[[GATHERED:.*]] = dovetail.reshard %[[PIECES]] : {{.*}} -> tensor<63x65xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK-NEXT: dovetail.matmul %arg0, %[[GATHERED]] {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2048, 4096}, {}, {}]>}
// CHECK-COUNT-3: dovetail.reshard {{.*}} -> {{.*}}#dovetail.sharding<@mesh, [{}, {}]>>
// CHECK-NOT: dovetail.reshard
// CHECK: return

// ONE-COUNT-6: dovetail.reshard
// ONE-NOT: dovetail.reshard
// ONE: return

// FACTOR-LABEL: func.func @layers
// FACTOR-SAME: memory = 1114608 : i64
// FACTOR-COUNT-8: dovetail.reshard
// FACTOR-NOT: dovetail.reshard
// FACTOR: return

// REMARK: remark: weights of shape [63, 65] are stored in pieces like another one, split as [y, _], and gathered just in time
// REMARK: remark: weights of shape [65, 63] are stored in pieces like another one, split as [y, _], and gathered just in time
!rows = tensor<4096x63xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2048, 4096}, {}]>>
func.func @layers(%x: !rows) -> (tensor<4096x63xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 2048, 4096}>, #dovetail.dim_sharding<{}>]}) {
  %a = dovetail.constant dense_resource<a> : tensor<63x65xf32>
  %b = dovetail.constant dense_resource<b> : tensor<65x63xf32>
  %c = dovetail.constant dense_resource<c> : tensor<63x65xf32>
  %d = dovetail.constant dense_resource<d> : tensor<65x63xf32>
  %0 = dovetail.matmul %x, %a : (!rows, tensor<63x65xf32>) -> tensor<4096x65xf32>
  %1 = dovetail.matmul %0, %b : (tensor<4096x65xf32>, tensor<65x63xf32>) -> tensor<4096x63xf32>
  %2 = dovetail.matmul %1, %c : (tensor<4096x63xf32>, tensor<63x65xf32>) -> tensor<4096x65xf32>
  %3 = dovetail.matmul %2, %d : (tensor<4096x65xf32>, tensor<65x63xf32>) -> tensor<4096x63xf32>
  return %3 : tensor<4096x63xf32>
}
