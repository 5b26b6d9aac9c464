// RUN: dovetail-opt %s --dovetail-fold-constants | FileCheck %s

// Generics of constants fold: sums in f32, terms that borders leave out, positions that wrap, unsigned maxima, tuples,
// scans, and updates in their order.

// CHECK-LABEL: func.func @values
// CHECK-DAG: dense<[3.000000e+00, 6.000000e+00, 5.000000e+00]> : tensor<3xf16>
// CHECK-DAG: dense<[3, 1, 2, 3, 1]> : tensor<5xi32>
// CHECK-DAG: dense<200> : tensor<ui8>
// CHECK-DAG: dense<2> : tensor<i64>
// CHECK-DAG: dense<[1, 3, 3, 7]> : tensor<4xi64>
// CHECK-DAG: dense<[20, 77, 3]> : tensor<3xi64>
// CHECK-NOT: dovetail.generic
func.func @values() -> (tensor<3xf16>, tensor<5xi32>, tensor<ui8>, tensor<i64>, tensor<4xi64>, tensor<3xi64>) {
  %h = dovetail.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf16>
  %sums = dovetail.generic(%h) : (tensor<3xf16>) -> tensor<3xf16>
      loops [y = 3, k = 3 tap] reads [0 : (y + k - 1)] combine sum body {
    %a = dovetail.read 0 : f16
    dovetail.return %a : f16
  }
  %i = dovetail.constant dense<[1, 2, 3]> : tensor<3xi32>
  %wraps = dovetail.generic(%i) : (tensor<3xi32>) -> tensor<5xi32>
      loops [y = 5] reads [0 : (wrap(y - 1, 0 to 3))] body {
    %a = dovetail.read 0 : i32
    dovetail.return %a : i32
  }
  %u = dovetail.constant dense<[100, 200, 50]> : tensor<3xui8>
  %most = dovetail.generic(%u) : (tensor<3xui8>) -> tensor<ui8>
      loops [k = 3 reduction] reads [0 : (k)] combine max body {
    %a = dovetail.read 0 : i8
    dovetail.return %a : i8
  }
  %place = dovetail.generic(%h) : (tensor<3xf16>) -> tensor<i64>
      loops [k = 3 tap] reads [0 : (k)]
      init {
    %a = arith.constant 0.0 : f16
    %n = arith.constant -1 : index
    dovetail.return %a, %n : f16, index
  } combine(%a: f16, %n: index, %b: f16, %m: index) {
    %more = arith.cmpf ogt, %b, %a : f16
    %c = arith.select %more, %b, %a : f16
    %o = arith.select %more, %m, %n : index
    dovetail.return %c, %o : f16, index
  } finish(%a: f16, %n: index) {
    %o = arith.index_cast %n : index to i64
    dovetail.return %o : i64
  } body {
    %a = dovetail.read 0 : f16
    %k = dovetail.index k
    dovetail.return %a, %k : f16, index
  }
  %l = dovetail.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %scan = dovetail.generic(%l) : (tensor<4xi64>) -> tensor<4xi64>
      loops [t = 4 scan] reads [0 : (t)] scan t restarts [0, 2, 4] combine sum body {
    %a = dovetail.read 0 : i64
    dovetail.return %a : i64
  }
  %at = dovetail.constant dense<[1, -3, 1]> : tensor<3xi64>
  %three = dovetail.constant dense<[9, 18, 3]> : tensor<3xi64>
  %writes = dovetail.generic(%three, %l, %at) : (tensor<3xi64>, tensor<4xi64>, tensor<3xi64>) -> tensor<3xi64>
      loops [y = 3, k = 3 tap] reads [0 : (y), 1 : (k), 2 : (k)] writes (u0) by 2 combine(%old: i64, %new: i64) {
    %twice = arith.addi %old, %old : i64
    %next = arith.addi %twice, %new : i64
    dovetail.return %next : i64
  } body {
    %a = dovetail.read 1 : i64
    dovetail.return %a : i64
  }
  return %sums, %wraps, %most, %place, %scan, %writes : tensor<3xf16>, tensor<5xi32>, tensor<ui8>, tensor<i64>, tensor<4xi64>, tensor<3xi64>
}
