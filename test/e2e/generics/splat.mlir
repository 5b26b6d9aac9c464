// Adds values to cells, of which several may be the same.

func.func @main(%x: tensor<50x4xf32> {dovetail.name = "x"}, %v: tensor<31x4xf32> {dovetail.name = "v"},
                %i: tensor<31xi64> {dovetail.name = "i"}) -> (tensor<50x4xf32> {dovetail.name = "y"}) {
  %y = dovetail.generic(%x, %v, %i) : (tensor<50x4xf32>, tensor<31x4xf32>, tensor<31xi64>) -> tensor<50x4xf32>
      loops [cell = 50, c = 4, k = 31 tap]
      reads [0 : (cell, c), 1 : (k, c), 2 : (k)]
      writes (u0, c) by 2
      combine sum body {
    %a = dovetail.read 1 : f32
    dovetail.return %a : f32
  }
  return %y : tensor<50x4xf32>
}
