// RUN: dovetail-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{layout orders 2 dimensions, but has 1 extents}}
plan.kernel @k(%x: tensor<4x4xf32>) layouts [<[0, 1], [4]>] -> [<[0, 1], [4, 4]>] {
  plan.yield %x : tensor<4x4xf32>
}

// -----

// expected-error@+1 {{order [0, 0] is not a permutation of the dimensions}}
plan.kernel @k(%x: tensor<4x4xf32>) layouts [<[0, 0], [4, 4]>] -> [<[0, 1], [4, 4]>] {
  plan.yield %x : tensor<4x4xf32>
}

// -----

// expected-error@+1 {{argument 0 of type 'tensor<4x4xf32>' has a layout of extent 5 in dimension 1}}
plan.kernel @k(%x: tensor<4x4xf32>) layouts [<[0, 1], [4, 5]>] -> [<[0, 1], [4, 4]>] {
  plan.yield %x : tensor<4x4xf32>
}

// -----

// expected-error@+1 {{argument 0 of type 'tensor<4x4xf32>' has a layout of 1 dimensions}}
plan.kernel @k(%x: tensor<4x4xf32>) layouts [<[0], [4]>] -> [<[0, 1], [4, 4]>] {
  plan.yield %x : tensor<4x4xf32>
}

// -----

// expected-error@+1 {{yields 2 values, but has 1 result layouts}}
plan.kernel @k(%x: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] {
  plan.yield %x, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error@+1 {{all results of a kernel have one shape}}
plan.kernel @k(%x: tensor<4xf32>, %y: tensor<5xf32>) layouts [<[0], [4]>, <[0], [5]>] -> [<[0], [4]>, <[0], [5]>] {
  plan.yield %x, %y : tensor<4xf32>, tensor<5xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{argument 0 has a sharding; kernels are the same for all ranks}}
plan.kernel @k(%x: tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>) layouts [<[0], [?]>] -> [<[0], [?]>] {
  plan.yield %x : tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>
}

// -----

// expected-error@+1 {{has 1 loops, so loop 1 cannot be static}}
plan.kernel @k(%x: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] attributes {static_loops = array<i64: 1>} {
  plan.yield %x : tensor<4xf32>
}

// -----

plan.kernel @k(%x: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] {
  // expected-error@+1 {{cannot be in a kernel: it does not define an element of its result}}
  %0 = dovetail.reshard %x : tensor<4xf32> -> tensor<4xf32>
  plan.yield %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{is over @mesh, which is not a dovetail.mesh}}
plan.program @main mesh @mesh target "cpu" {
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  // expected-error@+1 {{has type 'tensor<4x4xf32>', but a format of 1 dimensions}}
  %a = plan.buffer arena tensor<4x4xf32> <[0]>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  // expected-error@+1 {{is constant, but has no value}}
  %a = plan.buffer constant tensor<4x4xf32> <[0, 1]>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  // expected-error@+1 {{has a value, but is not constant}}
  %a = plan.buffer arena tensor<4xf32> <[0]> = dense<1.0> : tensor<4xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  // expected-error@+1 {{has type 'tensor<4xf32>', but a value of type 'tensor<5xf32>'}}
  %a = plan.buffer constant tensor<4xf32> <[0]> = dense<1.0> : tensor<5xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32> <[0]>
  // expected-error@+1 {{has type 'tensor<5xf32>', but its buffer has type 'tensor<4xf32>'}}
  %x = plan.view %a : !plan.ref<tensor<5xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>> <[0]>
  // expected-error@+1 {{reaches outside of its buffer: in dimension 0, piece 1 of the value is [1, 4), but the buffer holds [2, 4)}}
  %x = plan.view %a : !plan.ref<tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : (0, 2), (1, 4)}]>>>
}

// -----

dovetail.mesh @mesh = ["y" = 2, "x" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>> <[0]>
  // expected-error@+1 {{reaches outside of its buffer: in dimension 0, piece 1 of the value is [2, 4), but the buffer holds [0, 2)}}
  %x = plan.view %a : !plan.ref<tensor<4xf32, #dovetail.sharding<@mesh, [{"x" : 0, 2, 4}]>>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32> <[0]>
  // expected-error@+1 {{has a sharding over axis "x", which mesh @mesh does not have}}
  %x = plan.view %a : !plan.ref<tensor<4xf32, #dovetail.sharding<@mesh, [{"x" : 0, 2, 4}]>>>
}

// -----

