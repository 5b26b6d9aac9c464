//===- PlanAttributes.td - Memory formats, loops and post-operations -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PLANATTRIBUTES_TD
#define DOVETAIL_DIALECT_PLAN_IR_PLANATTRIBUTES_TD

include "dovetail/Dialect/Plan/IR/PlanDialect.td"
include "dovetail/Dialect/Plan/IR/PlanEnums.td"
include "mlir/IR/AttrTypeBase.td"

class Plan_Attr<string name, string attrMnemonic> : AttrDef<Plan_Dialect, name> {
  let mnemonic = attrMnemonic;
}

class Plan_EnumAttr<EnumAttrInfo info, string mnemonic> : EnumAttr<Plan_Dialect, info, mnemonic> {
  let assemblyFormat = "$value";
}

def Plan_BufferKindAttr : Plan_EnumAttr<Plan_BufferKind, "buffer_kind">;
def Plan_ExchangeKindAttr : Plan_EnumAttr<Plan_ExchangeKind, "exchange_kind">;
def Plan_ConvolutionAlgorithmAttr : Plan_EnumAttr<Plan_ConvolutionAlgorithm, "convolution_algorithm">;
def Plan_ProgramMemoryAttr : Plan_EnumAttr<Plan_ProgramMemory, "program_memory">;
def Plan_MathModeAttr : Plan_EnumAttr<Plan_MathMode, "math_mode">;

