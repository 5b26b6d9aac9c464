// RUN: split-file %s %t
// RUN: dovetail-opt %t/time.mlir --dovetail-choose-shardings=objective=time | FileCheck %t/time.mlir
// RUN: dovetail-opt %t/time.mlir --dovetail-choose-shardings=objective=bytes | FileCheck %t/time.mlir --check-prefix=BYTES
// RUN: dovetail-opt %t/memory.mlir --dovetail-choose-shardings=objective=memory | FileCheck %t/memory.mlir
// RUN: dovetail-opt %t/memory.mlir --dovetail-choose-shardings=objective=bytes | FileCheck %t/memory.mlir --check-prefix=BYTES
// RUN: dovetail-opt %t/memory.mlir --dovetail-choose-shardings="objective=bytes memory=80000" \
// RUN:   | FileCheck %t/memory.mlir --check-prefix=BYTES
// RUN: dovetail-opt %t/memory.mlir --dovetail-choose-shardings="objective=bytes memory=60000" | FileCheck %t/memory.mlir
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

// Where bytes count, rows stay where they are, and each rank has all weights, 65536 bytes: together with its rows and its
// part of the result, 4096 and 512, it has 70144. To halve the weights, columns are divided, for which each rank needs all
// rows, 8192 bytes beside its own: 45568 in all, though to bring them takes more time than the product. With less memory
// than that it still does what takes least. Sums of 16-bit numbers are not divided.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @weights
// CHECK-SAME: memory = 45568 : i64
// CHECK: dovetail.matmul
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 32, 64}, {}]>
// BYTES-LABEL: func.func @weights
// BYTES-SAME: bytes = 0 : i64,
// BYTES-SAME: memory = 70144 : i64
// BYTES: dovetail.matmul
// BYTES-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 8}, {}, {}]>
!rows = tensor<8x512xf16, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>
func.func @weights(%x: !rows) -> tensor<8x64xf16> {
  %w = dovetail.constant dense<1.0> : tensor<512x64xf16>
  %0 = dovetail.matmul %x, %w : (!rows, tensor<512x64xf16>) -> tensor<8x64xf16>
  return %0 : tensor<8x64xf16>
}
