// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --dovetail-witness-reads

// Ranks hold what windows reach, but for the padding.

dovetail.mesh @mesh = ["y" = 2]

func.func @held(%x: tensor<1x1x8x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 8)}, {}]>>, %w: tensor<1x1x3x1xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>) -> tensor<1x1x8x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>> {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 0>, pads_high = array<i64: 1, 0>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}, {}]>} : (tensor<1x1x8x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 8)}, {}]>>, tensor<1x1x3x1xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>) -> tensor<1x1x8x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>>
  return %0 : tensor<1x1x8x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>>
}

// -----

// A row is missing on the second rank.

dovetail.mesh @mesh = ["y" = 2]

func.func @missing(%x: tensor<1x1x8x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (4, 8)}, {}]>>, %w: tensor<1x1x3x1xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>) -> tensor<1x1x8x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>> {
  // expected-error @+1 {{reads element (0, 0, 3, 0) of operand 0, of which rank 1 holds [0, 1) x [0, 1) x [4, 8) x [0, 1)}}
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 0>, pads_high = array<i64: 1, 0>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}, {}]>} : (tensor<1x1x8x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (4, 8)}, {}]>>, tensor<1x1x3x1xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>) -> tensor<1x1x8x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>>
  return %0 : tensor<1x1x8x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>>
}

// -----

// What data decide may be anywhere.

dovetail.mesh @mesh = ["y" = 2]

func.func @indirect(%x: tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>>, %i: tensor<2xi64, #dovetail.sharding<@mesh, [{}]>>) -> tensor<2xf32, #dovetail.sharding<@mesh, [{}]>> {
  // expected-error-re @+1 {{reads element ({{[0-7]}}) of operand 0, of which rank 0 holds [0, 4)}}
  %0 = dovetail.gather %x, %i {axis = 0 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>} : (tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>>, tensor<2xi64, #dovetail.sharding<@mesh, [{}]>>) -> tensor<2xf32, #dovetail.sharding<@mesh, [{}]>>
  return %0 : tensor<2xf32, #dovetail.sharding<@mesh, [{}]>>
}

// -----

// A rank reads what it owns of it.

dovetail.mesh @mesh = ["y" = 2]

func.func @looked_up(%x: tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}]>>, %i: tensor<2xi64, #dovetail.sharding<@mesh, [{}]>>) -> tensor<2xf32, #dovetail.sharding<@mesh, [{}], partial = owner ["y"]>> {
  %0 = dovetail.gather %x, %i {axis = 0 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 3, 8}]>} : (tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}]>>, tensor<2xi64, #dovetail.sharding<@mesh, [{}]>>) -> tensor<2xf32, #dovetail.sharding<@mesh, [{}], partial = owner ["y"]>>
  return %0 : tensor<2xf32, #dovetail.sharding<@mesh, [{}], partial = owner ["y"]>>
}

// -----

// Of updates at constant places, each rank writes its own.

dovetail.mesh @mesh = ["y" = 2]

func.func @owned(%x: tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}]>>, %u: tensor<3xf32, #dovetail.sharding<@mesh, [{}]>>) -> tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}]>> {
  %i = dovetail.constant dense<[[2], [3], [-1]]> : tensor<3x1xi64>
  %0 = dovetail.scatter_nd %x, %i, %u {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 3, 8}]>} : (tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}]>>, tensor<3x1xi64>, tensor<3xf32, #dovetail.sharding<@mesh, [{}]>>) -> tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}]>>
  return %0 : tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}]>>
}

// -----

// A rank reads those neighbours of a position that it owns.

dovetail.mesh @mesh = ["y" = 2]

func.func @sampled(%x: tensor<1x1x8xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 3, 8}]>>, %g: tensor<1x6x1xf32, #dovetail.sharding<@mesh, [{}, {}, {}]>>) -> tensor<1x1x6xf32, #dovetail.sharding<@mesh, [{}, {}, {}], partial = sum ["y"]>> {
  %0 = dovetail.grid_sample %x, %g {mode = #dovetail.resize_mode<cubic>, padding = #dovetail.pad_mode<reflect>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {}, {"y" : 0, 3, 8}]>} : (tensor<1x1x8xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 3, 8}]>>, tensor<1x6x1xf32, #dovetail.sharding<@mesh, [{}, {}, {}]>>) -> tensor<1x1x6xf32, #dovetail.sharding<@mesh, [{}, {}, {}], partial = sum ["y"]>>
  return %0 : tensor<1x1x6xf32, #dovetail.sharding<@mesh, [{}, {}, {}], partial = sum ["y"]>>
}

// -----

// Where each rank adds all neighbours, it needs them all.

dovetail.mesh @mesh = ["y" = 2]

func.func @sampled_alone(%x: tensor<1x1x8xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 3, 8}]>>, %g: tensor<1x6x1xf32, #dovetail.sharding<@mesh, [{}, {}, {}]>>) -> tensor<1x1x6xf32, #dovetail.sharding<@mesh, [{}, {}, {}]>> {
  // expected-error-re @+1 {{reads element (0, 0, {{[0-7]}}) of operand 0, of which rank {{[01]}} holds [0, 1) x [0, 1) x}}
  %0 = dovetail.grid_sample %x, %g {mode = #dovetail.resize_mode<cubic>, padding = #dovetail.pad_mode<reflect>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {}, {}]>} : (tensor<1x1x8xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 3, 8}]>>, tensor<1x6x1xf32, #dovetail.sharding<@mesh, [{}, {}, {}]>>) -> tensor<1x1x6xf32, #dovetail.sharding<@mesh, [{}, {}, {}]>>
  return %0 : tensor<1x1x6xf32, #dovetail.sharding<@mesh, [{}, {}, {}]>>
}