dovetail.mesh @mesh = ["y" = 3]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32> <[0]>
  // expected-error@+1 {{splits dimension 0 into 2 pieces over axes of 3 coordinates}}
  %x = plan.view %a : !plan.ref<tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4x4xf32> <[0, 1]>
  %x = plan.view %a : !plan.ref<tensor<4x4xf32>>
  // expected-error@+1 {{reads its operands as no matrix product does}}
  plan.matmul %x, %x -> %x loops [4, 4] reads [(d0, d2), (d2, d1)]
    : !plan.ref<tensor<4x4xf32>>, !plan.ref<tensor<4x4xf32>> -> !plan.ref<tensor<4x4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4x4xf32> <[0, 1]>
  %x = plan.view %a : !plan.ref<tensor<4x4xf32>>
  // expected-error@+1 {{runs piece [2, 5) of loop 2, whose extent is 4}}
  plan.matmul %x, %x -> %x loops [4, 4, 4 by <{"y" : 0, 2, 5}>] reads [(d0, d2), (d2, d1)]
    : !plan.ref<tensor<4x4xf32>>, !plan.ref<tensor<4x4xf32>> -> !plan.ref<tensor<4x4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4x4x4xf32> <[0, 1, 2]>
  %x = plan.view %a : !plan.ref<tensor<4x4x4xf32>>
  // expected-error@+1 {{has rows of 2 dimensions, on which 'tensor<4x4x4xf32>' depends}}
  plan.matmul %x, %x -> %x loops [4, 4, 4, 4] reads [(d0, d1, d3), (d0, d3, d2)] {row_dims = 2}
    : !plan.ref<tensor<4x4x4xf32>>, !plan.ref<tensor<4x4x4xf32>> -> !plan.ref<tensor<4x4x4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4x4xf32> <[0, 1]>
  %x = plan.view %a : !plan.ref<tensor<4x4xf32>>
  // expected-error@+1 {{cannot have rows of 2 dimensions}}
  plan.matmul %x, %x -> %x loops [4, 4, 4] reads [(d0, d2), (d2, d1)] {row_dims = 2}
    : !plan.ref<tensor<4x4xf32>>, !plan.ref<tensor<4x4xf32>> -> !plan.ref<tensor<4x4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<2x4x4xf32> <[0, 1, 2]>
  %b = plan.buffer arena tensor<4x4xf32> <[0, 1]>
  %x = plan.view %a : !plan.ref<tensor<2x4x4xf32>>
  %w = plan.view %b : !plan.ref<tensor<4x4xf32>>
  // expected-error@+1 {{cannot have rows of 2 dimensions}}
  plan.matmul %x, %w -> %x loops [2, 4, 4, 4] reads [(d0, d3, d1), (d3, d2)] {row_dims = 2}
    : !plan.ref<tensor<2x4x4xf32>>, !plan.ref<tensor<4x4xf32>> -> !plan.ref<tensor<2x4x4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer constant tensor<4xf32> <[0]> = dense<1.0> : tensor<4xf32>
  %x = plan.view %a : !plan.ref<tensor<4xf32>>
  // expected-error@+1 {{"image" would overwrite a constant}}
  plan.input "image" %x : !plan.ref<tensor<4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %a : !plan.ref<tensor<4xf32>>
  plan.exchange %x -> %x : !plan.ref<tensor<4xf32>> -> !plan.ref<tensor<4xf32>>
  // expected-error@+1 {{must be the only one of its program, before all steps}}
  plan.prologue {
  }
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %a : !plan.ref<tensor<4xf32>>
  // expected-error@+1 {{@k is not a plan.kernel}}
  plan.launch @k(%x) -> (%x) loops [4] : (!plan.ref<tensor<4xf32>>) -> (!plan.ref<tensor<4xf32>>)
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.kernel @k(%x: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] {
  plan.yield %x : tensor<4xf32>
}
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32> <[0]>
  %b = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %a : !plan.ref<tensor<4xf32>>
  %y = plan.view %b : !plan.ref<tensor<4xf32>>
  // expected-error@+1 {{reads 2 values, but @k has 1 arguments}}
  plan.launch @k(%x, %x) -> (%y) loops [4] : (!plan.ref<tensor<4xf32>>, !plan.ref<tensor<4xf32>>) -> (!plan.ref<tensor<4xf32>>)
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.kernel @k(%x: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] {
  plan.yield %x : tensor<4xf32>
}
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32> <[0]>
  %b = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %a : !plan.ref<tensor<4xf32>>
  %y = plan.view %b : !plan.ref<tensor<4xf32>>
  // expected-error@+1 {{lists loops that differ from the loops of @k, [4]}}
  plan.launch @k(%x) -> (%y) loops [5] : (!plan.ref<tensor<4xf32>>) -> (!plan.ref<tensor<4xf32>>)
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.kernel @k(%x: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] {
  plan.yield %x : tensor<4xf32>
}
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>> <[0]>
  %b = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %a : !plan.ref<tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>>
  %y = plan.view %b : !plan.ref<tensor<4xf32>>
  // expected-error@+1 {{read 0 has layout #plan.layout<[0], [?]>, but the kernel expects #plan.layout<[0], [4]>}}
  plan.launch @k(%x) -> (%y) loops [4] : (!plan.ref<tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}]>>>) -> (!plan.ref<tensor<4xf32>>)
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.kernel @k(%x: tensor<4x4xf32>) layouts [<[0, 1], [4, 4]>] -> [<[0, 1], [4, 4]>] attributes {static_loops = array<i64: 0, 1>} {
  plan.yield %x : tensor<4x4xf32>
}
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4x4xf32> <[1, 0]>
  %b = plan.buffer arena tensor<4x4xf32> <[0, 1]>
  %x = plan.view %a : !plan.ref<tensor<4x4xf32>>
  %y = plan.view %b : !plan.ref<tensor<4x4xf32>>
  // expected-error@+1 {{read 0 has format #plan.format<[1, 0]>, but the kernel expects #plan.layout<[0, 1], [4, 4]>}}
  plan.launch @k(%x) -> (%y) loops [4, 4] : (!plan.ref<tensor<4x4xf32>>) -> (!plan.ref<tensor<4x4xf32>>)
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.kernel @k(%x: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] attributes {static_loops = array<i64: 0>} {
  plan.yield %x : tensor<4xf32>
}
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32> <[0]>
  %b = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %a : !plan.ref<tensor<4xf32>>
  %y = plan.view %b : !plan.ref<tensor<4xf32>>
  // expected-error@+1 {{splits loop 0, which @k declares static}}
  plan.launch @k(%x) -> (%y) loops [4 by <{"y" : 0, 2, 4}>] : (!plan.ref<tensor<4xf32>>) -> (!plan.ref<tensor<4xf32>>)
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<1x4x5x5xf32> <[0, 1, 2, 3]>
  %b = plan.buffer arena tensor<8x4x3x3xf32> <[0, 1, 2, 3]>
  %c = plan.buffer arena tensor<1x9x5x5xf32> <[0, 1, 2, 3]>
  %x = plan.view %a : !plan.ref<tensor<1x4x5x5xf32>>
  %w = plan.view %b : !plan.ref<tensor<8x4x3x3xf32>>
  %y = plan.view %c : !plan.ref<tensor<1x9x5x5xf32>>
  // expected-error@+1 {{reads operand 1 as a tensor of other extents than 'tensor<8x4x3x3xf32>'}}
  plan.convolution %x, %w -> %y loops [1, 9, 5, 5, 4, 3, 3] reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)]
    : !plan.ref<tensor<1x4x5x5xf32>>, !plan.ref<tensor<8x4x3x3xf32>> -> !plan.ref<tensor<1x9x5x5xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<1x4x5x5xf32> <[0, 1, 2, 3]>
  %x = plan.view %a : !plan.ref<tensor<1x4x5x5xf32>>
  // expected-error@+1 {{reads its operands as no pool does}}
  plan.pool <max> %x -> %x loops [1, 4, 5, 5, 1, 1] reads [(d0, d1, d2 + d4)]
    : !plan.ref<tensor<1x4x5x5xf32>> -> !plan.ref<tensor<1x4x5x5xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<1x4x5x5xf32> <[0, 1, 2, 3]>
  %x = plan.view %a : !plan.ref<tensor<1x4x5x5xf32>>
  // expected-error@+1 {{splits loop 5, which is a tap}}
  plan.pool <max> %x -> %x loops [1, 4, 5, 5, 1, 3 by <{"y" : 0, 1, 3}>] reads [(d0, d1, d2 + d4, d3 + d5 - 1)]
    : !plan.ref<tensor<1x4x5x5xf32>> -> !plan.ref<tensor<1x4x5x5xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<1x4x5x5xf32> <[0, 1, 2, 3]>
  %x = plan.view %a : !plan.ref<tensor<1x4x5x5xf32>>
  // expected-error@+1 {{has loops [1, 4, 5, 4, 1, 1] that do not go through 'tensor<1x4x5x5xf32>'}}
  plan.pool <max> %x -> %x loops [1, 4, 5, 4, 1, 1] reads [(d0, d1, d2 + d4, d3 + d5)]
    : !plan.ref<tensor<1x4x5x5xf32>> -> !plan.ref<tensor<1x4x5x5xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4x4xf32> <[0, 1]>
  %x = plan.view %a : !plan.ref<tensor<4x4xf32>>
  // expected-error@+1 {{has 2 operands, but accesses of 1}}
  plan.matmul %x, %x -> %x loops [4, 4, 4] reads [(d0, d2)]
    : !plan.ref<tensor<4x4xf32>>, !plan.ref<tensor<4x4xf32>> -> !plan.ref<tensor<4x4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<1x4x5xf32> <[0, 1, 2]>
  %b = plan.buffer arena tensor<4x4x1xf32> <[0, 1, 2]>
  %x = plan.view %a : !plan.ref<tensor<1x4x5xf32>>
  %w = plan.view %b : !plan.ref<tensor<4x4x1xf32>>
  // Two groups of four channels, of which there are four.
  // expected-error@+1 {{reads operand 0 as a tensor of other extents than 'tensor<1x4x5xf32>'}}
  plan.convolution %x, %w -> %x loops [1, 4, 5, 4, 1] reads [(d0, 4*floor((d1) / 2) + d3, d2 + d4), (d1, d3, d4)]
    : !plan.ref<tensor<1x4x5xf32>>, !plan.ref<tensor<4x4x1xf32>> -> !plan.ref<tensor<1x4x5xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4x4xf32> <[0, 1]>
  %x = plan.view %a : !plan.ref<tensor<4x4xf32>>
  // expected-error@+1 {{has post-operations that read 1 tensors, but 0 are given}}
  plan.matmul %x, %x -> %x loops [4, 4, 4] reads [(d0, d2), (d2, d1)] {post_ops = [#plan.post_op<add_tensor>]}
    : !plan.ref<tensor<4x4xf32>>, !plan.ref<tensor<4x4xf32>> -> !plan.ref<tensor<4x4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer constant tensor<4xf32> <[0]> = dense<1.0> : tensor<4xf32>
  %b = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %a : !plan.ref<tensor<4xf32>>
  %y = plan.view %b : !plan.ref<tensor<4xf32>>
  // expected-error@+1 {{writes to a constant}}
  plan.reorder %y -> %x : !plan.ref<tensor<4xf32>> -> !plan.ref<tensor<4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %a : !plan.ref<tensor<4xf32>>
  %y = plan.view %a : !plan.ref<tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>>
  // expected-error@+1 {{makes the value partial over mesh axis "y"}}
  plan.exchange %x -> %y : !plan.ref<tensor<4xf32>> -> !plan.ref<tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32> <[0]>
  %b = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %a : !plan.ref<tensor<4xf32>>
  %y = plan.view %b : !plan.ref<tensor<4xf32>>
  // expected-error@+1 {{is by reduce_scatter, but combines nothing}}
  plan.exchange %x -> %y by reduce_scatter : !plan.ref<tensor<4xf32>> -> !plan.ref<tensor<4xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4x4xf32> <[0, 1]>
  %b = plan.buffer arena tensor<4x4xf32> <[0, 1]>
  %x = plan.view %a : !plan.ref<tensor<4x4xf32>>
  %y = plan.view %b : !plan.ref<tensor<4x4xf32>>
  // expected-error@+1 {{has messages in an order that is not a permutation of its dimensions}}
  plan.exchange %x -> %y in [1, 1] : !plan.ref<tensor<4x4xf32>> -> !plan.ref<tensor<4x4xf32>>
}

// -----

plan.kernel @k(%x: tensor<4x9000xf32>) layouts [<[0, 1], [4, 9000]>] -> [<[0, 1], [4, 9000]>] {
  %0 = dovetail.neg %x : (tensor<4x9000xf32>) -> tensor<4x9000xf32>
  // expected-error@+1 {{divides a value that is not a reduction}}
  %1 = plan.parts %0 {dim = 1} : tensor<4x9000xf32> -> tensor<4x9000xf32>
  plan.yield %1 : tensor<4x9000xf32>
}

// -----

plan.kernel @k(%x: tensor<4x9000xf32>) layouts [<[0, 1], [4, 9000]>] -> [<[0, 1], [16, 1]>] {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<4x9000xf32>) -> tensor<4x1xf32>
  // expected-error@+1 {{numbers parts by dimension 0 of 'tensor<4x1xf32>', which does not have extent 1 there}}
  %1 = plan.parts %0 {dim = 0} : tensor<4x1xf32> -> tensor<16x1xf32>
  plan.yield %1 : tensor<16x1xf32>
}

