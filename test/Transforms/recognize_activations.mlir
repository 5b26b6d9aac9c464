// RUN: dovetail-opt %s --dovetail-recognize-activations | FileCheck %s

// x * (1 + erf(x / sqrt(2))) * 0.5, as PyTorch exports it.
// CHECK-LABEL: func @gelu
// CHECK-NEXT: %[[Y:.*]] = dovetail.gelu %arg0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return %[[Y]]
func.func @gelu(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %root2 = dovetail.constant dense<1.41421354> : tensor<f32>
  %one = dovetail.constant dense<1.0> : tensor<f32>
  %half = dovetail.constant dense<0.5> : tensor<f32>
  %0 = dovetail.div %arg0, %root2 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = dovetail.erf %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = dovetail.add %1, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.mul %arg0, %2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = dovetail.mul %3, %half : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// (x * 0.5) * (erf(x * sqrt(0.5)) + 1).
// CHECK-LABEL: func @gelu_other_order
// CHECK-NEXT: dovetail.gelu %arg0 : (tensor<2x3xf32>)
func.func @gelu_other_order(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %root = dovetail.constant dense<0.707106769> : tensor<1xf32>
  %one = dovetail.constant dense<1.0> : tensor<1xf32>
  %half = dovetail.constant dense<0.5> : tensor<1xf32>
  %0 = dovetail.mul %root, %arg0 : (tensor<1xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.erf %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = dovetail.add %one, %1 : (tensor<1xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = dovetail.mul %half, %arg0 : (tensor<1xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = dovetail.mul %2, %3 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// CHECK-LABEL: func @gelu_tanh
// CHECK-NEXT: dovetail.gelu %arg0 {approximate = "tanh"} : (tensor<2x3xf32>)
func.func @gelu_tanh(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %three = dovetail.constant dense<3.0> : tensor<f32>
  %a = dovetail.constant dense<4.471500e-02> : tensor<f32>
  %b = dovetail.constant dense<0.797884583> : tensor<f32>
  %one = dovetail.constant dense<1.0> : tensor<f32>
  %half = dovetail.constant dense<0.5> : tensor<f32>
  %0 = dovetail.pow %arg0, %three : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = dovetail.mul %0, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = dovetail.add %arg0, %1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = dovetail.mul %2, %b : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %4 = dovetail.tanh %3 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = dovetail.add %4, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %6 = dovetail.mul %arg0, %half : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %7 = dovetail.mul %6, %5 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %7 : tensor<2x3xf32>
}

// 0.5 * x * (1 + tanh(0.79788 * x * (1 + 0.044715 * x * x))).
// CHECK-LABEL: func @gelu_tanh_factored
// CHECK-NEXT: dovetail.gelu %arg0 {approximate = "tanh"} : (tensor<2x3xf32>)
func.func @gelu_tanh_factored(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = dovetail.constant dense<4.471500e-02> : tensor<f32>
  %b = dovetail.constant dense<0.797884583> : tensor<f32>
  %one = dovetail.constant dense<1.0> : tensor<f32>
  %half = dovetail.constant dense<0.5> : tensor<f32>
  %0 = dovetail.mul %a, %arg0 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.mul %0, %arg0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = dovetail.add %one, %1 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = dovetail.mul %arg0, %b : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %4 = dovetail.mul %3, %2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = dovetail.tanh %4 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = dovetail.add %5, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %7 = dovetail.mul %arg0, %half : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %8 = dovetail.mul %7, %6 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %8 : tensor<2x3xf32>
}

// The constant is not that of gelu.
// CHECK-LABEL: func @almost_gelu
// CHECK-NOT: dovetail.gelu
func.func @almost_gelu(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %root2 = dovetail.constant dense<1.4142> : tensor<f32>
  %one = dovetail.constant dense<1.0> : tensor<f32>
  %half = dovetail.constant dense<0.5> : tensor<f32>
  %0 = dovetail.div %arg0, %root2 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = dovetail.erf %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = dovetail.add %1, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.mul %arg0, %2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = dovetail.mul %3, %half : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// x * clip(x + 3, 0, 6) / 6.
// CHECK-LABEL: func @hard_swish
// CHECK-NEXT: dovetail.hard_swish %arg0
func.func @hard_swish(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %three = dovetail.constant dense<3.0> : tensor<f32>
  %zero = dovetail.constant dense<0.0> : tensor<f32>
  %six = dovetail.constant dense<6.0> : tensor<f32>
  %0 = dovetail.add %arg0, %three : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = dovetail.max %0, %zero : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = dovetail.min %1, %six : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.mul %arg0, %2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = dovetail.div %3, %six : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// x * (relu6(x + 3) * 0.16667).
// CHECK-LABEL: func @hard_swish_of_relu6
// CHECK-NEXT: dovetail.hard_swish %arg0
func.func @hard_swish_of_relu6(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %three = dovetail.constant dense<3.0> : tensor<f32>
  %six = dovetail.constant dense<6.0> : tensor<f32>
  %sixth = dovetail.constant dense<0.16666667> : tensor<f32>
  %0 = dovetail.add %arg0, %three : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = dovetail.relu %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = dovetail.min %1, %six : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.mul %2, %sixth : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %4 = dovetail.mul %arg0, %3 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// CHECK-LABEL: func @hard_swish_of_hard_sigmoid
// CHECK-NEXT: dovetail.hard_swish %arg0
func.func @hard_swish_of_hard_sigmoid(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = dovetail.hard_sigmoid %arg0 {alpha = 0.16666667 : f32, beta = 0.5 : f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.mul %arg0, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// Another slope (the default of ONNX's HardSigmoid).
// CHECK-LABEL: func @other_hard_sigmoid
// CHECK: dovetail.hard_sigmoid
// CHECK-NEXT: dovetail.mul
func.func @other_hard_sigmoid(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = dovetail.hard_sigmoid %arg0 {alpha = 0.2 : f32, beta = 0.5 : f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.mul %arg0, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// The gate of a squeeze-and-excitation block: clip(x + 3, 0, 6) / 6.
// CHECK-LABEL: func @hard_sigmoid
// CHECK-NEXT: dovetail.hard_sigmoid %arg0 {alpha = 0.166666672 : f32} :
func.func @hard_sigmoid(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %three = dovetail.constant dense<3.0> : tensor<f32>
  %zero = dovetail.constant dense<0.0> : tensor<f32>
  %six = dovetail.constant dense<6.0> : tensor<f32>
  %0 = dovetail.add %arg0, %three : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = dovetail.max %0, %zero : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = dovetail.min %1, %six : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.div %2, %six : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}

// clip(0.25 * x + 0.5, 0, 1).
// CHECK-LABEL: func @hard_sigmoid_line
// CHECK-NEXT: dovetail.hard_sigmoid %arg0 {alpha = 2.500000e-01 : f32} :
func.func @hard_sigmoid_line(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %slope = dovetail.constant dense<0.25> : tensor<f32>
  %half = dovetail.constant dense<0.5> : tensor<f32>
  %zero = dovetail.constant dense<0.0> : tensor<f32>
  %one = dovetail.constant dense<1.0> : tensor<f32>
  %0 = dovetail.mul %arg0, %slope : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = dovetail.add %0, %half : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = dovetail.max %1, %zero : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.min %2, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}

// CHECK-LABEL: func @swish
// CHECK-NEXT: %[[Y:.*]] = dovetail.swish %arg0 :
// CHECK-NEXT: dovetail.swish %[[Y]] {alpha = 1.702000e+00 : f32}
func.func @swish(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %alpha = dovetail.constant dense<1.702> : tensor<f32>
  %0 = dovetail.sigmoid %arg0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.mul %arg0, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = dovetail.mul %1, %alpha : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.sigmoid %2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = dovetail.mul %1, %3 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// A gate of another tensor is none of these.
// CHECK-LABEL: func @gate
// CHECK: dovetail.sigmoid
// CHECK-NEXT: dovetail.mul
func.func @gate(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = dovetail.sigmoid %arg1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.mul %arg0, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// CHECK-LABEL: func @mish
// CHECK-NEXT: dovetail.mish %arg0
func.func @mish(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = dovetail.softplus %arg0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.tanh %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = dovetail.mul %arg0, %1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// 1 / (1 + exp(-x)).
// CHECK-LABEL: func @sigmoid
// CHECK-NEXT: dovetail.sigmoid %arg0
func.func @sigmoid(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %one = dovetail.constant dense<1.0> : tensor<f32>
  %0 = dovetail.neg %arg0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.exp %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = dovetail.add %1, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.div %one, %2 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}

// CHECK-LABEL: func @rectifiers
// CHECK-NEXT: %[[R:.*]] = dovetail.relu %arg0
// CHECK-NEXT: %[[L:.*]] = dovetail.leaky_relu %[[R]] {alpha = 2.500000e-01 : f32}
// CHECK-NEXT: dovetail.leaky_relu %[[L]] {alpha = 5.000000e-01 : f32}
func.func @rectifiers(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = dovetail.constant dense<0.0> : tensor<f32>
  %quarter = dovetail.constant dense<0.25> : tensor<f32>
  %half = dovetail.constant dense<0.5> : tensor<3xf32>
  %0 = dovetail.max %zero, %arg0 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.mul %0, %quarter : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = dovetail.max %0, %1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = dovetail.prelu %2, %half : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}
