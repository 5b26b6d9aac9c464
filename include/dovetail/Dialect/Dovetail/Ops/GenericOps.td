//===- GenericOps.td - Operations whose definition is data -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_GENERICOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_GENERICOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

def Dovetail_GenericOp : Op<Dovetail_Dialect, "generic", [Pure, IsolatedFromAbove,
    Dovetail_Defined<["emitBody", "emitInit", "emitCombine", "emitFinish", "emitPass", "emitFound", "emitBlock",
                      "isCheapElement", "decompose", "dividesTerms", "combineParts",
                      "getFormatPreference"]>]> {
  let summary = "An operation that is its definition: loops, reads and a body";
  let description = [{
    A computation that has no operation of its own. All that is derived from definitions is derived from this one, too:
    what ranks need, how loops are split, kernels, and constants. `docs/generic.md` explains it by examples.

    ```mlir
    %r = dovetail.generic(%x, %w) : (tensor<1x8x20x20xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x18x18xf32>
        loops [n = 1, o = 4, y = 18, x = 18, c = 8 reduction, ky = 3 tap, kx = 3 tap]
        reads [0 : (n, c, y + ky, x + kx), 1 : (o, c, ky, kx)]
        combine sum body {
      %a = dovetail.read 0 : f32
      %b = dovetail.read 1 : f32
      %p = arith.mulf %a, %b : f32
      dovetail.return %p : f32
    }
    ```

    **Loops.** The first ones are the dimensions of the results, which have one shape. The others are reductions, parts
    and whole loops, then taps. `LoopKind` in `Definition.h` says what the kinds mean.

    | text | loop |
    |---|---|
    | `y = 18` | a dimension of the results, which ranks may divide |
    | `y = 18 whole`, `c = 8 whole` | a dimension of the results, or a loop over terms, that is not divided |
    | `y = 18 scan` | the dimension along which terms accumulate |
    | `c = 8 reduction` | a loop over terms; ranks combine results as `combine` says |
    | `c = 8 reduction(max)` | the same, where the body goes through the loop itself |
    | `b = 9 reduction(owner) by 1` | a lookup: the element at read 1 says which iteration there is |
    | `t = 8 part of p at [0, 3, 8]` | terms of two parts, of which the results have one for each iteration of `p` |
    | `k = 3 tap` | a loop over a window |

    **Reads.** The number of an operand, and where it is read: see `#dovetail.access`. Taps and reductions at which a
    read has no element count nothing.

    **Elements.** The body runs for each element of the results or, with `combine`, for each term. Its values are
    scalars: those of integers have no sign, those of types of 8 bits or fewer that are only stored are i8. With
    `combine KIND` (sum, prod, max, min) there is an accumulator for each result, f32 for narrower floats if it adds or
    multiplies. Otherwise regions say what accumulators start from (`init`), how two tuples of them become one
    (`combine`), and the elements of the results (`finish`, which may be left out).

    **Passes.** `passes [max : f32, sum : f32]` go through all terms of a block one after the other. For each there is a
    region `pass`, which gives the term and knows what passes before it have found, and a region `found`, which says
    what this one has found, from the fold of its terms and their number. The region `block` makes the accumulators.

    **Scans.** `scan y` has terms accumulate along `y`, with `restarts [0, 4, 9]` in parts, `reversed`, `exclusive`, and
    from the element at another read, `start 1`.

    **Writes.** `writes (d0, u0) by 2` writes over elements of operand 0: for each iteration of the taps the body gives
    an element, and read 2 the unknown index. `combine` says what becomes of the element that is there.
  }];
  let arguments = (ins Variadic<Dovetail_Tensor>:$inputs, Dovetail_DefinitionAttr:$statement,
                       StrArrayAttr:$loop_names, OptionalAttr<Dovetail_ReduceKindAttr>:$kind);
  let results = (outs Variadic<Dovetail_Tensor>:$results);
  let regions = (region AnyRegion:$init, AnyRegion:$combine, AnyRegion:$finish, AnyRegion:$block_region, AnyRegion:$body,
                        VariadicRegion<AnyRegion>:$passes);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    // With regions that are empty. Flags that follow from other parts are set by `setFlags` when there are regions.
    OpBuilder<(ins "::mlir::TypeRange":$types, "::mlir::ValueRange":$inputs, "const ::dovetail::Definition &":$definition,
                   "::llvm::ArrayRef<::std::string>":$names, CArg<"::std::optional<::dovetail::ReduceKind>", "{}">:$kind)>
  ];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getResult(0).getType());
    }
    /// The number of the loop with this name, if there is one.
    std::optional<unsigned> findLoop(::llvm::StringRef name);
    ::llvm::SmallVector<::std::string> getNames();
    /// The regions of pass number `pass`: its term, and what it has found.
    ::mlir::Region &getPassRegion(unsigned pass) { return getPasses()[2 * pass]; }
    ::mlir::Region &getFoundRegion(unsigned pass) { return getPasses()[2 * pass + 1]; }
    /// Whether something says how elements or terms become one.
    bool hasCombiner() { return getKind() || !getCombine().empty(); }
    /// The types of accumulators; empty if there are none.
    ::llvm::SmallVector<::mlir::Type> getAccumulatorTypes();
    /// Sets what of the definition follows from the regions and the kind.
    void setFlags();
  }];
}