// -----

plan.kernel @k(%x: tensor<4x9000xf16>) layouts [<[0, 1], [4, 9000]>] -> [<[0, 1], [4, 16]>] {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<4x9000xf16>) -> tensor<4x1xf16>
  // expected-error@+1 {{cannot divide 'tensor<4x1xf16>' into parts of type 'tensor<4x16xf16>'}}
  %1 = plan.parts %0 {dim = 1} : tensor<4x1xf16> -> tensor<4x16xf16>
  plan.yield %1 : tensor<4x16xf16>
}

// -----

// expected-error@+1 {{cannot have its result in the memory of argument 0}}
plan.kernel @in_place(%a: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] attributes {in_place = 0} {
  %0 = dovetail.slice %a {starts = array<i64: 3>, sizes = array<i64: 4>, steps = array<i64: -1>} : (tensor<4xf32>) -> tensor<4xf32>
  plan.yield %0 : tensor<4xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

plan.kernel @k(%t: tensor<9xf32>, %i: tensor<4xi64>) layouts [<[0], [9]>, <[0], [4]>] -> [<[0], [4]>] {
  %0 = dovetail.gather %t, %i {axis = 0 : i64, dovetail.check_indices} : (tensor<9xf32>, tensor<4xi64>) -> tensor<4xf32>
  plan.yield %0 : tensor<4xf32>
}

plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<9xf32> <[0]>
  %b = plan.buffer arena tensor<4xi64> <[0]>
  %c = plan.buffer arena tensor<4xf32> <[0]>
  %t = plan.view %a : !plan.ref<tensor<9xf32>>
  %i = plan.view %b : !plan.ref<tensor<4xi64>>
  %y = plan.view %c : !plan.ref<tensor<4xf32>>
  // expected-error@+1 {{names the nodes of 0 checks of indices, but @k has 1}}
  plan.launch @k(%t, %i) -> (%y) loops [4, 9] : (!plan.ref<tensor<9xf32>>, !plan.ref<tensor<4xi64>>) -> (!plan.ref<tensor<4xf32>>)
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  // expected-error@+1 {{expected '>'}}
  %a = plan.buffer arena tensor<4x4xf32> <[0, 1], [4, 4]>
}

