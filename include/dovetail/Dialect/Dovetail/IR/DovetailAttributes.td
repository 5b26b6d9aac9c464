//===- DovetailAttributes.td - Sharding and other attributes -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILATTRIBUTES_TD
#define DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILATTRIBUTES_TD

include "dovetail/Dialect/Dovetail/IR/DovetailDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

class Dovetail_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::dovetail";
  let genSpecializedAttr = 0;
}

class Dovetail_EnumAttr<EnumAttrInfo info, string mnemonic>
    : EnumAttr<Dovetail_Dialect, info, mnemonic> {
  let assemblyFormat = "`<` $value `>`";
}

def Dovetail_ReduceKind : Dovetail_Enum<"ReduceKind", "How elements are combined", [
  I32EnumAttrCase<"Sum", 1, "sum">, I32EnumAttrCase<"Prod", 2, "prod">,
  I32EnumAttrCase<"Max", 3, "max">, I32EnumAttrCase<"Min", 4, "min">,
  I32EnumAttrCase<"Owner", 5, "owner">
]>;
def Dovetail_ReduceKindAttr : Dovetail_EnumAttr<Dovetail_ReduceKind, "reduce_kind">;

/// For the attributes of the plan dialect. In the order of the schema's PostOpKind.
def Dovetail_PostOpKind : Dovetail_Enum<"PostOpKind", "What a library applies to the result of a call", [
  I32EnumAttrCase<"AddTensor", 0, "add_tensor">, I32EnumAttrCase<"MulTensor", 1, "mul_tensor">,
  I32EnumAttrCase<"Relu", 2, "relu">, I32EnumAttrCase<"LeakyRelu", 3, "leaky_relu">,
  I32EnumAttrCase<"Clip", 4, "clip">, I32EnumAttrCase<"Sigmoid", 5, "sigmoid">,
  I32EnumAttrCase<"Tanh", 6, "tanh">, I32EnumAttrCase<"Gelu", 7, "gelu">,
  I32EnumAttrCase<"GeluTanh", 8, "gelu_tanh">, I32EnumAttrCase<"HardSwish", 9, "hard_swish">,
  I32EnumAttrCase<"Swish", 10, "swish">, I32EnumAttrCase<"Elu", 11, "elu">,
  I32EnumAttrCase<"HardSigmoid", 12, "hard_sigmoid">
]>;

def Dovetail_PoolKind : Dovetail_Enum<"PoolKind", "What a pooling window computes", [
  I32EnumAttrCase<"Max", 0, "max">,
  I32EnumAttrCase<"AverageIncludePad", 1, "average_include_pad">,
  I32EnumAttrCase<"AverageExcludePad", 2, "average_exclude_pad">,
  I32EnumAttrCase<"Lp", 3, "lp">
]>;
def Dovetail_PoolKindAttr : Dovetail_EnumAttr<Dovetail_PoolKind, "pool_kind">;

def Dovetail_PadMode : Dovetail_Enum<"PadMode", "What lies outside of a padded tensor", [
  I32EnumAttrCase<"Constant", 0, "constant">, I32EnumAttrCase<"Reflect", 1, "reflect">,
  I32EnumAttrCase<"Edge", 2, "edge">, I32EnumAttrCase<"Wrap", 3, "wrap">
]>;
def Dovetail_PadModeAttr : Dovetail_EnumAttr<Dovetail_PadMode, "pad_mode">;

def Dovetail_ResizeMode : Dovetail_Enum<"ResizeMode", "Interpolation of a resize", [
  I32EnumAttrCase<"Nearest", 0, "nearest">, I32EnumAttrCase<"Linear", 1, "linear">,
  I32EnumAttrCase<"Cubic", 2, "cubic">
]>;
def Dovetail_ResizeModeAttr : Dovetail_EnumAttr<Dovetail_ResizeMode, "resize_mode">;

def Dovetail_CoordinateMode : Dovetail_Enum<"CoordinateMode",
    "How a resize maps a coordinate of the result to one of the operand (ONNX Resize)", [
  I32EnumAttrCase<"HalfPixel", 0, "half_pixel">,
  I32EnumAttrCase<"HalfPixelSymmetric", 1, "half_pixel_symmetric">,
  I32EnumAttrCase<"PytorchHalfPixel", 2, "pytorch_half_pixel">,
  I32EnumAttrCase<"AlignCorners", 3, "align_corners">,
  I32EnumAttrCase<"Asymmetric", 4, "asymmetric">,
  I32EnumAttrCase<"TfCropAndResize", 5, "tf_crop_and_resize">,
  I32EnumAttrCase<"TfHalfPixelForNN", 6, "tf_half_pixel_for_nn">
]>;
def Dovetail_CoordinateModeAttr : Dovetail_EnumAttr<Dovetail_CoordinateMode, "coordinate_mode">;

def Dovetail_NearestMode : Dovetail_Enum<"NearestMode", "Rounding of a nearest resize (ONNX Resize)", [
  I32EnumAttrCase<"RoundPreferFloor", 0, "round_prefer_floor">,
  I32EnumAttrCase<"RoundPreferCeil", 1, "round_prefer_ceil">,
  I32EnumAttrCase<"Floor", 2, "floor">, I32EnumAttrCase<"Ceil", 3, "ceil">
]>;
def Dovetail_NearestModeAttr : Dovetail_EnumAttr<Dovetail_NearestMode, "nearest_mode">;

//===----------------------------------------------------------------------===//
// Sharding
//===----------------------------------------------------------------------===//

