// RUN: dovetail-opt %s --split-input-file --verify-diagnostics

func.func @f(%0: tensor<1x4xf32>, %1: tensor<6x4xf32>) {
  // expected-error@+2 {{has input of rank 2, but needs [N, C, spatial...] with a spatial dimension at least}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv %0, %1 {strides = array<i64>, dilations = array<i64>, pads_low = array<i64>, pads_high = array<i64>} : (tensor<1x4xf32>, tensor<6x4xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{has weights 'tensor<6x4x3x3xf32>' that do not fit its input 'tensor<1x4x9xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv %0, %1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x4x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<6x4x3xf16>) {
  // expected-error@+2 {{has weights 'tensor<6x4x3xf16>' that do not fit its input 'tensor<1x4x9xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv %0, %1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x4x9xf32>, tensor<6x4x3xf16>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<6x4x3xf32>) {
  // expected-error@+2 {{cannot divide 4 input channels into 3 groups}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv %0, %1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, groups = 3 : i64} : (tensor<1x4x9xf32>, tensor<6x4x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<6x4x3xf32>) {
  // expected-error@+2 {{cannot divide 4 input channels into 0 groups}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv %0, %1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, groups = 0 : i64} : (tensor<1x4x9xf32>, tensor<6x4x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<5x2x3xf32>) {
  // expected-error@+2 {{cannot divide 5 output channels into 2 groups}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv %0, %1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, groups = 2 : i64} : (tensor<1x4x9xf32>, tensor<5x2x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<6x3x3xf32>) {
  // expected-error@+2 {{has weights for 1 groups of 3 input channels, but the input has 4}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv %0, %1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x4x9xf32>, tensor<6x3x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<6x4x3xf32>) {
  // expected-error@+2 {{has 2 strides for 1 spatial dimensions}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv %0, %1 {strides = array<i64: 1, 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x4x9xf32>, tensor<6x4x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<6x4x3xf32>) {
  // expected-error@+2 {{has 0 among its dilations, not in 1 .. 1073741824}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv %0, %1 {strides = array<i64: 1>, dilations = array<i64: 0>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x4x9xf32>, tensor<6x4x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<6x4x3xf32>) {
  // expected-error@+2 {{has 9223372036854775807 among its pads_high, not in -1073741824 .. 1073741824}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv %0, %1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 9223372036854775807>} : (tensor<1x4x9xf32>, tensor<6x4x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<6x4x3xf32>) {
  // expected-error@+2 {{has a window that spans 11 positions of spatial dimension 0, which has 10 with its pads}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv %0, %1 {strides = array<i64: 1>, dilations = array<i64: 5>, pads_low = array<i64: 0>, pads_high = array<i64: 1>} : (tensor<1x4x9xf32>, tensor<6x4x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<6x4x3xf32>) {
  // expected-error@+2 {{has weights 'tensor<6x4x3xf32>' that do not fit its input 'tensor<1x4x9xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv_transpose %0, %1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, output_padding = array<i64: 0>} : (tensor<1x4x9xf32>, tensor<6x4x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<4x6x3xf32>) {
  // expected-error@+2 {{has 2 output paddings for 1 spatial dimensions}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv_transpose %0, %1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, output_padding = array<i64: 0, 0>} : (tensor<1x4x9xf32>, tensor<4x6x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<4x6x3xf32>) {
  // expected-error@+2 {{has a negative output padding, -1, in spatial dimension 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv_transpose %0, %1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, output_padding = array<i64: -1>} : (tensor<1x4x9xf32>, tensor<4x6x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>, %1: tensor<4x6x3xf32>) {
  // expected-error@+2 {{crops spatial dimension 0 to a negative extent, -9}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.conv_transpose %0, %1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 20>, pads_high = array<i64: 0>, output_padding = array<i64: 0>} : (tensor<1x4x9xf32>, tensor<4x6x3xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xi8>) {
  // expected-error@+2 {{of kind average_include_pad needs floats, but has elements of 'i8'}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.pool %0 {kind = #dovetail.pool_kind<average_include_pad>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x4x9xi8>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>) {
  // expected-error@+2 {{has p = 0, but a norm needs 1 or more}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.pool %0 {kind = #dovetail.pool_kind<lp>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, p = 0 : i64} : (tensor<1x4x9xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>) {
  // expected-error@+2 {{has negative pads in spatial dimension 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.pool %0 {kind = #dovetail.pool_kind<max>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: -1>, pads_high = array<i64: 0>} : (tensor<1x4x9xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>) {
  // expected-error@+2 {{has a window that spans 12 positions of spatial dimension 0, which has 9 with its pads}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.pool %0 {kind = #dovetail.pool_kind<max>, kernel = array<i64: 12>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x4x9xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%0: tensor<1x4x9xf32>) {
  // expected-error@+2 {{has size 0, but needs a channel or more}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.lrn %0 {size = 0 : i64, alpha = 0.1 : f32, beta = 0.75 : f32, bias = 1.0 : f32} : (tensor<1x4x9xf32>) -> tensor<1x4x9xf32>
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>, %1: tensor<4x2xf32>) {
  // expected-error@+2 {{cannot multiply 'tensor<2x3xf32>' and 'tensor<4x2xf32>': the extents to contract differ, 3 and 4}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.matmul %0, %1 : (tensor<2x3xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%0: tensor<2x2x3xf32>, %1: tensor<3x3x2xf32>) {
  // expected-error@+2 {{their batches do not broadcast}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.matmul %0, %1 : (tensor<2x2x3xf32>, tensor<3x3x2xf32>) -> tensor<2x2x2xf32>
  return
}

