//===- ContractionOps.td - Convolutions, pooling, matrix products and reductions -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_CONTRACTIONOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_CONTRACTIONOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

def Dovetail_ConvOp : Dovetail_InferredOp<"conv", [],
    ["getFormatPreference"]> {
  let summary = "Convolution of any number of spatial dimensions";
  let description = [{
    Cross-correlation of `input` [N, C, spatial...] with `weights` [O, C/groups, window...]. Pads may be negative or
    uneven. No bias: that is an `add`. Integers of 8 bits give i32, as those of `matmul` do. Loops: N, O, result
    spatial..., then C/groups as a sum (split only when groups is 1).
  }];
  let arguments = (ins Dovetail_NumberTensor:$input, Dovetail_NumberTensor:$weights,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads_low, DenseI64ArrayAttr:$pads_high,
                       DefaultValuedAttr<I64Attr, "1">:$groups);
}

def Dovetail_ConvTransposeOp : Dovetail_InferredOp<"conv_transpose", [],
    ["getFormatPreference"]> {
  let summary = "Transposed convolution (the gradient of `conv`)";
  let description = [{
    `input` [N, C, spatial...], `weights` [C, O/groups, window...]. Result extent: stride * (extent - 1) +
    output_padding + (window - 1) * dilation + 1 - pads_low - pads_high.
  }];
  let arguments = (ins Dovetail_NumberTensor:$input, Dovetail_NumberTensor:$weights,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads_low, DenseI64ArrayAttr:$pads_high,
                       DenseI64ArrayAttr:$output_padding, DefaultValuedAttr<I64Attr, "1">:$groups);
}

def Dovetail_PoolOp : Dovetail_InferredOp<"pool", [DeclareOpInterfaceMethods<CallFormOpInterface>],
    ["emitBody", "emitInit", "emitCombine", "emitFinish", "getFormatPreference"]> {
  let summary = "Maximum, average or Lp over windows";
  let description = [{
    Over [N, C, spatial...]. With `ceil` the result's extents round up, as ONNX's ceil_mode (a window that would start
    beyond the leading pad and the tensor is dropped). Averages that include padding count positions inside the tensor
    and its pads, but not those beyond the trailing pad. A maximum skips NaN, unlike `reduce`; that of a window without
    numbers is the least value of the type. `p` is the order of the Lp norm, 1 or more.
  }];
  let arguments = (ins Dovetail_NumberTensor:$input, Dovetail_PoolKindAttr:$kind, DenseI64ArrayAttr:$kernel,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads_low, DenseI64ArrayAttr:$pads_high, UnitAttr:$ceil,
                       DefaultValuedAttr<I64Attr, "2">:$p);
}

def Dovetail_MaxPoolIndicesOp : Dovetail_InferredOp<"max_pool_indices", [],
    ["emitBody", "emitInit", "emitCombine", "emitFinish"]> {
  let summary = "Where in `input` the maxima of a pool of the same windows are: the second result of ONNX MaxPool";
  let description = [{
    The position in the whole of `input`, or with `column_major` in it with the spatial dimensions in reverse order.
    Among equals it is the first, in row-major order; a window without numbers gives -1.
  }];
  let arguments = (ins Dovetail_NumberTensor:$input, DenseI64ArrayAttr:$kernel,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads_low, DenseI64ArrayAttr:$pads_high, UnitAttr:$ceil,
                       UnitAttr:$column_major);
}

def Dovetail_LrnOp : Dovetail_InferredOp<"lrn", [],
    ["emitBody", "emitFinish", "getFormatPreference"]> {
  let summary = "Local response normalisation across channels (ONNX LRN)";
  let description = [{
    x / (bias + alpha / size * s)^beta, where s is the sum of the squares of `size` channels around that of x, as far as
    they exist.
  }];
  let arguments = (ins Dovetail_NumberTensor:$input, I64Attr:$size, F32Attr:$alpha, F32Attr:$beta, F32Attr:$bias);
}

def Dovetail_MatMulOp : Dovetail_InferredOp<"matmul", [],
    ["getFormatPreference"]> {
  let summary = "Matrix product of the last two dimensions; the others are a batch and broadcast";
  let description = [{
    Both operands have rank 2 or more (vectors are reshaped on import). Integers of 8 bits, signed or not, are extended to
    i32, and so are their products and sums. Loops: batch..., m, n, then k as a sum.
  }];
  let arguments = (ins Dovetail_NumberTensor:$lhs, Dovetail_NumberTensor:$rhs);
}