class Dovetail_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Dovetail_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Dovetail_DimShardingAttr : Dovetail_Attr<"DimSharding", "dim_sharding"> {
  let summary = "How one dimension is split over mesh axes";
  let description = [{
    `axes` are the mesh axes that split the dimension, major to minor; `pieces` holds `lo, hi` of the interval that each
    coordinate (row-major over those axes) holds. Both are empty for a dimension that is not split. When the intervals
    tile the dimension in order they are *cuts* and print as positions, `"y" : 0, 300, 512`; otherwise they
    are *windows* and print as `"y" : (0, 301), (299, 512)`. A request may name axes and leave the pieces to be chosen;
    a type may not.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes,
                        ArrayRefParameter<"int64_t">:$pieces);
  let hasCustomAssemblyFormat = 1;
  let genStorageClass = 0;
  let extraClassDeclaration = [{
    bool isSplit() const { return !getAxes().empty(); }
    unsigned getNumPieces() const { return getIntervals().size(); }
    ::dovetail::layout::Interval getPiece(unsigned i) const { return getIntervals()[i]; }
    /// All pieces.
    ::llvm::ArrayRef<::dovetail::layout::Interval> getIntervals() const;
    /// True if all pieces lie inside of [0, extent) and none ends before it starts; empty ones lie somewhere, too.
    bool isInside(int64_t extent) const;
    /// The size of the largest piece of a dimension of `extent`.
    int64_t getLargestSize(int64_t extent) const;
    /// True if the pieces tile [0, extent) in order.
    bool isCuts() const;
    /// True if each of `extent` positions lies in some piece, or, for `coversOnce`, in one: the pieces that are not
    /// empty tile [0, extent) in order. A dimension that is not split is covered.
    bool covers(int64_t extent) const;
    bool coversOnce(int64_t extent) const;
    static DimShardingAttr getUnsplit(::mlir::MLIRContext *context);
    static DimShardingAttr getCuts(::llvm::ArrayRef<::mlir::StringAttr> axes,
                                   ::llvm::ArrayRef<int64_t> positions);
    static DimShardingAttr getWindows(::llvm::ArrayRef<::mlir::StringAttr> axes,
                                      ::llvm::ArrayRef<::dovetail::layout::Interval> pieces);
  }];
}

def Dovetail_ShardingAttr : Dovetail_Attr<"Sharding", "sharding",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "How a tensor is cut over a mesh";
  let description = [{
    The encoding of a ranked tensor type: for each dimension a `DimSharding`, and the mesh axes over which the value is
    partial, with the reduction that combines the parts.

    ```mlir
    #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 300, 512, 768, 1000}, {} ]>
    #dovetail.sharding<@mesh, [{}, {"x"+"y" : (0, 3), (1, 4), (3, 4), (4, 4)} ], partial = sum ["z"]>
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh,
                        ArrayRefParameter<"::dovetail::DimShardingAttr">:$dims,
                        OptionalArrayRefParameter<"::mlir::StringAttr">:$partialAxes,
                        DefaultValuedParameter<"::dovetail::ReduceKind", "::dovetail::ReduceKind::Sum">:$partialKind);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    bool isPartial() const { return !getPartialAxes().empty(); }
    bool isSplit() const;
    /// True if every rank holds the whole value.
    bool isReplicated() const { return !isPartial() && !isSplit(); }
    static ShardingAttr getReplicated(::mlir::FlatSymbolRefAttr mesh, unsigned rank);
    ShardingAttr withDims(::llvm::ArrayRef<DimShardingAttr> dims) const;
    ShardingAttr withoutPartial() const;
  }];
}

def Dovetail_BoundedAttr : Dovetail_Attr<"Bounded", "bounded",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "Which dimensions of a tensor have an extent that is known only when a program runs";
  let description = [{
    The encoding of a ranked tensor type some of whose dimensions are bounded: the shape has a constant bound, and the
    *count* of that name says, when the program runs, how many of the coordinates [0, bound) there are. Dimensions of
    one count have one bound. What lies beyond the count is never read. Cuts are of the bound.

    `counts` has a name for each dimension, `_` or an empty one for those that are not bounded; at least one is. The
    sharding, if the tensor has one, comes after it: see `getSharding` and `withSharding`, which keep the bounds.

    The place is reserved: no operation takes such tensors yet (`verifyExtents`).

    ```mlir
    tensor<100x4xf32, #dovetail.bounded<["boxes", _]>>
    tensor<100x4xf32, #dovetail.bounded<["boxes", _], #dovetail.sharding<@mesh, [{"y" : 0, 50, 100}, {} ]>>>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$counts,
                        OptionalParameter<"::dovetail::ShardingAttr">:$sharding);
  let hasCustomAssemblyFormat = 1;
}

def Dovetail_LoopShardingsAttr : Dovetail_Attr<"LoopShardings", "loop_shardings"> {
  let summary = "How the loops of an operation are split over a mesh";
  let description = [{
    One entry for each loop of the operation's relation: the dimensions of the result, then reductions. No mesh axis
    splits two loops. A reduction is split into cuts, so that each term counts once. A parallel loop may be split into
    windows that overlap: then several ranks compute the same elements, each of which must lie in some window.

    An operation has it as the discardable attribute `dovetail.loops`, from when that is decided until it is lowered.
    Stated before, it is kept. Operands may be held by more than what these loops need; the result's type is
    split as the parallel loops are, and partial over the axes of split reductions.

    ```mlir
    %0 = dovetail.matmul %a, %b {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : (0, 5), (3, 8)}, {}, {"x" : 0, 24, 64} ]>}
        : ...
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh,
                        ArrayRefParameter<"::dovetail::DimShardingAttr">:$loops);
  let hasCustomAssemblyFormat = 1;
}

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILATTRIBUTES_TD