// -----

func.func @f(%0: tensor<3xf32>, %1: tensor<3x2xf32>) {
  // expected-error@+2 {{both need rank 2 or more}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.matmul %0, %1 : (tensor<3xf32>, tensor<3x2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>) {
  // expected-error@+2 {{has axis 2, but its operand has rank 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.reduce %0 {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>) {
  // expected-error@+2 {{has axis -1, but its operand has rank 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.reduce %0 {kind = #dovetail.reduce_kind<sum>, axes = array<i64: -1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>) {
  // expected-error@+2 {{has axes that are not sorted and unique: 0 follows 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.reduce %0 {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @f(%0: tensor<2x3xi1>) {
  // expected-error@+2 {{of kind sum needs numbers, but has elements of i1}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.reduce %0 {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 1>} : (tensor<2x3xi1>) -> tensor<2x1xf32>
  return
}

// -----

func.func @f(%0: tensor<2x3xi32>) {
  // expected-error@+2 {{needs floats, but has elements of 'i32'}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:3 = dovetail.moments %0 {axes = array<i64: 1>} : (tensor<2x3xi32>) -> (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>) {
  // expected-error@+2 {{has 2 inputs, but needs elements, or counts, means and squared deviations of parts}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:3 = dovetail.moments %0, %0 {axes = array<i64: 1>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  return
}

// -----