// -----

// expected-error@+1 {{expected ','}}
plan.kernel @k(%x: tensor<4x4xf32>) layouts [<[0, 1]>] -> [<[0, 1], [4, 4]>] {
  plan.yield %x : tensor<4x4xf32>
}

// -----

// What accumulates begins anew where the kernel says, and nowhere else.

dovetail.mesh @mesh = ["y" = 2]
!y = !plan.ref<tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>>>
plan.kernel @k(%x: tensor<8xf32>) layouts [<[0], [8]>] -> [<[0], [?]>] {
  %0 = dovetail.scan %x {axis = 0 : i64, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 3>} : (tensor<8xf32>) -> tensor<8xf32>
  plan.yield %0 : tensor<8xf32>
}
plan.program @scan mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8xf32> <[0]>
  %1 = plan.buffer arena tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>> <[0]>
  %x = plan.view %0 : !plan.ref<tensor<8xf32>>
  %y = plan.view %1 : !y
  // expected-error@+1 {{runs piece [0, 4) of loop 0, but the accumulation along it does not restart there}}
  plan.launch @k(%x) -> (%y) loops [8 by <{"y" : 0, 4, 8}>] : (!plan.ref<tensor<8xf32>>) -> (!y)
}

// -----

// Launches of one kernel that write one value are its parts: rank 1 computes row 6 twice.

