// For each of some points how far away the farthest of a cloud is, and which one: no table of distances is stored.

func.func @main(%p: tensor<23x3xf32> {dovetail.name = "points"}, %q: tensor<101x3xf32> {dovetail.name = "cloud"})
    -> (tensor<23xf32> {dovetail.name = "distance"}, tensor<23xi64> {dovetail.name = "farthest"}) {
  %d, %i = dovetail.generic(%p, %q) : (tensor<23x3xf32>, tensor<101x3xf32>) -> (tensor<23xf32>, tensor<23xi64>)
      loops [point = 23, other = 101 reduction]
      reads [0 : (point, u0), 1 : (other, u0)]
      init {
    %none = arith.constant -1.0 : f32
    %nowhere = arith.constant -1 : i64
    dovetail.return %none, %nowhere : f32, i64
  } combine(%a: f32, %i: i64, %b: f32, %j: i64) {
    // The first one of several.
    %farther = arith.cmpf ogt, %b, %a : f32
    %distance = arith.select %farther, %b, %a : f32
    %place = arith.select %farther, %j, %i : i64
    dovetail.return %distance, %place : f32, i64
  } finish(%a: f32, %i: i64) {
    %distance = math.sqrt %a : f32
    dovetail.return %distance, %i : f32, i64
  } body {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %square = scf.for %c = %c0 to %c3 step %c1 iter_args(%sum = %zero) -> f32 {
      %a = dovetail.read 0(%c) : f32
      %b = dovetail.read 1(%c) : f32
      %difference = arith.subf %a, %b : f32
      %product = arith.mulf %difference, %difference : f32
      %next = arith.addf %sum, %product : f32
      scf.yield %next : f32
    }
    %other = dovetail.index other
    %place = arith.index_cast %other : index to i64
    dovetail.return %square, %place : f32, i64
  }
  return %d, %i : tensor<23xf32>, tensor<23xi64>
}