func.func @f(%0: tensor<2x3xi32>) {
  // expected-error@+2 {{needs floats, but has elements of 'i32'}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:2 = dovetail.sum_exp %0 {axes = array<i64: 1>} : (tensor<2x3xi32>) -> (tensor<2x1xf32>, tensor<2x1xf32>)
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>) {
  // expected-error@+2 {{has kind sum, but needs max or min}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:2 = dovetail.arg_reduce %0 {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 1>} : (tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x1xi64>)
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>) {
  // expected-error@+2 {{has 2 axes, but positions are along one}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:2 = dovetail.arg_reduce %0 {kind = #dovetail.reduce_kind<max>, axes = array<i64: 0, 1>} : (tensor<2x3xf32>) -> (tensor<1x1xf32>, tensor<1x1xi64>)
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>) {
  // expected-error@+2 {{has positions of type 'tensor<2x3xf32>', which must be i64}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:2 = dovetail.arg_reduce %0, %0 {kind = #dovetail.reduce_kind<max>, axes = array<i64: 1>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x1xi64>)
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>, %1: tensor<2x4xf32>) {
  // expected-error@+2 {{combines 'tensor<2x3xf32>' and 'tensor<2x4xf32>', which must have one shape}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:3 = dovetail.moments %0, %1, %0 {axes = array<i64: 1>} : (tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>) {
  // expected-error@+2 {{begins anew at 1, which is not between 2 and the end, 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:3 = dovetail.moments %0 {axes = array<i64: 1>, restarts = [array<i64: 2, 1>]} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>) {
  // expected-error@+2 {{has 1 inputs and 2 axes, but restarts for 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:3 = dovetail.moments %0 {axes = array<i64: 0, 1>, restarts = [array<i64: 1>]} : (tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>) {
  // expected-error@+2 {{has axis 2, but its operand has rank 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.softmax %0 {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%0: tensor<2x3xi32>) {
  // expected-error@+2 {{needs floats, but has elements of 'i32'}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.softmax %0 {axis = 1 : i64} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @f(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error@+2 {{has a scale or bias 'tensor<2xf32>' that does not broadcast to its operand 'tensor<2x3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.layer_norm %0, %1 {axis = 1 : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%0: tensor<2x3x4xf32>) {
  // expected-error@+2 {{cannot divide 3 channels into 2 groups}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.group_norm %0 {groups = 2 : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @f(%0: tensor<2x3x4xf32>, %1: tensor<4xf32>) {
  // expected-error@+2 {{has a scale or bias 'tensor<4xf32>' for 3 channels}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.group_norm %0, %1 {groups = 3 : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @f(%0: tensor<2xf32>) {
  // expected-error@+2 {{has 2 sizes and 1 scales for an operand of rank 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.resize %0 {sizes = array<i64: 4, 4>, scales = array<f64: 2.0>, mode = #dovetail.resize_mode<linear>, coordinates = #dovetail.coordinate_mode<half_pixel>, nearest = #dovetail.nearest_mode<floor>, roi = array<f64>, cubic_coeff_a = -0.75 : f32, extrapolation_value = 0.0 : f32} : (tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%0: tensor<2xf32>) {
  // expected-error@+2 {{has a roi of 1 numbers, but tf_crop_and_resize needs 2 for rank 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.resize %0 {sizes = array<i64: 4>, scales = array<f64: 2.0>, mode = #dovetail.resize_mode<linear>, coordinates = #dovetail.coordinate_mode<tf_crop_and_resize>, nearest = #dovetail.nearest_mode<floor>, roi = array<f64: 0.5>, cubic_coeff_a = -0.75 : f32, extrapolation_value = 0.0 : f32} : (tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%0: tensor<2xi1>) {
  // expected-error@+2 {{cannot interpolate elements of i1: use mode nearest}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.resize %0 {sizes = array<i64: 4>, scales = array<f64: 2.0>, mode = #dovetail.resize_mode<linear>, coordinates = #dovetail.coordinate_mode<half_pixel>, nearest = #dovetail.nearest_mode<floor>, roi = array<f64>, cubic_coeff_a = -0.75 : f32, extrapolation_value = 0.0 : f32} : (tensor<2xi1>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%0: tensor<2xf32>) {
  // expected-error@+2 {{has scale 0.000000e+00 in dimension 0, not in 2^-24 .. 2^24}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.resize %0 {sizes = array<i64: 4>, scales = array<f64: 0.0>, mode = #dovetail.resize_mode<linear>, coordinates = #dovetail.coordinate_mode<half_pixel>, nearest = #dovetail.nearest_mode<floor>, roi = array<f64>, cubic_coeff_a = -0.75 : f32, extrapolation_value = 0.0 : f32} : (tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%0: tensor<0xf32>) {
  // expected-error@+2 {{cannot resize dimension 0 from 0 to 4}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.resize %0 {sizes = array<i64: 4>, scales = array<f64: 2.0>, mode = #dovetail.resize_mode<linear>, coordinates = #dovetail.coordinate_mode<half_pixel>, nearest = #dovetail.nearest_mode<floor>, roi = array<f64>, cubic_coeff_a = -0.75 : f32, extrapolation_value = 0.0 : f32} : (tensor<0xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%0: tensor<2xf32>) {
  // expected-error@+2 {{resizes dimension 0 from 2 to 16777217, but positions beyond 16777216 are not exact in f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = dovetail.resize %0 {sizes = array<i64: 16777217>, scales = array<f64: 2.0>, mode = #dovetail.resize_mode<linear>, coordinates = #dovetail.coordinate_mode<half_pixel>, nearest = #dovetail.nearest_mode<floor>, roi = array<f64>, cubic_coeff_a = -0.75 : f32, extrapolation_value = 0.0 : f32} : (tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<2x1xf32>' are incompatible with return type(s) of operation 'tensor<2xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}