dovetail.mesh @mesh = ["y" = 2]
!y = !plan.ref<tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>>>
plan.kernel @k(%x: tensor<8xf32>) layouts [<[0], [8]>] -> [<[0], [?]>] {
  %0 = dovetail.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  plan.yield %0 : tensor<8xf32>
}
plan.program @parts mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8xf32> <[0]>
  %1 = plan.buffer arena tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>> <[0]>
  %x = plan.view %0 : !plan.ref<tensor<8xf32>>
  %y = plan.view %1 : !y
  // expected-error@+1 {{and those after it do not compute each element once on rank 1}}
  plan.launch @k(%x) -> (%y) loops [8 by <{"y" : (0, 3), (4, 7)}>] : (!plan.ref<tensor<8xf32>>) -> (!y)
  plan.launch @k(%x) -> (%y) loops [8 by <{"y" : (3, 4), (6, 8)}>] : (!plan.ref<tensor<8xf32>>) -> (!y)
}

// -----

// A wait between the parts makes no difference.

dovetail.mesh @mesh = ["y" = 2]
!y = !plan.ref<tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>>>
plan.kernel @k(%x: tensor<8xf32>) layouts [<[0], [8]>] -> [<[0], [?]>] {
  %0 = dovetail.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  plan.yield %0 : tensor<8xf32>
}
plan.program @waiting mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8xf32> <[0]>
  %1 = plan.buffer arena tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>> <[0]>
  %x = plan.view %0 : !plan.ref<tensor<8xf32>>
  %y = plan.view %1 : !y
  %event = plan.exchange %x -> %x : !plan.ref<tensor<8xf32>> -> !plan.ref<tensor<8xf32>>
  // expected-error@+1 {{and those after it do not compute each element once on rank 1}}
  plan.launch @k(%x) -> (%y) loops [8 by <{"y" : (0, 3), (4, 7)}>] : (!plan.ref<tensor<8xf32>>) -> (!y)
  plan.wait complete(%event)
  plan.launch @k(%x) -> (%y) loops [8 by <{"y" : (3, 4), (6, 8)}>] : (!plan.ref<tensor<8xf32>>) -> (!y)
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!x = !plan.ref<tensor<4xf32>>
plan.program @main mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<4xf32> <[0]>
  %1 = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %0 : !x
  %y = plan.view %1 : !x
  // expected-error@+1 {{has 2 sources and 1 targets}}
  plan.exchange %x, %x -> %y : !x, !x -> !x
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!x = !plan.ref<tensor<4xf32>>
plan.program @main mesh @mesh target "cpu" {
  // expected-error@+1 {{has 0 sources and 0 targets}}
  "plan.exchange"() {operandSegmentSizes = array<i32: 0, 0>} : () -> !plan.event
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!x = !plan.ref<tensor<4xf32>>
plan.program @main mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<4xf32> <[0]>
  %1 = plan.buffer arena tensor<4xf32> <[0]>
  %2 = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %0 : !x
  %y = plan.view %1 : !x
  %z = plan.view %2 : !x
  // expected-error@+1 {{has 1 orders of dimensions for 2 moves}}
  plan.exchange %x, %x -> %y, %z in [0] : !x, !x -> !x, !x
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!x = !plan.ref<tensor<4xf32>>
plan.program @main mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<4xf32> <[0]>
  %1 = plan.buffer arena tensor<4xf32> <[0]>
  %2 = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %0 : !x
  %y = plan.view %1 : !x
  %z = plan.view %2 : !x
  // expected-error@+1 {{is by all_gather, but moves 2 tensors}}
  plan.exchange %x, %x -> %y, %z by all_gather : !x, !x -> !x, !x
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!x = !plan.ref<tensor<4xf32>>
plan.program @main mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<4xf32> <[0]>
  %1 = plan.buffer arena tensor<4xf32> <[0]>
  %2 = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %0 : !x
  %y = plan.view %1 : !x
  %z = plan.view %2 : !x
  // expected-error@+1 {{has moves 0 and 1 of which the first writes into a buffer of the other}}
  plan.exchange %x, %y -> %y, %z : !x, !x -> !x, !x
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!x = !plan.ref<tensor<4xf32>>
plan.program @main mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<4xf32> <[0]>
  %1 = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %0 : !x
  %y = plan.view %1 : !x
  %z = plan.view %1 : !x
  // expected-error@+1 {{has moves 0 and 1 of which the first writes into a buffer of the other}}
  plan.exchange %x, %x -> %y, %z : !x, !x -> !x, !x
}

// -----

// Fewer channels than groups.

dovetail.mesh @mesh = ["y" = 1]

plan.program @groups mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<2x8x5xf32> <[0, 1, 2]>
  %1 = plan.buffer arena tensor<0x4x1xf32> <[0, 1, 2]>
  %2 = plan.buffer arena tensor<2x0x5xf32> <[0, 1, 2]>
  %x = plan.view %0 : !plan.ref<tensor<2x8x5xf32>>
  %w = plan.view %1 : !plan.ref<tensor<0x4x1xf32>>
  %y = plan.view %2 : !plan.ref<tensor<2x0x5xf32>>
  // expected-error@+1 {{reads its operands as no convolution does}}
  plan.convolution %x, %w -> %y loops [2, 0, 5, 4, 1] reads [(d0, 4*d0 + d3, d2 + d4), (d1, d3, d4)]
    : !plan.ref<tensor<2x8x5xf32>>, !plan.ref<tensor<0x4x1xf32>> -> !plan.ref<tensor<2x0x5xf32>>
}

// -----

// Stride 2.

dovetail.mesh @mesh = ["y" = 1]

