//===- PlanOps.td - Operations of the plan dialect -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PLANOPS_TD
#define DOVETAIL_DIALECT_PLAN_IR_PLANOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailAttributes.td"
include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.td"
include "dovetail/Dialect/Plan/IR/PlanAttributes.td"
include "dovetail/Dialect/Plan/IR/PlanGraphOps.td"
include "dovetail/Dialect/Plan/IR/PlanInterfaces.td"
include "dovetail/Dialect/Plan/IR/PlanOpBase.td"
include "dovetail/Dialect/Plan/IR/PlanTypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Plan_LayoutArrayAttr : TypedArrayAttrBase<Plan_LayoutAttr, "layouts">;
def Plan_LoopArrayAttr : TypedArrayAttrBase<Plan_LoopAttr, "loops">;
def Plan_OrderArrayAttr : TypedArrayAttrBase<DenseI64ArrayAttr, "orders of dimensions">;
def Plan_AccessAttr : ConfinedAttr<Dovetail_AccessAttr, [AttrConstraint<
    CPred<"::dovetail::plan::isCallAccess(::llvm::cast<::dovetail::AccessAttr>($_self))">,
    "of loops alone, without borders">]>;
def Plan_AccessArrayAttr : TypedArrayAttrBase<Plan_AccessAttr, "accesses of loops alone, without borders">;
def Plan_PostOpArrayAttr : TypedArrayAttrBase<Plan_PostOpAttr, "post-operations">;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Plan_KernelOp : Plan_Op<"kernel", [IsolatedFromAbove, Symbol, SingleBlock]> {
  let summary = "A fused subgraph for which one kernel is generated";
  let description = [{
    The body holds operations of the dovetail dialect on *global* shapes, without shardings, so that kernels that do the
    same are equal. All values yielded have the same shape. The kernel's loops are the dimensions of that shape,
    followed by the reduction loops of the body's operations in program order. Layouts say how the arguments and the
    results lie in memory.

    `static_loops` are loops that no launch splits: they run over [0, extent), known at compile time. Code generation
    sets `parallel_loop`, the loop whose range is divided among threads of a CPU, or `blocks`, the shape of launches
    on a device. With `in_place` the result lies in the memory of the argument of that number. Either the kernel reads
    nothing of it, as what it does not write over stays, or it reads all that depends on an element before it writes
    over it (`getInPlaceReads`). Operations with `dovetail.check_indices` report indices that are out of range. `counts`
    has, for each dimension of the results, the argument, a count, where its loop ends, or -1: nobody reads what lies
    behind. What a target cannot end there goes on to the end of its range.

    ```mlir
    plan.kernel @add(%a: tensor<1x8x10x10xf32>, %b: tensor<8x1x1xf32>)
        layouts [<[0, 2, 3, 1], [1, 8, ?, 10]>, <[0, 1, 2], [8, 1, 1]>]
        -> [<[0, 2, 3, 1], [1, 8, ?, 10]>] attributes {static_loops = array<i64: 0, 1, 3>} {
      %0 = dovetail.add %a, %b : (tensor<1x8x10x10xf32>, tensor<8x1x1xf32>) -> tensor<1x8x10x10xf32>
      plan.yield %0 : tensor<1x8x10x10xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_LayoutArrayAttr:$layouts, Plan_LayoutArrayAttr:$result_layouts,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$static_loops, OptionalAttr<I64Attr>:$parallel_loop,
                       OptionalAttr<Plan_BlocksAttr>:$blocks, OptionalAttr<I64Attr>:$in_place,
                       OptionalAttr<DenseI64ArrayAttr>:$counts);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
    ::mlir::Block::BlockArgListType getArguments() { return getBlock()->getArguments(); }
    YieldOp getYield();
    /// The shape of the values yielded.
    ::llvm::ArrayRef<int64_t> getShape();
    /// All loops: the dimensions of the results, then reductions; and their extents.
    ::llvm::SmallVector<Loop> getLoops();
    ::llvm::SmallVector<int64_t> getLoopExtents();
    /// The number of the first reduction loop of an operation of the body; its others follow.
    unsigned getFirstReductionLoop(::mlir::Operation *op);
    LayoutAttr getLayout(unsigned argument) { return ::llvm::cast<LayoutAttr>(getLayouts()[argument]); }
    LayoutAttr getResultLayout(unsigned result) { return ::llvm::cast<LayoutAttr>(getResultLayouts()[result]); }
    /// What the operations that are to check their indices check, in program order.
    ::llvm::SmallVector<IndexCheck> getIndexChecks();
  }];
}

def Plan_YieldOp : Plan_Op<"yield", [Terminator, Pure, ParentOneOf<["KernelOp", "GroupOp"]>]> {
  let summary = "Ends a kernel or a group with the values that it writes";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "attr-dict $values `:` type($values)";
}

def Plan_PartsOp : Plan_Op<"parts", [Pure, DeclareOpInterfaceMethods<DefinitionOpInterface, ["emitBody"]>]> {
  let summary = "The parts of a reduction, in a kernel";
  let description = [{
    What is reduced is divided into as many parts as the result has in dimension `dim`, in which the reduction has extent
    1. Combined in their order, the parts of an element are the element. Floats narrower than f32 have parts of f32.

    ```mlir
    %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<4x9000xf16>) -> tensor<4x1xf16>
    %1 = plan.parts %0 {dim = 1 : i64} : tensor<4x1xf16> -> tensor<4x16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$reduction, I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$reduction attr-dict `:` type($reduction) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getCount() { return getResult().getType().getDimSize(getDim()); }
    /// The type of `count` parts in dimension `dim` of a reduction's result.
    static ::mlir::RankedTensorType getTypeOfParts(::mlir::RankedTensorType reduction, int64_t dim, int64_t count);
  }];
}

