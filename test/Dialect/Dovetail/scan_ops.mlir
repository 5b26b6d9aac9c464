// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --dovetail-fold-constants | FileCheck %s

// Scans of constants fold: what comes before an element, from the last restart on, or after it.

// CHECK-LABEL: func.func @scans
// CHECK-DAG: dense<[1, 3, 6, 10, 15]>
// CHECK-DAG: dense<[0, 1, 3, 6, 10]>
// CHECK-DAG: dense<[14, 12, 9, 5, 0]>
// CHECK-DAG: dense<[1, 3, 3, 7, 12]>
// CHECK-DAG: dense<[11, 13, 103, 107, 112]>
// CHECK-DAG: dense<[3, 12]>
func.func @scans() -> (tensor<5xi64>, tensor<5xi64>, tensor<5xi64>, tensor<5xi64>, tensor<5xi64>, tensor<2xi64>) {
  %x = dovetail.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi64>
  %s = dovetail.constant dense<[10, 100]> : tensor<2xi64>
  %0 = dovetail.scan %x {axis = 0 : i64, kind = #dovetail.reduce_kind<sum>} : (tensor<5xi64>) -> tensor<5xi64>
  %1 = dovetail.scan %x {axis = 0 : i64, exclusive, kind = #dovetail.reduce_kind<sum>} : (tensor<5xi64>) -> tensor<5xi64>
  %2 = dovetail.scan %x {axis = 0 : i64, exclusive, reverse, kind = #dovetail.reduce_kind<sum>} : (tensor<5xi64>) -> tensor<5xi64>
  %3 = dovetail.scan %x {axis = 0 : i64, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 2>} : (tensor<5xi64>) -> tensor<5xi64>
  %4 = dovetail.scan %x, %s {axis = 0 : i64, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 2>} : (tensor<5xi64>, tensor<2xi64>) -> tensor<5xi64>
  %5 = dovetail.reduce_parts %x {axis = 0 : i64, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 2>} : (tensor<5xi64>) -> tensor<2xi64>
  return %0, %1, %2, %3, %4, %5 : tensor<5xi64>, tensor<5xi64>, tensor<5xi64>, tensor<5xi64>, tensor<5xi64>, tensor<2xi64>
}

// -----

func.func @restart(%x: tensor<5xf32>) -> tensor<5xf32> {
  // expected-error @+2 {{begins anew at 5, which is not between 0 and the end, 5}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.scan %x {axis = 0 : i64, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 5>} : (tensor<5xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @axis(%x: tensor<5xf32>) -> tensor<5xf32> {
  // expected-error @+2 {{has axis 1, which 'tensor<5xf32>' does not have}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.scan %x {axis = 1 : i64, kind = #dovetail.reduce_kind<sum>} : (tensor<5xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @start(%x: tensor<5xf16>, %s: tensor<2xf16>) -> tensor<5xf16> {
  // expected-error @+2 {{starts from 'tensor<2xf16>', but its parts need 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.scan %x, %s {axis = 0 : i64, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 2>} : (tensor<5xf16>, tensor<2xf16>) -> tensor<5xf16>
  return %0 : tensor<5xf16>
}

// -----

func.func @booleans(%x: tensor<5xi1>) -> tensor<5xi1> {
  // expected-error @+2 {{of kind sum needs numbers, but has elements of i1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.scan %x {axis = 0 : i64, kind = #dovetail.reduce_kind<sum>} : (tensor<5xi1>) -> tensor<5xi1>
  return %0 : tensor<5xi1>
}

// -----

func.func @owner(%x: tensor<5xf32>) -> tensor<5xf32> {
  // expected-error @+2 {{cannot have kind owner}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.scan %x {axis = 0 : i64, kind = #dovetail.reduce_kind<owner>} : (tensor<5xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

func.func @cut(%x: tensor<5xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 5}]>>) -> tensor<5xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 5}]>> {
  // expected-error @+1 {{runs piece [0, 3) of loop 0, but the accumulation along it does not restart there}}
  %0 = dovetail.scan %x {axis = 0 : i64, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 2>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 3, 5}]>} : (tensor<5xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 5}]>>) -> tensor<5xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 5}]>>
  return %0 : tensor<5xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 5}]>>
}