plan.program @winograd mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x4x8x8xf32> <[0, 2, 3, 1]>
  %1 = plan.buffer arena tensor<4x4x3x3xf32> <[0, 1, 2, 3]>
  %2 = plan.buffer arena tensor<1x4x4x4xf32> <[0, 2, 3, 1]>
  %x = plan.view %0 : !plan.ref<tensor<1x4x8x8xf32>>
  %w = plan.view %1 : !plan.ref<tensor<4x4x3x3xf32>>
  %y = plan.view %2 : !plan.ref<tensor<1x4x4x4xf32>>
  // expected-error@+1 {{is by algorithm 'winograd', but no convolution in f32 of 3 x 3 with stride 1 and one group}}
  plan.convolution %x, %w -> %y loops [1, 4, 4, 4, 4, 3, 3] reads [(d0, d4, 2*d2 + d5 - 1, 2*d3 + d6 - 1), (d1, d4, d5, d6)]
    {algorithm = #plan<convolution_algorithm winograd>}
    : !plan.ref<tensor<1x4x8x8xf32>>, !plan.ref<tensor<4x4x3x3xf32>> -> !plan.ref<tensor<1x4x4x4xf32>>
}

// -----

// Loops that there are not.

dovetail.mesh @mesh = ["y" = 1]

plan.program @loops mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x4x5xf32> <[0, 1, 2]>
  %1 = plan.buffer arena tensor<4x4x1xf32> <[0, 1, 2]>
  %2 = plan.buffer arena tensor<1x4x5xf32> <[0, 1, 2]>
  %x = plan.view %0 : !plan.ref<tensor<1x4x5xf32>>
  %w = plan.view %1 : !plan.ref<tensor<4x4x1xf32>>
  %y = plan.view %2 : !plan.ref<tensor<1x4x5xf32>>
  // expected-error@+1 {{reads its operands as no convolution does}}
  plan.convolution %x, %w -> %y loops [1, 4, 5, 4, 1] reads [(d0, d255 + d3 + d100, d2 + d4), (d1, d3, d4)]
    : !plan.ref<tensor<1x4x5xf32>>, !plan.ref<tensor<4x4x1xf32>> -> !plan.ref<tensor<1x4x5xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

plan.program @idle mesh @mesh target "cpu" {
  // expected-error@+1 {{waits for nothing}}
  plan.wait
}

// -----

// What the prologue begins is over when the first step runs.

dovetail.mesh @mesh = ["y" = 2]

plan.program @lists mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %x = plan.view %0 : !plan.ref<tensor<8x8xf32>>
  %later = plan.exchange %x -> %x : !plan.ref<tensor<8x8xf32>> -> !plan.ref<tensor<8x8xf32>>
  plan.prologue {
    // expected-error@+1 {{waits for a step of another list}}
    plan.wait complete(%later)
  }
}

// -----

dovetail.mesh @mesh = ["y" = 2]

plan.program @order mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %x = plan.view %0 : !plan.ref<tensor<8x8xf32>>
  %event = plan.exchange %x -> %x : !plan.ref<tensor<8x8xf32>> -> !plan.ref<tensor<8x8xf32>>
  // expected-error@+1 {{waits until others have read for an exchange that may not be complete}}
  plan.wait read(%event)
  plan.wait complete(%event)
}

// -----

// What uses an event is checked before it is known to be a wait.

dovetail.mesh @mesh = ["y" = 2]

plan.program @users mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %x = plan.view %0 : !plan.ref<tensor<8x8xf32>>
  %event = plan.exchange %x -> %x : !plan.ref<tensor<8x8xf32>> -> !plan.ref<tensor<8x8xf32>>
  // expected-error@+1 {{waits until others have read for an exchange that may not be complete}}
  plan.wait read(%event)
  "plan.output"(%event) {name = "x"} : (!plan.event) -> ()
}

// -----

// expected-error@+1 {{'plan.kernel' op has results of 1 dimensions, but counts for 2}}
plan.kernel @copy(%x: tensor<8xf32>, %n: tensor<i64>) layouts [<[0], [8]>, <[], []>] -> [<[0], [8]>]
    attributes {counts = array<i64: 1, -1>} {
  %0 = dovetail.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  plan.yield %0 : tensor<8xf32>
}

// -----

// expected-error@+1 {{'plan.kernel' op ends dimension 0 at argument 0, which is not a count, tensor<i64>}}
plan.kernel @copy(%x: tensor<8xf32>, %n: tensor<i64>) layouts [<[0], [8]>, <[], []>] -> [<[0], [8]>]
    attributes {counts = array<i64: 0>} {
  %0 = dovetail.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  plan.yield %0 : tensor<8xf32>
}

// -----

// expected-error@+1 {{'plan.kernel' op ends dimension 0 at a count, but has its result in the memory of an argument}}
plan.kernel @copy(%x: tensor<8xf32>, %n: tensor<i64>) layouts [<[0], [8]>, <[], []>] -> [<[0], [8]>]
    attributes {counts = array<i64: 1>, in_place = 0 : i64} {
  %0 = dovetail.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  plan.yield %0 : tensor<8xf32>
}

// -----

// An exchange comes between what it sends and the rest, but here row 3, which rank 0 sends, is computed behind it.

dovetail.mesh @mesh = ["y" = 2]
!x = !plan.ref<tensor<8xf32>>
!y = !plan.ref<tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>>>
!halo = !plan.ref<tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}]>>>
plan.kernel @k(%x: tensor<8xf32>) layouts [<[0], [8]>] -> [<[0], [?]>] {
  %0 = dovetail.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  plan.yield %0 : tensor<8xf32>
}
plan.program @sent mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8xf32> <[0]>
  %1 = plan.buffer arena tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}]>> <[0]>
  %x = plan.view %0 : !x
  %y = plan.view %1 : !y
  %halo = plan.view %1 : !halo
  plan.launch @k(%x) -> (%y) loops [8 by <{"y" : (0, 3), (4, 5)}>] : (!x) -> (!y)
  %event = plan.exchange %y -> %halo : !y -> !halo
  plan.wait complete(%event) read(%event)
  // expected-error@+1 {{writes elements that an exchange between the parts of its step sends or receives}}
  plan.launch @k(%x) -> (%y) loops [8 by <{"y" : (3, 4), (5, 8)}>] : (!x) -> (!y)
}