//===----------------------------------------------------------------------===//
// Generated code
//===----------------------------------------------------------------------===//

def Plan_Pointer : Type<CPred<"::llvm::isa<::mlir::LLVM::LLVMPointerType>($_self)">, "pointer">;

def Plan_LoadOp : Plan_Op<"load", [NoMemoryEffect]> {
  let summary = "Reads an element, in generated code";
  let description = [{
    The element `offset` elements after `base`. What a kernel reads is never written while it runs, or, with `in_place`,
    after it has been read for the last time, so loads may be merged. They may not move out of a loop, which may have an empty range where a rank holds nothing to read. Booleans
    (i1) occupy a byte. `alignment` is what is known of the address, in bytes, beyond the element's size.
  }];
  let arguments = (ins Plan_Pointer:$base, Index:$offset, OptionalAttr<I64Attr>:$alignment);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$base `[` $offset `]` attr-dict `:` type($base) `->` type($result)";
}

def Plan_ReadBackOp : Plan_Op<"read_back", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads an element that the kernel wrote before, in generated code";
  let arguments = (ins Plan_Pointer:$base, Index:$offset);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$base `[` $offset `]` attr-dict `:` type($base) `->` type($result)";
}

def Plan_StoreOp : Plan_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes an element, in generated code";
  let arguments = (ins AnyType:$value, Plan_Pointer:$base, Index:$offset, OptionalAttr<I64Attr>:$alignment);
  let assemblyFormat = "$value `,` $base `[` $offset `]` attr-dict `:` type($value) `,` type($base)";
}

def Plan_CheckIndexOp : Plan_Op<"check_index", [MemoryEffects<[MemWrite]>]> {
  let summary = "Reports an index that is out of range, in generated code";
  let description = [{
    Where `is_wrong` holds, writes `given` to element `number` of `records`, which are of i64: 0 is never out of range,
    and stands for no report. Whoever writes last stays. A kernel that does it once more than needed does no harm.
  }];
  let arguments = (ins I1:$is_wrong, Index:$given, Plan_Pointer:$records, I64Attr:$number);
  let assemblyFormat = "$is_wrong `,` $given `,` $records `[` $number `]` attr-dict `:` type($records)";
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

def Plan_ProgramOp : Plan_Op<"program", [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Everything that a rank executes, for all ranks at once";
  let description = [{
    Buffers, values, inputs and outputs, then steps in the order in which they run. At most one `plan.prologue`, before
    the steps. `on` says where it has its memory: on the `host`, where constants are read as they are mapped and ranks are
    threads, or on a `device`, to which all is copied and which has streams of steps. `math` says what library calls may do with the factors of products of f32: nothing (`f32`), or round them
    (`tf32`, `bf16`).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$mesh, StrAttr:$target,
                       DefaultValuedAttr<Plan_ProgramMemoryAttr, "ProgramMemory::Host">:$memory,
                       DefaultValuedAttr<Plan_MathModeAttr, "MathMode::F32">:$math,
                       DefaultValuedAttr<StrAttr, "\"\"">:$model);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `mesh` $mesh `target` $target (`on` $memory^)? (`math` $math^)? (`model` $model^)? attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
  }];
  let hasRegionVerifier = 1;
}

