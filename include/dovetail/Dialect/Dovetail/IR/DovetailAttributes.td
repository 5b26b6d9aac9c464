//===- DovetailAttributes.td - Sharding and other attributes -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILATTRIBUTES_TD
#define DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILATTRIBUTES_TD

include "dovetail/Dialect/Dovetail/Definition/Enums.td"
include "dovetail/Dialect/Dovetail/IR/DovetailDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

class Dovetail_EnumAttr<EnumAttrInfo info, string mnemonic>
    : EnumAttr<Dovetail_Dialect, info, mnemonic> {
  let assemblyFormat = "`<` $value `>`";
}

def Dovetail_ReduceKindAttr : Dovetail_EnumAttr<Dovetail_ReduceKind, "reduce_kind">;

def Dovetail_PoolKindAttr : Dovetail_EnumAttr<Dovetail_PoolKind, "pool_kind">;

def Dovetail_PadModeAttr : Dovetail_EnumAttr<Dovetail_PadMode, "pad_mode">;

def Dovetail_ResizeModeAttr : Dovetail_EnumAttr<Dovetail_ResizeMode, "resize_mode">;

def Dovetail_CoordinateModeAttr : Dovetail_EnumAttr<Dovetail_CoordinateMode, "coordinate_mode">;

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

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

def Dovetail_AccessAttr : Dovetail_Attr<"Access", "access"> {
  let summary = "Where an operation or a library call reads a tensor, as a function of its loops";
  let description = [{
    For each dimension of the tensor an index. It is `layout::AccessDim`, and can say all that definitions of operations
    can. Loops are `d0`, `d1`, ...; `dovetail.generic` writes their names.

    | text | index |
    |---|---|
    | `2*d2 + d5 - 1` | a sum of multiples of loops, of terms below, and of a constant |
    | `floor((d1) / 2)` | the quotient, rounded down |
    | `((d1) mod 2)` | the remainder of that |
    | `u0` | the unknown value number 0: it is known when the operation runs |
    | `u0(d1 -> 0 to 3, 5)` | the same, which is in 0 ... 3 where `d1` is 0, and 5 where it is 1: a table |

    An index that leaves the tensor has no element, unless the dimension says more:

    | text | element |
    |---|---|
    | `exact((d2 + 1) / 2)` | there is one where the division leaves no remainder, and none elsewhere |
    | `edge(d0 - 1, 0 to 4)` | outside of [0, 4) the nearest one inside |
    | `reflect(d0 - 1, 0 to 4)` | the mirror image at the first or last one, which is not repeated |
    | `wrap(d0 - 1, 0 to 4)` | the interval is repeated |

    ```mlir
    #dovetail.access<(d0, d4, 2*d2 + d5 - 1, d3 + d6 - 1)>
    #dovetail.access<(d0, 4*floor((d1) / 2) + d4, exact((d2 - d5 + 1) / 2))>
    #dovetail.access<(d0, edge(d1 + d2 - 1, 0 to 8), u0(d3 -> 0 to 3, 4 to 9))>
    ```
  }];
  let parameters = (ins AttrParameter<"::dovetail::AccessDims", "an index for each dimension",
                                      "const ::dovetail::AccessDims &">:$dims);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dovetail_DefinitionAttr : Dovetail_Attr<"Definition", "definition"> {
  let summary = "The loops of an operation and its accesses";
  let description = [{
    It is `dovetail::Definition`, which `dovetail.generic` has as an attribute: see there for what the parts mean. The
    operation prints it with names of loops, and without what follows from its other parts.

    ```mlir
    #dovetail.definition<rank 2 loops [4, 6, 3 tap] reads [0 : (d0, d1 + d2 - 1), 1 : (d2)] fold product>
    ```
  }];
  let parameters = (ins AttrParameter<"::dovetail::Definition", "the loops and accesses",
                                      "const ::dovetail::Definition &">:$definition);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILATTRIBUTES_TD
