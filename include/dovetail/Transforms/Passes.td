//===- Passes.td - Passes that simplify the graph -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TRANSFORMS_PASSES_TD
#define DOVETAIL_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FoldConstants : Pass<"dovetail-fold-constants"> {
  let summary = "Compute operations whose operands are all constant and whose result is small";
  let description = [{
    Runs the definitions of operations, so that every operator can be folded. What is left to run time are large
    results, such as reordered weights, and functions that LLVM cannot evaluate.

    With `keep-factors`, matrices of integers of which factors of products are computed, for example by
    DequantizeLinear, stay as they are, and so does what is computed of them. They are stored smaller so, and `legalize`
    decides whether integers are multiplied.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
  let options = [
    Option<"maxElements", "max-elements", "int64_t", "4096", "Largest number of elements of a result to compute">,
    Option<"keepFactors", "keep-factors", "bool", "false", "Leave integers of which factors are computed">
  ];
}

def TransposeConstants : Pass<"dovetail-transpose-constants"> {
  let summary = "Store narrow weights in the order in which products read them";
  let description = [{
    Where the second factor of a matrix product is a transpose of what is computed, for it alone, of constants whose
    elements have 8 bits or fewer, but for scales, these are stored in the other order. So a kernel that computes the
    factor where it reads it finds what it needs in neighbouring bytes.

    ```mlir
    %0 = dovetail.constant dense_resource<w> : tensor<96x64xi4>
    %1 = dovetail.widen %0 : (tensor<96x64xi4>) -> tensor<96x64xi8>
    %2 = dovetail.cast %1 {to = f32} : (tensor<96x64xi8>) -> tensor<96x64xf32>
    %3 = dovetail.transpose %2 {permutation = array<i64: 1, 0>} : (tensor<96x64xf32>) -> tensor<64x96xf32>
    ```

    becomes

    ```mlir
    %0 = dovetail.constant dense_resource<w> : tensor<64x96xi4>
    %1 = dovetail.widen %0 : (tensor<64x96xi4>) -> tensor<64x96xi8>
    %2 = dovetail.cast %1 {to = f32} : (tensor<64x96xi8>) -> tensor<64x96xf32>
    ```
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def PackConstants : Pass<"dovetail-pack-constants"> {
  let summary = "Store large constants of 4- and 2-bit elements with several of them in a byte";
  let description = [{
    The constant becomes one of bytes, and a `dovetail.unpack` of it, which becomes part of the kernels that read it.
    Elements share bytes along a dimension that is not the last one, if there is another, so that loops over the last
    one read bytes that follow each other.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def SimplifyArithmetic : Pass<"dovetail-simplify-arithmetic"> {
  let summary = "Drop and merge arithmetic with constants";
  let description = [{
    Operations that change nothing disappear (`x * 1`, `relu(relu(x))`, `neg(neg(x))`, a cast there and back), bounds
    merge (`max(max(x, a), b)`), small constant powers become products, subtracted constants become summands. Results are equal, but for the sign of zeros that
    rectifiers bound.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def SimplifyShapes : Pass<"dovetail-simplify-shapes"> {
  let summary = "Cancel and merge operations that only move elements";
  let description = [{
    Reshapes, transposes, slices, pads, broadcasts, concatenations and resizes that change nothing disappear, and
    consecutive ones merge. Transposes move behind elementwise operations, pads, slices, concatenations, reductions and
    resizes until they meet one that cancels them. A sum is transposed before it is added up if one of its operands is
    transposed for all other readers. Reshapes move behind the bias and the activation that follow a product. A broadcast that an elementwise operation implies is dropped. Slices that are concatenated around their
    source are a `pad` in wrap mode, and zeros around it one with zeros. A gather of constant indices is a `slice` where
    these are evenly spaced, a `pad` where they continue all of a dimension, and a concatenation of two slices where they
    are two ranges, as in a roll. A scatter to constant neighbours that replaces what is there is a concatenation or, in
    zeros, a `pad`.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def RestoreRows : Pass<"dovetail-restore-rows"> {
  let summary = "Compute rows in the dimensions that they have before or behind";
  let description = [{
    Products with matrices and elementwise operations do the same for each row, whatever dimensions rows have.
    Operations that read each other's rows are computed with other dimensions of these, if fewer reshapes are left then.
    The new dimensions are parts of the old ones, so that these can be cut where they could. So what ONNX Runtime
    flattens for its Gemm is again as it was.

    ```mlir
    %0 = dovetail.reshape %x : (tensor<2x8x16xf32>) -> tensor<16x16xf32>
    %1 = dovetail.matmul %0, %w : (tensor<16x16xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
    %2 = dovetail.add %1, %b : (tensor<16x4xf32>, tensor<4xf32>) -> tensor<16x4xf32>
    %3 = dovetail.reshape %2 : (tensor<16x4xf32>) -> tensor<2x8x4xf32>
    ```

    becomes

    ```mlir
    %0 = dovetail.matmul %x, %w : (tensor<2x8x16xf32>, tensor<16x4xf32>) -> tensor<2x8x4xf32>
    %1 = dovetail.add %0, %b : (tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8x4xf32>
    ```
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def HoistSlices : Pass<"dovetail-hoist-slices"> {
  let summary = "Compute only what slices take of a result";
  let description = [{
    Where slices are all that is read of a result, and the operation reads its operands at the same place along a
    dimension, whatever that is (rows of products, the dimensions that a Fourier transform does not go along), it is
    done on slices of its operands, if that saves work: its own or, of an operation that costs little, that of what is
    computed for it. So less is moved between ranks, too.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def SinkPads : Pass<"dovetail-sink-pads"> {
  let summary = "Compute nothing of zeros that only come along";
  let description = [{
    An operation that costs work, is linear in an operand, and reads it at the same place along a dimension, makes zeros
    of zeros: padding of the operand along that dimension becomes padding of the result. What is concatenated with equal
    pads is padded once.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def RecognizeNorms : Pass<"dovetail-recognize-norms"> {
  let summary = "Recognize normalisations that are spelt out";
  let description = [{
    `(x - mean) / sqrt(mean((x - mean)^2) + epsilon)` over trailing dimensions becomes a `layer_norm`, or a `group_norm`
    with a group for each channel over the spatial dimensions of images. A norm between reshapes that merge channels and
    spatial dimensions (instance normalisation of `[N, G, -1]` or `[1, N*G, -1]`) becomes a `group_norm` without
    reshapes. A constant scale and bias behind a norm become its parameters.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def FormIntegerProducts : Pass<"dovetail-form-integer-products"> {
  let summary = "Multiply integers of 8 bits as they are";
  let description = [{
    A `matmul` or `conv` in i32 of factors that are extended from integers of 8 bits, less a zero point or not, becomes
    one of these integers, the second with a sign, and sums of factors, with which zero points are subtracted from the
    result. What a convolution reads beyond the border is the zero point then. All of it is exact: sums in i32 wrap around
    as they did.

    The same of factors in f32 that are such integers times constant scales, as DequantizeLinear gives them, one for all
    of the first and perhaps one for each output channel of the second, with constant zero points: the product in i32 is
    scaled, which rounds less than sums in f32 do.

    Transposes, slices and reshapes may stand anywhere between a product and its integers. They move the integers then,
    and zero points and scales that are several. A product stays as it is if a reshape merges dimensions along which
    these vary with others.

    For targets whose libraries have such products. It comes before factors that are constants are folded, so that it
    finds what weights have been extended from.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def FormFloatProducts : Pass<"dovetail-form-float-products"> {
  let summary = "Multiply integers of 8 bits in f32";
  let description = [{
    A `matmul` or `conv` in i32 of factors that are extended from integers of 8 bits, less zero points of these, becomes
    a product of the same factors in f32, or some of parts of the terms, whose results are added in i32: no part has
    more terms than f32 holds sums of, whatever the factors are, so that all of it is exact. No part is a convolution of
    3 x 3, which may be done in f32 by an algorithm that rounds. What would take more than 16 parts stays as it is.
    Transposes, slices and reshapes may stand between a product and its integers, and stay there.

    For targets whose libraries have no products of integers, and add those of f32 as they are. It comes before factors
    that are constants are folded, so that it finds what weights have been extended from.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def FormAttention : Pass<"dovetail-form-attention"> {
  let summary = "Make attention of two products with a softmax between them";
  let description = [{
    `softmax(scale * q k^T + mask) v` becomes `dovetail.attention`, which stores no scores, where these would not stay
    in a cache near the core. The scale may be missing, as may the mask, which may also be a `select` between scores
    and a constant.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
  let options = [
    Option<"minScores", "min-scores", "int64_t", "65536", "Least number of scores of a batch to form attention for">
  ];
}

def ExpandTransforms : Pass<"dovetail-expand-transforms"> {
  let summary = "Take from Fourier transforms what libraries do not do with them";
  let description = [{
    An inverse transform becomes an `unscaled` one and a product with 1 / length, which goes behind all transforms that
    follow at once, as far as the spectrum of real numbers. Of that, imaginary parts that do not count are set to zero, and
    real numbers whose whole spectrum is wanted get imaginary parts. For targets with a library of transforms.

    Values in between are as many times larger as transforms have points: beyond the largest number divided by that, they
    become infinite.

    ```mlir
    %0 = dovetail.dft %x, %table {axis = 1, length = 8, inverse}
    ```

    becomes

    ```mlir
    %0 = dovetail.dft %x, %table {axis = 1, length = 8, inverse, unscaled}
    %1 = dovetail.mul %0, %c  // 1 / 8
    ```
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def ExpandNorms : Pass<"dovetail-expand-norms"> {
  let summary = "Replace normalisations by statistics and elementwise operations";
  let description = [{
    `softmax`, `layer_norm` and `group_norm` become statistics (`sum_exp`, `moments`), which may be split, and
    elementwise operations with what these come to. What comes after knows no norms.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def ExpandWraps : Pass<"dovetail-expand-wraps"> {
  let summary = "Replace padding that wraps around by a concatenation";
  let description = [{
    `pad` in wrap mode becomes a `concat` of the tensor and of slices of its ends, dimension by dimension. What a rank
    at an end of a dimension reads of the other end is then an operand of its own, so that ranks exchange a halo and not
    all of the dimension. A dimension that is repeated more than eight times stays as it is.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def JoinWraps : Pass<"dovetail-join-wraps"> {
  let summary = "Make concatenations of a tensor with its own ends padding again";
  let description = [{
    What `dovetail-expand-wraps` makes of padding that wraps around is for ranks that divide the dimension. Where none
    does, it is a `pad` again once shardings are chosen, of all such dimensions at once and after those that ranks
    divide, so that one kernel reads each element where it is.
  }];
}

def RecognizeActivations : Pass<"dovetail-recognize-activations"> {
  let summary = "Recognize activation functions that are spelt out";
  let description = [{
    Gelu (with erf and with tanh), HardSwish, HardSigmoid, Swish, Mish, Sigmoid, Relu and LeakyRelu, in whatever order
    their factors are multiplied. Constants must be those of the definition up to the rounding of a literal.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def RecognizeSoftmax : Pass<"dovetail-recognize-softmax"> {
  let summary = "Recognize softmax that is spelt out with its maximum";
  let description = [{
    `exp(x - max(x)) / sum(exp(x - max(x)))` over one dimension becomes a `softmax`. Without the maximum it stays as it
    is: it overflows where `softmax` does not.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def FoldScales : Pass<"dovetail-fold-scales"> {
  let summary = "Fold constant factors and summands into the weights and the bias before them";
  let description = [{
    `mul(conv(x, w), s)` with a constant `s` for each channel becomes `conv(x, mul(w, s))`, and `mul(add(conv, b), s)`
    becomes `add(mul(conv, s), mul(b, s))`; the same for `div`, `conv_transpose` and `matmul`. Batch normalisation
    disappears in this way. Consecutive constant factors and summands merge everywhere. What is computed of constants
    alone runs once. In f32 and f64 only, and only factors whose size does not risk an overflow.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def FoldNarrowScales : Pass<"dovetail-fold-narrow-scales"> {
  let summary = "Fold constants of f32 behind convolutions of 16 bits into their weights";
  let description = [{
    `cast(add(mul(cast(conv(x, w)), s), b))` to f16 or bf16, with constants `s` and `b` of f32 for each channel, as
    batch normalisation has them, becomes `add(conv(x, cast(mul(cast(w), s))), cast(b))`. Then a library applies the
    summand and what follows. Weights are rounded once more, and the result once less. Where weights would lose digits
    because the type has no numbers of their size, or summands come near its largest number, nothing changes. For
    targets whose libraries have products of 16 bits, whoever does a convolution there; others compute them in f32.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def FoldPads : Pass<"dovetail-fold-pads"> {
  let summary = "Fold padding into the windows of convolutions and pooling";
  let description = [{
    Zeros before a convolution, before an average that counts them or before an Lp norm, and before a maximum the least
    value, or zeros where no element is negative.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def CheckIndices : Pass<"dovetail-check-indices"> {
  let summary = "Report indices that are out of range";
  let description = [{
    A constant index that is out of range is an error. Operations that look up at other indices get the attribute
    `dovetail.check_indices`: their kernels report such an index when they read it. Without that they clamp it.
  }];
  let options = [
    Option<"atRunTime", "at-run-time", "bool", /*default=*/"true", "Have indices checked that are no constants">
  ];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

#endif // DOVETAIL_TRANSFORMS_PASSES_TD