def Plan_BufferOp : Plan_Op<"buffer", [HasParent<"ProgramOp">]> {
  let summary = "Memory of each rank";
  let description = [{
    The sharding of `tensor_type` is the box that each rank holds (a hull when several values share the buffer). Arena
    buffers share one allocation by liveness; persistent ones are written by the prologue and then kept; constant ones
    are parts of the weights.

    ```mlir
    %a = plan.buffer arena tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 6), (4, 10)}, {} ]>>
        #plan.format<[0, 2, 3, 1]>
    %w = plan.buffer constant tensor<8x1x1xf32> #plan.format<[0, 1, 2]> = dense<1.0> : tensor<8x1x1xf32>
    ```
  }];
  let arguments = (ins Plan_BufferKindAttr:$kind, TypeAttrOf<AnyRankedTensor>:$tensor_type, Plan_FormatAttr:$format,
                       OptionalAttr<ElementsAttr>:$value);
  let results = (outs Plan_BufferType:$buffer);
  let assemblyFormat = "$kind $tensor_type $format (`=` $value^)? attr-dict";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "BufferKind":$kind, "::mlir::RankedTensorType":$type, "FormatAttr":$format,
                                 CArg<"::mlir::ElementsAttr", "{}">:$value)>];
}

def Plan_ViewOp : Plan_Op<"view", [HasParent<"ProgramOp">, Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A logical value: the part of a buffer that holds it";
  let description = [{
    What each rank holds of the value is contained in what it holds of the buffer.
  }];
  let arguments = (ins Plan_BufferType:$buffer, OptionalAttr<StrAttr>:$name);
  let results = (outs Plan_RefType:$ref);
  let assemblyFormat = "$buffer ($name^)? attr-dict `:` type($ref)";
  let extraClassDeclaration = [{
    BufferOp getBufferOp() { return getBuffer().getDefiningOp<BufferOp>(); }
    ::mlir::RankedTensorType getTensorType() { return getRef().getType().getTensor(); }
  }];
  let hasVerifier = 1;
}

class Plan_PortOp<string mnemonic> : Plan_Op<mnemonic, [HasParent<"ProgramOp">]> {
  let arguments = (ins StrAttr:$name, Plan_RefType:$ref);
  let assemblyFormat = "$name $ref attr-dict `:` type($ref)";
}
def Plan_InputOp : Plan_PortOp<"input"> {
  let summary = "A value that the user gives";
  let hasVerifier = 1;
}
def Plan_OutputOp : Plan_PortOp<"output"> {
  let summary = "A value that the user gets";
}

def Plan_PrologueOp : Plan_Op<"prologue", [HasParent<"ProgramOp">, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "Steps that run once, when a session starts";
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
  }];
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// `step_name`, if present, is what traces and messages call the step.
class Plan_StepOp<string mnemonic, list<Trait> traits = [], list<string> overridden = []> : Plan_Op<mnemonic, [
    ParentOneOf<["ProgramOp", "PrologueOp"]>, DeclareOpInterfaceMethods<StepOpInterface, overridden>] # traits>;

