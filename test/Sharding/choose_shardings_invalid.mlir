// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file --verify-diagnostics

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{argument 0 cannot be split as requested: the mesh has no axis "z"}}
func.func @axis(%a: tensor<4xf32> {dovetail.shard = [#dovetail.dim_sharding<{"z" : 0, 2, 4}>]}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{argument 0 cannot be split as requested: dimension 0 of extent 4 cannot hold the piece [2, 5)}}
func.func @outside(%a: tensor<4xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 2, 5}>]}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{argument 0 cannot be split as requested: the pieces do not tile the dimension of extent 4}}
func.func @gap(%a: tensor<4xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : (0, 2), (3, 4)}>]}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{argument 0 has a sharding in its type, and another is requested: state one of them}}
func.func @both(%a: tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}]>> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 2, 4}>]}) -> tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}]>> {
  return %a : tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}]>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{argument 0 has a sharding in its type, which is partial: only how it is cut can be stated}}
func.func @partial(%a: tensor<4xf32, #dovetail.sharding<@mesh, [{}], partial = sum ["y"]>>) {
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{argument 0 has a sharding in its type, over @other, but the mesh is @mesh}}
func.func @other_mesh(%a: tensor<4xf32, #dovetail.sharding<@other, [{"y" : 0, 1, 4}]>>) {
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{argument 0 cannot be split as requested: the pieces do not tile the dimension of extent 4}}
func.func @short(%a: tensor<4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 3}]>>) {
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2]
func.func @stated_twice(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{the result of 'dovetail.relu' has loop shardings, and a sharding is requested: state one of them}}
  %0 = dovetail.relu %a {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 1, 4}]>, dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 1, 4}>]} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{the result of 'dovetail.relu' cannot be split as requested: the mesh has no axis "z"}}
func.func @result(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dovetail.relu %a {dovetail.shard = [#dovetail.dim_sharding<{"z"}>]} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{result 0 cannot be split as requested: the mesh has no axis "z"}}
func.func @output(%a: tensor<4xf32>) -> (tensor<4xf32> {dovetail.shard = [#dovetail.dim_sharding<{"z"}>]}) {
  return %a : tensor<4xf32>
}

// -----

// Results of one operation are split alike.

dovetail.mesh @mesh = ["y" = 2]
func.func @two_results(%a: tensor<4x9xf32>) {
  // expected-error@+1 {{the result of 'dovetail.top_k' has a sharding in its type, and another result has another: state one}}
  %0:2 = dovetail.top_k %a {k = 2 : i64, axis = 1 : i64, largest = true} : (tensor<4x9xf32>) -> (tensor<4x2xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}, {}]>>, tensor<4x2xi64>)
  return
}

// -----

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{a module has one mesh, but this is the second}}
dovetail.mesh @another = ["y" = 2]

// -----

dovetail.mesh @mesh = ["y" = 2]

// expected-error @below {{result 0 is fed back to no argument: array<i64: 1, 0>}}
func.func @no_argument(%a: tensor<8xf32>) -> (tensor<8xf32> {dovetail.feedback = array<i64: 1, 0>}) {
  return %a : tensor<8xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// expected-error @below {{result 0 is fed back to argument 1, but their types differ: 'tensor<8xf32>' and 'tensor<4xf32>'}}
func.func @other_type(%a: tensor<8xf32>, %b: tensor<4xf32>) -> (tensor<8xf32> {dovetail.feedback = array<i64: 1, 0>}) {
  return %a : tensor<8xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// expected-error @below {{two results are fed back to argument 0}}
func.func @twice(%a: tensor<8xf32>)
    -> (tensor<8xf32> {dovetail.feedback = array<i64: 0, 0>}, tensor<8xf32> {dovetail.feedback = array<i64: 0, 0>}) {
  return %a, %a : tensor<8xf32>, tensor<8xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// expected-error @below {{result 0 is cut as argument 0 is, to which it is fed back; request no other sharding of it}}
func.func @requested(%a: tensor<8xf32>) -> (tensor<8xf32> {dovetail.feedback = array<i64: 0, 0>,
                                                         dovetail.shard = [#dovetail.dim_sharding<{"y"}>]}) {
  return %a : tensor<8xf32>
}