/// An operation of the regions of `dovetail.generic`. Its results depend on the coordinates at which the code runs.
class Dovetail_RegionOp<string mnemonic, list<Trait> traits = []>
    : Op<Dovetail_Dialect, mnemonic, [NoMemoryEffect] # traits> {
  let hasVerifier = 1;
  code declaration = [{
    ::dovetail::GenericOp getGeneric();
  }];
  code definition = [{
    ::dovetail::GenericOp $cppClass::getGeneric() { return (*this)->getParentOfType<::dovetail::GenericOp>(); }
  }];
  let extraClassDeclaration = declaration;
  let extraClassDefinition = definition;
}

/// One that concerns a read, at the coordinates at which the code runs, or at others of some loops.
class Dovetail_AtReadOp<string mnemonic, list<Trait> traits = []> : Dovetail_RegionOp<mnemonic, traits> {
  let extraClassDeclaration = declaration # [{
    ::dovetail::Access getAccess();
  }];
  let extraClassDefinition = definition # [{
    ::dovetail::Access $cppClass::getAccess() {
      return getGeneric().getStatement().getDefinition().reads[getNumber()];
    }
  }];
}

def Dovetail_ReadOp : Dovetail_AtReadOp<"read", [AttrSizedOperandSegments]> {
  let summary = "The element at a read of the surrounding `dovetail.generic`";
  let description = [{
    There must be one: where an index may leave the tensor it stands in an `scf.if` with `dovetail.inside`, unless terms
    without elements count nothing. Unknown values come in parentheses.

    ```mlir
    %a = dovetail.read 0 : f32
    %b = dovetail.read 1(%position) : f32
    %c = dovetail.read 2 at [row = %r, column = %c] : f32
    ```
  }];
  let arguments = (ins I64Attr:$number, Variadic<Index>:$unknowns, StrArrayAttr:$loops, Variadic<Index>:$coordinates);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $number (`(` $unknowns^ `)`)? `` custom<Coordinates>($loops, $coordinates) attr-dict `:` type($result)
  }];
}

def Dovetail_InsideOp : Dovetail_AtReadOp<"inside"> {
  let summary = "Whether a read has an element, or whether its index in one dimension is inside";
  let description = [{
    ```mlir
    %0 = dovetail.inside 0
    %1 = dovetail.inside 0 dim 2
    ```
  }];
  let arguments = (ins I64Attr:$number, OptionalAttr<I64Attr>:$dim, StrArrayAttr:$loops, Variadic<Index>:$coordinates);
  let results = (outs I1:$result);
  let assemblyFormat = "$number (`dim` $dim^)? `` custom<Coordinates>($loops, $coordinates) attr-dict";
}

def Dovetail_PositionOp : Dovetail_AtReadOp<"position", [AttrSizedOperandSegments]> {
  let summary = "Where a read reads: the indices of its operand";
  let description = [{
    ```mlir
    %0:2 = dovetail.position 0 : index, index
    ```
  }];
  let arguments = (ins I64Attr:$number, Variadic<Index>:$unknowns, StrArrayAttr:$loops, Variadic<Index>:$coordinates);
  let results = (outs Variadic<Index>:$indices);
  let assemblyFormat = [{
    $number (`(` $unknowns^ `)`)? `` custom<Coordinates>($loops, $coordinates) attr-dict `:` type($indices)
  }];
}

def Dovetail_IndexOp : Dovetail_RegionOp<"index"> {
  let summary = "The coordinate of a loop at which the code runs";
  let description = [{
    ```mlir
    %0 = dovetail.index y
    ```
  }];
  let arguments = (ins StrAttr:$loop);
  let results = (outs Index:$result);
  let assemblyFormat = "custom<LoopName>($loop) attr-dict";
}

def Dovetail_BoundsOp : Dovetail_RegionOp<"bounds"> {
  let summary = "The range of a loop that this rank executes";
  let description = [{
    For bodies that go through a loop themselves: `[first, end)` is all of it unless the loop is split.

    ```mlir
    %first, %end = dovetail.bounds row
    ```
  }];
  let arguments = (ins StrAttr:$loop);
  let results = (outs Index:$first, Index:$end);
  let assemblyFormat = "custom<LoopName>($loop) attr-dict";
}

def Dovetail_LookUpOp : Dovetail_RegionOp<"look_up"> {
  let summary = "The iteration of a lookup, and whether this rank has it";
  let description = [{
    Negative indices count from the end. An index that is out of range is reported, and clamped.

    ```mlir
    %is_own, %row = dovetail.look_up row
    ```
  }];
  let arguments = (ins StrAttr:$loop);
  let results = (outs I1:$isOwn, Index:$coordinate);
  let assemblyFormat = "custom<LoopName>($loop) attr-dict";
}

def Dovetail_ReturnOp : Dovetail_RegionOp<"return", [Terminator]> {
  let summary = "What a region of `dovetail.generic` gives";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_GENERICOPS_TD