def Plan_FormatAttr : Plan_Attr<"Format", "format"> {
  let summary = "How a tensor lies in memory";
  let description = [{
    The order of the dimensions in memory, outermost first. `layout::MemoryFormat`, its twin, has the strides that
    follow from it.

    Strides are not padded: no library that is called asks for it, and generated code reads vectors where extents are
    multiples of them.

    ```mlir
    #plan.format<[0, 2, 3, 1]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$order);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    unsigned getRank() const { return getOrder().size(); }
    /// Dimensions in order.
    static FormatAttr getRowMajor(::mlir::MLIRContext *context, unsigned rank);
    /// [N, C, spatial...] with the channels innermost.
    static FormatAttr getChannelsLast(::mlir::MLIRContext *context, unsigned rank);
    ::dovetail::layout::MemoryFormat toLayout() const;
  }];
}

def Plan_LayoutAttr : Plan_Attr<"Layout", "layout"> {
  let summary = "What a kernel knows of the memory of a tensor";
  let description = [{
    The format, and for each dimension the extent of the *buffer* that holds the tensor: -1, printed as `?`, where it
    differs between ranks. Strides follow: constants where the extents inside are known, and run-time numbers otherwise.

    ```mlir
    #plan.layout<[0, 2, 3, 1], [1, 8, ?, 64]>
    ```
  }];
  let parameters = (ins "FormatAttr":$format, ArrayRefParameter<"int64_t">:$extents);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t dynamic = -1;
    unsigned getRank() const { return getFormat().getRank(); }
    ::llvm::ArrayRef<int64_t> getOrder() const { return getFormat().getOrder(); }
    /// The elements from one coordinate of a dimension to the next, or `dynamic`.
    int64_t getStride(unsigned dim) const;
    /// The dimension in which elements of `type`, whose memory this is, are neighbours; negative if they are in none.
    int getInnermost(::mlir::Type type) const;
    /// The layout of tensors in a buffer of `format` and of the box in `buffer`, the buffer's type.
    static LayoutAttr getFor(FormatAttr format, ::mlir::RankedTensorType buffer);
  }];
}

def Plan_EndAttr : Plan_Attr<"End", "end"> {
  let summary = "Where a loop ends in a run whose extents vary";
  let description = [{
    `<[f0, f1, ...], added, divisor, least, step, beyond>`: at (f0 * length 0 + f1 * length 1 + ... + added) / divisor,
    rounded down, at `least` or behind it, then rounded up to a multiple of `step`, and `beyond` iterations later. The
    lengths are those of the program, in order.

    ```mlir
    #plan.end<[1, 0], 1, 2, 0, 64, 1>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$factors, "int64_t":$added, "int64_t":$divisor, "int64_t":$least,
                        "int64_t":$step, "int64_t":$beyond);
  let assemblyFormat = "`<` `[` $factors `]` `,` $added `,` $divisor `,` $least `,` $step `,` $beyond `>`";
  let genVerifyDecl = 1;
}

def Plan_LoopAttr : Plan_Attr<"Loop", "loop"> {
  let summary = "A loop of a kernel over [0, extent) in global coordinates, and how it is split over the mesh";
  let description = [{
    With `end` a run goes through the iterations before it alone: nobody reads what the others make.
  }];
  let parameters = (ins "int64_t":$extent, "::dovetail::DimShardingAttr":$dim,
                        OptionalParameter<"::dovetail::plan::EndAttr">:$end);
  let assemblyFormat = "`<` $extent `,` $dim (`,` $end^)? `>`";
  let builders = [AttrBuilder<(ins "int64_t":$extent), [{
    return $_get($_ctxt, extent, ::dovetail::DimShardingAttr::getUnsplit($_ctxt), ::dovetail::plan::EndAttr());
  }]>, AttrBuilder<(ins "int64_t":$extent, "::dovetail::DimShardingAttr":$dim), [{
    return $_get($_ctxt, extent, dim, ::dovetail::plan::EndAttr());
  }]>];
  let extraClassDeclaration = [{
    bool isSplit() const { return getDim().isSplit(); }
    /// The same, split in another way, or with another end.
    LoopAttr withDim(::dovetail::DimShardingAttr dim) const { return get(getContext(), getExtent(), dim, getEnd()); }
    LoopAttr withEnd(EndAttr end) const { return get(getContext(), getExtent(), getDim(), end); }
  }];
}

def Plan_BlocksAttr : Plan_Attr<"Blocks", "blocks"> {
  let summary = "How a kernel runs on a device of thread blocks";
  let description = [{
    The iterations of `loops` are divided into tiles of `steps` iterations each; a block of `threads` threads computes `tiles` of them at a
    time, and goes on with others until all are done, so that any number of blocks will do. A block has `shared` bytes of shared memory.

    ```mlir
    #plan.blocks<threads = 256, loops = [0, 2, 1], steps = [1, 1, 4], tiles = 256, shared = 0>
    ```
  }];
  let parameters = (ins "int64_t":$threads, ArrayRefParameter<"int64_t">:$loops, ArrayRefParameter<"int64_t">:$steps,
                        "int64_t":$tiles, "int64_t":$shared);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Plan_CallMemoryAttr : Plan_Attr<"CallMemory", "call_memory"> {
  let summary = "How much memory a library call takes at most, besides its operands";
  let description = [{
    Bytes for each rank, or one number for all of them where these are the same: of weights in the library's own form,
    which are kept while a session lives; of what the call needs while it runs; of what it needs for each thread that does
    a part of it; and of more packed weights for each such thread but one. Copies of operands that do not lie as the library
    wants them come on top.

    ```mlir
    #plan.call_memory<packed = [4096, 0], scratch = [65536], thread_scratch = [8192], thread_packed = [0]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$packed, ArrayRefParameter<"int64_t">:$scratch,
                        ArrayRefParameter<"int64_t">:$threadScratch, ArrayRefParameter<"int64_t">:$threadPacked);
  let assemblyFormat = [{
    `<` `packed` `=` `[` $packed `]` `,` `scratch` `=` `[` $scratch `]` `,`
        `thread_scratch` `=` `[` $threadScratch `]` `,` `thread_packed` `=` `[` $threadPacked `]` `>`
  }];
  let genVerifyDecl = 1;
}

def Plan_DivisionAttr : Plan_Attr<"Division", "division"> {
  let summary = "How the threads of a rank divide a library call";
  let description = [{
    As parts of its loops: a rank with n iterations of `loop`, a dimension of the output, and t threads has
    min(t, n / grain) parts, which are as equal as they can be and begin at multiples of `step` iterations after the
    rank's first. One thread does what makes less than two. 1 <= step <= grain.

    ```mlir
    #plan.division<loop = 2, step = 1, grain = 14>
    ```
  }];
  let parameters = (ins "int64_t":$loop, "int64_t":$step, "int64_t":$grain);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_PostOpAttr : Plan_Attr<"PostOp", "post_op"> {
  let summary = "What a library call applies to its result";
  let description = [{
    `add_tensor` and `mul_tensor` take the call's post-operation tensors in order; the others use `alpha` and `beta` as
    ONNX defines them (clip: minimum and maximum).

    ```mlir
    #plan.post_op<relu>
    #plan.post_op<clip, alpha = 0.0, beta = 6.0>
    ```
  }];
  let parameters = (ins EnumParameter<Dovetail_PostOpKind>:$kind, OptionalParameter<"::mlir::FloatAttr">:$alpha,
                        OptionalParameter<"::mlir::FloatAttr">:$beta);
  let assemblyFormat = "`<` $kind (`,` `alpha` `=` $alpha^)? (`,` `beta` `=` $beta^)? `>`";
  let builders = [
    AttrBuilder<(ins "::dovetail::PostOpKind":$kind), [{
      return $_get($_ctxt, kind, ::mlir::FloatAttr(), ::mlir::FloatAttr());
    }]>,
    AttrBuilder<(ins "::dovetail::PostOpKind":$kind, "float":$alpha, "float":$beta)>
  ];
  let extraClassDeclaration = [{
    /// Whether it reads one of the call's post-operation tensors.
    bool readsTensor() const { return getKind() == PostOpKind::AddTensor || getKind() == PostOpKind::MulTensor; }
    /// The parameters; 0 when absent.
    float getAlphaValue() const;
    float getBetaValue() const;
  }];
}

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANATTRIBUTES_TD
