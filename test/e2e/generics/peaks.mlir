// Twice the largest number so far: no kind of reduction ignores NaN, so that regions say how terms accumulate.

func.func @main(%x: tensor<64x5xf32> {dovetail.name = "x"}) -> (tensor<64x5xf32> {dovetail.name = "y"}) {
  %y = dovetail.generic(%x) : (tensor<64x5xf32>) -> tensor<64x5xf32>
      loops [t = 64 scan, c = 5]
      reads [0 : (t, c)]
      scan t
      init {
    %least = arith.constant 0xFF800000 : f32
    dovetail.return %least : f32
  } combine(%a: f32, %b: f32) {
    // The larger of both, but NaN of neither.
    %most = arith.maxnumf %a, %b : f32
    dovetail.return %most : f32
  } finish(%a: f32) {
    %two = arith.constant 2.0 : f32
    %double = arith.mulf %a, %two : f32
    dovetail.return %double : f32
  } body {
    %a = dovetail.read 0 : f32
    dovetail.return %a : f32
  }
  return %y : tensor<64x5xf32>
}