// -----

// Such an exchange leaves alone what it does not send within one buffer only.

dovetail.mesh @mesh = ["y" = 2]
!x = !plan.ref<tensor<8xf32>>
!y = !plan.ref<tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>>>
!halo = !plan.ref<tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}]>>>
plan.kernel @k(%x: tensor<8xf32>) layouts [<[0], [8]>] -> [<[0], [?]>] {
  %0 = dovetail.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  plan.yield %0 : tensor<8xf32>
}
plan.program @elsewhere mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8xf32> <[0]>
  %1 = plan.buffer arena tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>> <[0]>
  %2 = plan.buffer arena tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}]>> <[0]>
  %x = plan.view %0 : !x
  %y = plan.view %1 : !y
  %halo = plan.view %2 : !halo
  plan.launch @k(%x) -> (%y) loops [8 by <{"y" : (3, 4), (4, 5)}>] : (!x) -> (!y)
  %event = plan.exchange %y -> %halo : !y -> !halo
  // expected-error@+1 {{writes elements that an exchange between the parts of its step sends or receives}}
  plan.launch @k(%x) -> (%y) loops [8 by <{"y" : (0, 3), (5, 8)}>] : (!x) -> (!y)
}

// -----

// The parts before and behind an exchange make up what ranks have, as without it: rank 1 lacks row 7.

dovetail.mesh @mesh = ["y" = 2]
!x = !plan.ref<tensor<8xf32>>
!y = !plan.ref<tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}]>>>
!halo = !plan.ref<tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}]>>>
plan.kernel @k(%x: tensor<8xf32>) layouts [<[0], [8]>] -> [<[0], [?]>] {
  %0 = dovetail.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  plan.yield %0 : tensor<8xf32>
}
plan.program @lacking mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8xf32> <[0]>
  %1 = plan.buffer arena tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}]>> <[0]>
  %x = plan.view %0 : !x
  %y = plan.view %1 : !y
  %halo = plan.view %1 : !halo
  // expected-error@+1 {{and those after it do not compute each element once on rank 1}}
  plan.launch @k(%x) -> (%y) loops [8 by <{"y" : (3, 4), (4, 5)}>] : (!x) -> (!y)
  %event = plan.exchange %y -> %halo : !y -> !halo
  plan.launch @k(%x) -> (%y) loops [8 by <{"y" : (0, 3), (5, 7)}>] : (!x) -> (!y)
}

// -----

// Library calls are parts, too, where an exchange comes between them: both compute row 4 on rank 1.

