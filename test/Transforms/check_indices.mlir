// RUN: dovetail-opt %s --dovetail-check-indices --split-input-file --verify-diagnostics | FileCheck %s
// RUN: dovetail-opt %s --dovetail-check-indices=at-run-time=false --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=CONSTANTS --implicit-check-not=dovetail.check_indices

// Constants are checked at once, others when the operation runs. What is right needs no check.

// CHECK-LABEL: func.func @right
// CONSTANTS-LABEL: func.func @right
func.func @right(%x: tensor<4x5xf32>, %i: tensor<3xi64>) {
  // CHECK: dovetail.gather %{{.*}}, %{{.*}} {axis = 0 : i64} :
  %last = dovetail.constant dense<[3, -4, -1]> : tensor<3xi64>
  %0 = dovetail.gather %x, %last {axis = 0 : i64} : (tensor<4x5xf32>, tensor<3xi64>) -> tensor<3x5xf32>
  // CHECK: dovetail.gather %{{.*}}, %{{.*}} {axis = 1 : i64, dovetail.check_indices} :
  %1 = dovetail.gather %x, %i {axis = 1 : i64} : (tensor<4x5xf32>, tensor<3xi64>) -> tensor<4x3xf32>
  return
}

// CHECK-LABEL: func.func @elements
func.func @elements(%x: tensor<4x5xf32>, %i: tensor<4x2xi32>, %none: tensor<0x5xf32>, %nowhere: tensor<0x2xi32>) {
  // CHECK: dovetail.gather_elements {{.*}}dovetail.check_indices
  %0 = dovetail.gather_elements %x, %i {axis = 1 : si64} : (tensor<4x5xf32>, tensor<4x2xi32>) -> tensor<4x2xf32>
  // CHECK: dovetail.gather_elements
  // CHECK-NOT: dovetail.check_indices
  %1 = dovetail.gather_elements %none, %nowhere {axis = 0 : si64} : (tensor<0x5xf32>, tensor<0x2xi32>) -> tensor<0x2xf32>
  return
}

// -----

func.func @above(%x: tensor<4x5xf32>) {
  %i = dovetail.constant dense<[0, 5]> : tensor<2xi64>
  // expected-error@+1 {{has index 5, which is out of range where the extent is 5; valid ones are -5 to 4}}
  %0 = dovetail.gather %x, %i {axis = 1 : i64} : (tensor<4x5xf32>, tensor<2xi64>) -> tensor<4x2xf32>
  return
}

// -----

// All that is wrong is said.

func.func @below(%x: tensor<4x5xf32>) {
  %i = dovetail.constant dense<-5> : tensor<2x5xi32>
  // expected-error@+1 {{has index -5, which is out of range where the extent is 4; valid ones are -4 to 3}}
  %0 = dovetail.gather_elements %x, %i {axis = 0 : si64} : (tensor<4x5xf32>, tensor<2x5xi32>) -> tensor<2x5xf32>
  %max = dovetail.constant dense<18446744073709551615> : tensor<ui64>
  // expected-error@+1 {{has index 18446744073709551615, which is out of range where the extent is 4; valid ones are 0 to 3}}
  %1 = dovetail.gather %x, %max {axis = 0 : i64} : (tensor<4x5xf32>, tensor<ui64>) -> tensor<5xf32>
  return
}

// -----

// Where a scatter writes is checked, too.

// CHECK-LABEL: func.func @scatter
func.func @scatter(%data: tensor<4x5xf32>, %i: tensor<3x2xi64>, %u: tensor<3xf32>) {
  // CHECK: dovetail.scatter_nd {{.*}}dovetail.check_indices
  %0 = dovetail.scatter_nd %data, %i, %u : (tensor<4x5xf32>, tensor<3x2xi64>, tensor<3xf32>) -> tensor<4x5xf32>
  return
}

// -----

// The entries of an index are of one dimension each.

func.func @beyond(%data: tensor<4x5xf32>, %u: tensor<2xf32>) {
  %right = dovetail.constant dense<[[3, 4], [-4, -5]]> : tensor<2x2xi64>
  %0 = dovetail.scatter_nd %data, %right, %u : (tensor<4x5xf32>, tensor<2x2xi64>, tensor<2xf32>) -> tensor<4x5xf32>
  %wrong = dovetail.constant dense<[[0, 4], [4, 0]]> : tensor<2x2xi64>
  // expected-error@+1 {{has index 4, which is out of range where the extent is 4; valid ones are -4 to 3}}
  %1 = dovetail.scatter_nd %data, %wrong, %u : (tensor<4x5xf32>, tensor<2x2xi64>, tensor<2xf32>) -> tensor<4x5xf32>
  return
}