def Dovetail_ReduceOp : Dovetail_InferredOp<"reduce", [],
    ["emitBody", "emitInit", "emitCombine"]> {
  let summary = "Sum, product, maximum or minimum over some dimensions, which are kept with extent 1";
  let description = [{
    Loops: the result's dimensions (those reduced have extent 1), then one reduction for each of `axes` (sorted,
    unique).
  }];
  let arguments = (ins Dovetail_NumberTensor:$operand, Dovetail_ReduceKindAttr:$kind, DenseI64ArrayAttr:$axes);
}

/// A fold of elements to several values, which only the operation can combine, or of such values of parts. Its arguments
/// are `inputs`, `axes`, `restarts` and others of its own.
class Dovetail_TupleFoldOp<string mnemonic, list<string> methods = []>
    : Op<Dovetail_Dialect, mnemonic,
         [Pure, InferTypeOpAdaptorWithIsCompatible,
          Dovetail_Defined<
              ["emitBody", "emitInit", "emitCombine", "emitFinish", "emitPass", "decompose", "combineParts"] # methods>]> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getOperation()->getResult(0).getType());
    }
  }];
  let extraClassDefinition = [{
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange l, ::mlir::TypeRange r) {
      return ::dovetail::equalUpToSharding(l, r);
    }
    ::llvm::SmallVector<::mlir::Value> $cppClass::emitFinish(::dovetail::BodyBuilder &, ::mlir::ValueRange found) {
      return found;
    }
  }];
}

/// Positions, ascending, that divide each of several axes.
def Dovetail_RestartsAttr : OptionalAttr<TypedArrayAttrBase<DenseI64ArrayAttr, "positions along each axis">>;

def Dovetail_MomentsOp : Dovetail_TupleFoldOp<"moments", ["emitFound", "emitBlock"]> {
  let summary = "Count, mean and sum of squared deviations over some dimensions";
  let description = [{
    Of one input, over `axes`, which the results keep with extent 1 or, where `restarts` divide them into parts, with an
    element for each part: `restarts` has for each of `axes` the positions where another part begins. Of three inputs,
    which are counts, means and squared deviations of parts: those of all elements, by Chan's formula, so that the
    variance does not cancel. Elements narrower than f32 give moments in f32.

    One that is split where it reduces gives way to one of parts, which ranks divide, and one that combines them.
  }];
  let arguments = (ins Variadic<Dovetail_NumberTensor>:$inputs, DenseI64ArrayAttr:$axes,
                       Dovetail_RestartsAttr:$restarts);
  let results = (outs Dovetail_FloatTensor:$counts, Dovetail_FloatTensor:$means, Dovetail_FloatTensor:$deviations);
}

def Dovetail_SumExpOp : Dovetail_TupleFoldOp<"sum_exp", ["emitFound", "expandRows"]> {
  let summary = "Maximum, and sum of exponentials of differences from it, over some dimensions";
  let description = [{
    Of one input, with `axes` and `restarts` as `moments` has them; of two, which are maxima and sums of parts, those of
    all elements. Without elements, or of nothing but minus infinity, they are the least finite number and zero. Elements
    narrower than f32 give f32.
  }];
  let arguments = (ins Variadic<Dovetail_NumberTensor>:$inputs, DenseI64ArrayAttr:$axes,
                       Dovetail_RestartsAttr:$restarts);
  let results = (outs Dovetail_FloatTensor:$maxima, Dovetail_FloatTensor:$sums);
}

def Dovetail_ArgReduceOp : Dovetail_TupleFoldOp<"arg_reduce", ["emitBlock"]> {
  let summary = "The largest or smallest element over a dimension, and where it is";
  let description = [{
    Of one input, over `axes`, one dimension, with `restarts` as `moments` has them; of two, which are elements and
    positions of parts, those of the whole. Among equals it is the first, or with `last` the last one. NaN is beyond all
    numbers, as for NumPy. Without elements the position is -1.
  }];
  let arguments = (ins Variadic<Dovetail_NumberTensor>:$inputs, Dovetail_ReduceKindAttr:$kind, UnitAttr:$last,
                       DenseI64ArrayAttr:$axes, Dovetail_RestartsAttr:$restarts);
  let results = (outs Dovetail_NumberTensor:$values, Dovetail_NumberTensor:$positions);
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getOperation()->getResult(0).getType());
    }
    /// The last position of the input, an i64.
    ::mlir::Value getLastPosition(::dovetail::ElementBuilder &builder);
  }];
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_CONTRACTIONOPS_TD
