// A stencil of 3 x 3 points with a table of weights. Outside of the field is its nearest element.

func.func @main(%x: tensor<37x29xf32> {dovetail.name = "x"}, %w: tensor<3x3xf32> {dovetail.name = "w"})
    -> (tensor<37x29xf32> {dovetail.name = "y"}) {
  %y = dovetail.generic(%x, %w) : (tensor<37x29xf32>, tensor<3x3xf32>) -> tensor<37x29xf32>
      loops [y = 37, x = 29, ky = 3 tap, kx = 3 tap]
      reads [0 : (edge(y + ky - 1, 0 to 37), edge(x + kx - 1, 0 to 29)), 1 : (ky, kx)]
      combine sum body {
    %a = dovetail.read 0 : f32
    %b = dovetail.read 1 : f32
    %p = arith.mulf %a, %b : f32
    dovetail.return %p : f32
  }
  return %y : tensor<37x29xf32>
}