dovetail.mesh @mesh = ["y" = 2]
!x = !plan.ref<tensor<8x4xf32>>
!w = !plan.ref<tensor<4x4xf32>>
!y = !plan.ref<tensor<8x4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>
!halo = !plan.ref<tensor<8x4xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>>>
plan.program @calls mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x4xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<4x4xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<8x4xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>> <[0, 1]>
  %x = plan.view %0 : !x
  %w = plan.view %1 : !w
  %y = plan.view %2 : !y
  %halo = plan.view %2 : !halo
  // expected-error@+1 {{and those after it do not compute each element once on rank 1}}
  plan.matmul %x, %w -> %y loops [8 by <{"y" : (3, 4), (4, 5)}>, 4, 4] reads [(d0, d2), (d2, d1)] : !x, !w -> !y
  %event = plan.exchange %y -> %halo : !y -> !halo
  plan.matmul %x, %w -> %y loops [8 by <{"y" : (0, 3), (4, 8)}>, 4, 4] reads [(d0, d2), (d2, d1)] : !x, !w -> !y
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cuda" on device {
  %a = plan.buffer arena tensor<4x8x2xf32> <[0, 1, 2]>
  %b = plan.buffer arena tensor<4x8x2xf32> <[0, 1, 2]>
  %x = plan.view %a : !plan.ref<tensor<4x8x2xf32>>
  %y = plan.view %b : !plan.ref<tensor<4x8x2xf32>>
  // expected-error@+1 {{reads its operands as no transform does}}
  plan.transform %x -> %y loops [4, 8, 2, 8, 2] reads [(d0, d1, d4)] : !plan.ref<tensor<4x8x2xf32>> -> !plan.ref<tensor<4x8x2xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cuda" on device {
  %b = plan.buffer arena tensor<4x8x2xf32> <[0, 1, 2]>
  %c = plan.buffer arena tensor<4x8x1xf32> <[0, 1, 2]>
  %y = plan.view %b : !plan.ref<tensor<4x8x2xf32>>
  %real = plan.view %c : !plan.ref<tensor<4x8x1xf32>>
  // expected-error@+1 {{reads its operands as no transform does}}
  plan.transform %real -> %y loops [4, 8, 2, 8, 1] reads [(d0, d3, d4)] : !plan.ref<tensor<4x8x1xf32>> -> !plan.ref<tensor<4x8x2xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cuda" on device {
  %b = plan.buffer arena tensor<4x8x2xf32> <[0, 1, 2]>
  %d = plan.buffer arena tensor<4x5x2xf32> <[0, 1, 2]>
  %y = plan.view %b : !plan.ref<tensor<4x8x2xf32>>
  %half = plan.view %d : !plan.ref<tensor<4x5x2xf32>>
  // expected-error@+1 {{reads operand 0 as a tensor of other extents than 'tensor<4x5x2xf32>'}}
  plan.transform %half -> %y loops [4, 8, 2, 8, 2] reads [(d0, d3, d4)] : !plan.ref<tensor<4x5x2xf32>> -> !plan.ref<tensor<4x8x2xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cuda" on device {
  %a = plan.buffer arena tensor<4x8x2xf32> <[0, 1, 2]>
  %b = plan.buffer arena tensor<4x8x2xf32> <[0, 1, 2]>
  %x = plan.view %a : !plan.ref<tensor<4x8x2xf32>>
  %y = plan.view %b : !plan.ref<tensor<4x8x2xf32>>
  // expected-error@+1 {{splits loop 1, which it transforms}}
  plan.transform %x -> %y loops [4, 8 by <{"y" : 0, 4, 8}>, 2, 8, 2] reads [(d0, d3, d4)] : !plan.ref<tensor<4x8x2xf32>> -> !plan.ref<tensor<4x8x2xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cuda" on device {
  %a = plan.buffer arena tensor<4x8x2xf32> <[0, 1, 2]>
  %b = plan.buffer arena tensor<4x8x2xf32> <[0, 1, 2]>
  %x = plan.view %a : !plan.ref<tensor<4x8x2xf32>>
  %y = plan.view %b : !plan.ref<tensor<4x8x2xf32>>
  // expected-error@+1 {{splits loop 3, which it transforms}}
  plan.transform %x -> %y loops [4, 8, 2, 8 by <{"y" : 0, 4, 8}>, 2] reads [(d0, d3, d4)] : !plan.ref<tensor<4x8x2xf32>> -> !plan.ref<tensor<4x8x2xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cuda" on device {
  %c = plan.buffer arena tensor<4x8x1xf32> <[0, 1, 2]>
  %d = plan.buffer arena tensor<4x5x2xf32> <[0, 1, 2]>
  %real = plan.view %c : !plan.ref<tensor<4x8x1xf32>>
  %half = plan.view %d : !plan.ref<tensor<4x5x2xf32>>
  // expected-error@+1 {{is inverse, but reads real numbers}}
  plan.transform inverse %real -> %half loops [4, 5, 2, 8, 1] reads [(d0, d3, d4)] : !plan.ref<tensor<4x8x1xf32>> -> !plan.ref<tensor<4x5x2xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cuda" on device {
  %c = plan.buffer arena tensor<4x8x1xf32> <[0, 1, 2]>
  %d = plan.buffer arena tensor<4x5x2xf32> <[0, 1, 2]>
  %real = plan.view %c : !plan.ref<tensor<4x8x1xf32>>
  %half = plan.view %d : !plan.ref<tensor<4x5x2xf32>>
  // expected-error@+1 {{writes real numbers, but is not inverse}}
  plan.transform %half -> %real loops [4, 8, 1, 5, 2] reads [(d0, d3, d4)] : !plan.ref<tensor<4x5x2xf32>> -> !plan.ref<tensor<4x8x1xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cuda" on device {
  %a = plan.buffer arena tensor<4x8x2xf16> <[0, 1, 2]>
  %b = plan.buffer arena tensor<4x8x2xf32> <[0, 1, 2]>
  %x = plan.view %a : !plan.ref<tensor<4x8x2xf16>>
  %y = plan.view %b : !plan.ref<tensor<4x8x2xf32>>
  // expected-error@+1 {{transforms 'tensor<4x8x2xf16>' to 'tensor<4x8x2xf32>': of neither f32 nor f64}}
  plan.transform %x -> %y loops [4, 8, 2, 8, 2] reads [(d0, d3, d4)] : !plan.ref<tensor<4x8x2xf16>> -> !plan.ref<tensor<4x8x2xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<1x4x5xf32> <[0, 1, 2]>
  %b = plan.buffer arena tensor<4x4x1xf32> <[0, 1, 2]>
  %x = plan.view %a : !plan.ref<tensor<1x4x5xf32>>
  %w = plan.view %b : !plan.ref<tensor<4x4x1xf32>>
  %y = plan.view %a : !plan.ref<tensor<1x4x5xf32>>
  // expected-error@+1 {{attribute 'reads' failed to satisfy constraint: accesses of loops alone, without borders}}
  plan.convolution %x, %w -> %y loops [1, 4, 5, 4, 1] reads [(d0, d3, edge(d2 + d4, 0 to 5)), (d1, d3, d4)]
    : !plan.ref<tensor<1x4x5xf32>>, !plan.ref<tensor<4x4x1xf32>> -> !plan.ref<tensor<1x4x5xf32>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<1x4x5xf32> <[0, 1, 2]>
  %b = plan.buffer arena tensor<4x4x1xf32> <[0, 1, 2]>
  %x = plan.view %a : !plan.ref<tensor<1x4x5xf32>>
  %w = plan.view %b : !plan.ref<tensor<4x4x1xf32>>
  %y = plan.view %a : !plan.ref<tensor<1x4x5xf32>>
  // expected-error@+1 {{attribute 'reads' failed to satisfy constraint: accesses of loops alone, without borders}}
  plan.convolution %x, %w -> %y loops [1, 4, 5, 4, 1] reads [(d0, d3, u0), (d1, d3, d4)]
    : !plan.ref<tensor<1x4x5xf32>>, !plan.ref<tensor<4x4x1xf32>> -> !plan.ref<tensor<1x4x5xf32>>
}