def Plan_LaunchOp : Plan_StepOp<"launch",
    [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a kernel";
  let description = [{
    `loops` are those of the kernel, with how each is split. `checks` has, for each index that the kernel checks, the
    node that reads it, as in messages.

    ```mlir
    plan.launch @add(%a, %b) -> (%c) loops [1, 8, 10 by <{"y" : 0, 5, 10}>, 10]
        : (!plan.ref<...>, !plan.ref<...>) -> (!plan.ref<...>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Plan_RefType>:$reads, Variadic<Plan_RefType>:$writes,
                       Plan_LoopArrayAttr:$loops, OptionalAttr<StrAttr>:$step_name,
                       OptionalAttr<StrArrayAttr>:$checks);
  let assemblyFormat = [{
    $kernel `(` $reads `)` `->` `(` $writes `)` `loops` custom<Loops>($loops) attr-dict
    `:` custom<Types>(type($reads)) `->` custom<Types>(type($writes))
  }];
  let hasVerifier = 1;
}

/// A library call. `loops` are the dimensions of the output, then those that are summed over, then taps of windows, with
/// how each is split: the library computes these ranges, whatever ranks hold. `reads` says where in these loops each
/// operand is read, and is all that is said about windows and groups; the accesses are those of the operation that the
/// call is for. Post-operations that read a tensor take `post_tensors` in order. `memory` bounds what the library takes,
/// if its description says that. `division` says how the threads of a rank divide the call, if they do.
class Plan_CallOp<string mnemonic>
    : Plan_StepOp<mnemonic, [DeclareOpInterfaceMethods<CallOpInterface>], ["takesScratch"]> {
  let hasVerifier = 1;
}

def Plan_ConvolutionOp : Plan_CallOp<"convolution"> {
  let summary = "Convolution, or its gradient, by a library";
  let description = [{
    As `Convolution` in the schema: `input` [N, C, spatial...], `weights` [O, C/groups, window...] or, when transposed,
    [C, O/groups, window...]. Behind the output's dimensions come the loop over the input channels of a group, and a tap
    for each spatial dimension. `algorithm` says how it is computed: `winograd`, F(4 x 4, 3 x 3), is for windows of
    3 x 3 with stride 1, of one group, in f32, on CPUs; `gathered`, as products over rows that are gathered from windows,
    is for all in f32 on CPUs.

    ```mlir
    plan.convolution %x, %w -> %y loops [1, 8, 10 by <{"y" : 0, 5, 10}>, 10, 4, 3, 3]
        reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] post(%bias : !plan.ref<tensor<8x1x1xf32>>)
        {post_ops = [#plan.post_op<add_tensor>, #plan.post_op<relu>]} : !x, !w -> !y
    ```
  }];
  let arguments = (ins Plan_RefType:$input, Plan_RefType:$weights, Plan_RefType:$output,
                       Variadic<Plan_RefType>:$post_tensors, Plan_LoopArrayAttr:$loops, Plan_AccessArrayAttr:$reads,
                       DefaultValuedAttr<Plan_PostOpArrayAttr, "{}">:$post_ops, OptionalAttr<StrAttr>:$step_name,
                       OptionalAttr<Plan_CallMemoryAttr>:$memory,
                       DefaultValuedAttr<Plan_ConvolutionAlgorithmAttr,
                                         "ConvolutionAlgorithm::Library">:$algorithm,
                       OptionalAttr<Plan_DivisionAttr>:$division);
  let assemblyFormat = [{
    $input `,` $weights `->` $output `loops` custom<Loops>($loops) `reads` custom<Accesses>($reads)
    (`post` `(` $post_tensors^ `:` type($post_tensors) `)`)? attr-dict
    `:` type($input) `,` type($weights) `->` type($output)
  }];
  let extraClassDeclaration = [{
    /// What the accesses are; nothing if they are not those of a convolution.
    std::optional<::dovetail::calls::ConvolutionForm> getForm();
  }];
}

def Plan_MatMulOp : Plan_CallOp<"matmul"> {
  let summary = "Matrix product of the last two dimensions by a library; the others are a batch and broadcast";
  let description = [{
    As `MatMul` in the schema. Behind the output's dimensions comes the loop that is summed over. The last `row_dims`
    dimensions of the output before the columns are the rows of one product: `b` does not depend on those that belong to
    the batch, and on every rank the rows of `a` and of the output follow each other in memory.

    ```mlir
    plan.matmul %a, %b -> %c loops [197, 1, 384, 192] reads [(d0, d1, d3), (d3, d2)] {row_dims = 2 : i64}
        : !plan.ref<tensor<197x1x192xf32>>, !plan.ref<tensor<192x384xf32>> -> !plan.ref<tensor<197x1x384xf32>>
    ```
  }];
  let arguments = (ins Plan_RefType:$a, Plan_RefType:$b, Plan_RefType:$output, Variadic<Plan_RefType>:$post_tensors,
                       Plan_LoopArrayAttr:$loops, Plan_AccessArrayAttr:$reads,
                       DefaultValuedAttr<I64Attr, "1">:$row_dims,
                       DefaultValuedAttr<Plan_PostOpArrayAttr, "{}">:$post_ops, OptionalAttr<StrAttr>:$step_name,
                       OptionalAttr<Plan_CallMemoryAttr>:$memory, OptionalAttr<Plan_DivisionAttr>:$division);
  let assemblyFormat = [{
    $a `,` $b `->` $output `loops` custom<Loops>($loops) `reads` custom<Accesses>($reads)
    (`post` `(` $post_tensors^ `:` type($post_tensors) `)`)? attr-dict
    `:` type($a) `,` type($b) `->` type($output)
  }];
  let extraClassDeclaration = [{
    /// What the accesses are; nothing if they are not those of a product.
    std::optional<::dovetail::calls::ProductForm> getForm();
    /// The role of each loop.
    ::dovetail::calls::ContractionRoles getRoles();
  }];
}

def Plan_PoolOp : Plan_CallOp<"pool"> {
  let summary = "Maximum or average over windows by a library";
  let description = [{
    Behind the output's dimensions comes a tap for each spatial dimension.

    ```mlir
    plan.pool <max> %x -> %y loops [1, 8, 5, 5, 2, 2] reads [(d0, d1, 2*d2 + d4, 2*d3 + d5)] : !x -> !y
    ```
  }];
  let arguments = (ins Plan_RefType:$input, Plan_RefType:$output, Plan_LoopArrayAttr:$loops,
                       Plan_AccessArrayAttr:$reads, Dovetail_PoolKindAttr:$kind, OptionalAttr<StrAttr>:$step_name,
                       OptionalAttr<Plan_CallMemoryAttr>:$memory, OptionalAttr<Plan_DivisionAttr>:$division);
  let assemblyFormat = [{
    $kind $input `->` $output `loops` custom<Loops>($loops) `reads` custom<Accesses>($reads) attr-dict
    `:` type($input) `->` type($output)
  }];
  let extraClassDeclaration = [{
    /// What the access is; nothing if it is not that of windows.
    std::optional<::dovetail::calls::PoolForm> getForm();
  }];
}

def Plan_AttentionOp : Plan_CallOp<"attention"> {
  let summary = "Attention by a library, which stores no scores";
  let description = [{
    As `Attention` in the schema, and as `dovetail.attention`. Behind the output's dimensions come the keys and the depth
    of products, both whole but for keys of parts. A `mask` of i1 takes `fill` for what it leaves out; one of floats is added. With `parts` the
    result is what `dovetail.attention` with `restarts` gives: its first dimension is that of parts, of which a rank has
    one at most, and keys are split as they are, into those of each part.

    ```mlir
    plan.attention %q, %k, %v mask %m : !m -> %y loops [8, 512 by <{"y" : 0, 300, 512}>, 64, 512, 64]
        reads [(d0, d1, d4), (d0, d3, d4), (d0, d3, d2), (d1, d3)] {scale = 0.125 : f32} : !q, !k, !v -> !y
    ```
  }];
  let arguments = (ins Plan_RefType:$query, Plan_RefType:$key, Plan_RefType:$value, Optional<Plan_RefType>:$mask,
                       Plan_RefType:$output, Plan_LoopArrayAttr:$loops, Plan_AccessArrayAttr:$reads, F32Attr:$scale,
                       DefaultValuedAttr<F32Attr, "-std::numeric_limits<float>::infinity()">:$fill,
                       UnitAttr:$parts, OptionalAttr<StrAttr>:$step_name,
                       OptionalAttr<Plan_CallMemoryAttr>:$memory, OptionalAttr<Plan_DivisionAttr>:$division);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^ `:` type($mask))? `->` $output `loops` custom<Loops>($loops)
    `reads` custom<Accesses>($reads) attr-dict `:` type($query) `,` type($key) `,` type($value) `->` type($output)
  }];
  let extraClassDeclaration = [{
    /// Whether its accesses are those of attention.
    bool hasForm();
  }];
}

def Plan_TransformOp : Plan_CallOp<"transform"> {
  let summary = "Fourier transform by a library";
  let description = [{
    As `Transform` in the schema, and as `dovetail.dft` where that is `unscaled`. Behind the output's dimensions come the
    points of a line and their parts. None of these is split, nor are those of the output.

    ```mlir
    plan.transform %x -> %y loops [4 by <{"y" : 0, 1, 4}>, 33, 2, 64, 1] reads [(d0, d3, d4)]
        : !plan.ref<tensor<4x64x1xf32>> -> !plan.ref<tensor<4x33x2xf32>>
    ```
  }];
  let arguments = (ins Plan_RefType:$input, Plan_RefType:$output, Plan_LoopArrayAttr:$loops,
                       Plan_AccessArrayAttr:$reads, UnitAttr:$inverse, OptionalAttr<StrAttr>:$step_name,
                       OptionalAttr<Plan_CallMemoryAttr>:$memory, OptionalAttr<Plan_DivisionAttr>:$division);
  let assemblyFormat = [{
    (`inverse` $inverse^)? $input `->` $output `loops` custom<Loops>($loops) `reads` custom<Accesses>($reads) attr-dict
    `:` type($input) `->` type($output)
  }];
  let extraClassDeclaration = [{
    /// What the access is; nothing if it is not that of a transform.
    std::optional<::dovetail::calls::TransformForm> getForm();
  }];
}

def Plan_ReorderOp : Plan_StepOp<"reorder"> {
  let summary = "Copies a value to another buffer, maybe of another memory format";
  let arguments = (ins Plan_RefType:$source, Plan_RefType:$target, OptionalAttr<StrAttr>:$step_name);
  let assemblyFormat = "$source `->` $target attr-dict `:` type($source) `->` type($target)";
  let hasVerifier = 1;
}

def Plan_ExchangeOp : Plan_StepOp<"exchange", [AttrSizedOperandSegments]> {
  let summary = "Gives every rank its boxes of `targets` from what the ranks hold of `sources`";
  let description = [{
    Each source with its target is a move, and all moves are carried out together. Where a source is partial over axes
    that its target is not, contributions are combined. The two may share a buffer: elements already in place are not
    touched. Otherwise no target lies in a buffer of another tensor of the exchange.

    `kind` says how ranks carry it out: by messages between any two of them, each with what one rank has for the other in
    all moves, or, of a single move, by one collective of each group of ranks. A `packed_gather` is one collective for
    all moves, which have the same groups: each rank packs its parts into one block, and unpacks those of all. `orders`
    are those of dimensions in messages, outermost first, one for each move; without them, all are in order. Both are
    chosen by `plan-choose-exchanges`.

    It may still be under way when later steps run: `plan.wait` waits for `event`.

    ```mlir
    %0 = plan.exchange %own -> %all by all_gather in [0, 2, 3, 1] {step_name = "join"} : !own -> !all
    %1 = plan.exchange %value, %index -> %values, %indices in [0, 1], [1, 0] : !value, !index -> !values, !indices
    ```
  }];
  let arguments = (ins Variadic<Plan_RefType>:$sources, Variadic<Plan_RefType>:$targets,
                       DefaultValuedAttr<Plan_ExchangeKindAttr, "ExchangeKind::Messages">:$kind,
                       OptionalAttr<Plan_OrderArrayAttr>:$orders, OptionalAttr<StrAttr>:$step_name);
  let results = (outs Plan_EventType:$event);
  let assemblyFormat = [{
    $sources `->` $targets (`by` $kind^)? (`in` custom<Orders>($orders)^)? attr-dict
    `:` type($sources) `->` type($targets)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$source, "::mlir::Value":$target, "::mlir::StringAttr":$step_name)>];
  let extraClassDeclaration = [{
    size_t getNumMoves() { return getSources().size(); }
    /// The order of dimensions in messages of a move.
    ::llvm::SmallVector<int64_t> getOrder(size_t move);
    /// Whether a move adds to what ranks have of its source, which stays where it is, as it is: messages or packed parts
    /// within one buffer, which combine nothing.
    bool keepsSource(size_t move);
    /// Sets the order of dimensions for all moves.
    void setOrders(::llvm::ArrayRef<::llvm::SmallVector<int64_t>> orders);
  }];
}

def Plan_WaitOp : Plan_StepOp<"wait", [AttrSizedOperandSegments]> {
  let summary = "Lets later steps come after exchanges";
  let description = [{
    Steps after it find the exchanges of `complete` done on their rank: targets hold what the rank receives, and it
    reads the sources no more. Of those of `read` other ranks have read what they need, too: sources may be written
    over. These are complete before, or at the same time. Placed by `plan-place-waits`.

    ```mlir
    plan.wait complete(%0, %1) read(%0)
    ```
  }];
  let arguments = (ins Variadic<Plan_EventType>:$complete, Variadic<Plan_EventType>:$read,
                       OptionalAttr<StrAttr>:$step_name);
  let assemblyFormat = "(`complete` `(` $complete^ `)`)? (`read` `(` $read^ `)`)? attr-dict";
  let hasVerifier = 1;
}

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANOPS_TD
