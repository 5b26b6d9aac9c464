// RUN: split-file %s %t
// RUN: dovetail-opt %t/time.mlir --dovetail-choose-shardings=objective=time | FileCheck %t/time.mlir
// RUN: dovetail-opt %t/time.mlir --dovetail-choose-shardings=objective=bytes | FileCheck %t/time.mlir --check-prefix=BYTES
// RUN: dovetail-opt %t/memory.mlir --dovetail-choose-shardings=objective=memory | FileCheck %t/memory.mlir
// RUN: dovetail-opt %t/memory.mlir --dovetail-choose-shardings=objective=bytes | FileCheck %t/memory.mlir --check-prefix=BYTES
// RUN: dovetail-opt %t/memory.mlir --dovetail-choose-shardings="objective=bytes memory=16000000" \
// RUN:   | FileCheck %t/memory.mlir --check-prefix=BYTES
// RUN: dovetail-opt %t/memory.mlir --dovetail-choose-shardings="objective=bytes memory=6000000" | FileCheck %t/memory.mlir
// RUN: dovetail-opt %t/memory.mlir --dovetail-choose-shardings="objective=bytes memory=1000" | FileCheck %t/memory.mlir

//--- time.mlir

// Both ranks have the operands, and are to have the result. A small product takes them less time than to begin an
// exchange, 30 microseconds: both compute all of it. A large one, of 2^30 terms, takes one core 20 milliseconds, and half
// of its result, 4 MiB, is sent in less than one: rows of it, as narrower products are slower. Where bytes count, whatever
// is not light beside others is divided, and each rank receives half of the result.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @small
// CHECK-SAME: bytes = 0 : i64
// CHECK: dovetail.matmul
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {}]>
// BYTES-LABEL: func.func @small
// BYTES-SAME: bytes = 256 : i64
!x = tensor<8x8xf32, #dovetail.sharding<@mesh, [{}, {}]>>
func.func @small(%x: !x) -> (tensor<8x8xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>]}) {
  %w = dovetail.constant dense<1.0> : tensor<8x8xf32>
  %0 = dovetail.matmul %x, %w : (!x, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @large
// CHECK: dovetail.matmul
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2048, 4096}, {}, {}]>
// BYTES-LABEL: func.func @large
// BYTES-SAME: bytes = 8388608 : i64
!tall = tensor<4096x512xf32, #dovetail.sharding<@mesh, [{}, {}]>>
func.func @large(%x: !tall) -> (tensor<4096x512xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>]}) {
  %w = dovetail.constant dense<1.0> : tensor<512x512xf32>
  %0 = dovetail.matmul %x, %w : (!tall, tensor<512x512xf32>) -> tensor<4096x512xf32>
  return %0 : tensor<4096x512xf32>
}

//--- memory.mlir

// Where bytes count, rows stay where they are, and each rank has all weights, 8 MiB. To halve these, columns are divided,
// for which each rank needs all rows: with these and its part of the result it has less than 5 MB, and with less memory
// than that it still does what takes least. To divide terms would halve the weights, too, but leave each with the whole
// result.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @weights
// CHECK: dovetail.matmul
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 2048, 4096}, {}]>
// BYTES-LABEL: func.func @weights
// BYTES-SAME: bytes = 0 : i64
// BYTES: dovetail.matmul
// BYTES-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 32, 64}, {}, {}]>
!rows = tensor<64x512xf32, #dovetail.sharding<@mesh, [{"y" : 0, 32, 64}, {}]>>
func.func @weights(%x: !rows) -> tensor<64x4096xf32> {
  %w = dovetail.constant dense<1.0> : tensor<512x4096xf32>
  %0 = dovetail.matmul %x, %w : (!rows, tensor<512x4096xf32>) -> tensor<64x4096xf32>
  return %0 : tensor<64x4096xf32>
}
