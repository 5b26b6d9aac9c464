//===- Passes.td - Passes that lower the graph -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CONVERSION_PASSES_TD
#define DOVETAIL_CONVERSION_PASSES_TD

include "dovetail/Library/PassOptions.td"

def WidenCalls : Pass<"dovetail-widen-calls", "::mlir::func::FuncOp"> {
  let summary = "Compute in a wider type what libraries do not have in the type of the values";
  let description = [{
    An operation that a library has in a wider type only, such as a convolution of f16 that oneDNN has in f32, reads its
    operands through `dovetail.cast`, and its result is cast back: values between operations keep their type. What the
    library can apply to the call's result before it stores it is computed in the wider type, too, so that there is one
    rounding instead of several. A partial sum stays wide until it is complete.

    ```mlir
    %0 = dovetail.conv %x, %w {...} : (tensor<1x4x8x8xf16>, tensor<8x4x3x3xf16>) -> tensor<1x8x8x8xf16>
    %1 = dovetail.relu %0 : (tensor<1x8x8x8xf16>) -> tensor<1x8x8x8xf16>
    ```

    becomes

    ```mlir
    %0 = dovetail.cast %x {to = f32} : (tensor<1x4x8x8xf16>) -> tensor<1x4x8x8xf32>
    %1 = dovetail.cast %w {to = f32} : (tensor<8x4x3x3xf16>) -> tensor<8x4x3x3xf32>
    %2 = dovetail.conv %0, %1 {...} : (tensor<1x4x8x8xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x8x8xf32>
    %3 = dovetail.relu %2 : (tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
    %4 = dovetail.cast %3 {to = f16} : (tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf16>
    ```
  }];
  let options = LibraryOptions<>.options;
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def ExpandRows : Pass<"dovetail-expand-rows", "::mlir::func::FuncOp"> {
  let summary = "Take folds of whole rows apart";
  let description = [{
    Code for CPUs keeps a value that it needs twice in the memory of the result, a row at a time. A fold that combines
    several values at once, such as `sum_exp`, is for parts of rows; where each rank has all of a row of the last
    dimensions, which a cache holds, simpler folds are faster if they share such a value with those who read them
    (`expandRows`).

    ```mlir
    %m, %s = dovetail.sum_exp %x {axes = [1]} : (tensor<64x128xf32>) -> (tensor<64x1xf32>, tensor<64x1xf32>)
    %0 = dovetail.sub %x, %m
    %1 = dovetail.exp %0
    %2 = dovetail.reciprocal %s
    %3 = dovetail.mul %1, %2
    ```

    becomes

    ```mlir
    %m = dovetail.reduce %x {axes = [1], kind = max}
    %0 = dovetail.sub %x, %m
    %1 = dovetail.exp %0
    %s = dovetail.reduce %1 {axes = [1], kind = sum}
    %2 = dovetail.reciprocal %s
    %3 = dovetail.mul %1, %2
    ```
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def MergeHeads : Pass<"dovetail-merge-heads", "::mlir::func::FuncOp"> {
  let summary = "Let attention read and write heads that follow each other in columns";
  let description = [{
    Where a transpose and a reshape merge the heads of a result, a library's attention writes it merged, and reads
    queries, keys and values before what moved their heads apart, slices of one tensor among them: heads are a step in
    memory. What ranks compute stays the same. Where a rank has no more than what was moved, all stays as it is.

    ```mlir
    %0 = dovetail.reshape %x : (tensor<1x128x512xf32>) -> tensor<1x128x8x64xf32>
    %q = dovetail.transpose %0 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x128x8x64xf32>) -> tensor<1x8x128x64xf32>
    ...
    %1 = dovetail.attention %q, %k, %v {...} : ... -> tensor<1x8x128x64xf32>
    %2 = dovetail.transpose %1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x8x128x64xf32>) -> tensor<1x128x8x64xf32>
    %3 = dovetail.reshape %2 : (tensor<1x128x8x64xf32>) -> tensor<1x128x512xf32>
    ```

    becomes

    ```mlir
    %3 = dovetail.attention %x, %y, %z {heads = array<i64: 8, 8, 64, 64>, offsets = array<i64: 0, 0, 0>, ...}
        : ... -> tensor<1x128x512xf32>
    ```
  }];
  let options = LibraryOptions<>.options;
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def ChooseFormats : Pass<"dovetail-choose-formats", "::mlir::func::FuncOp"> {
  let summary = "Choose the memory format of each value";
  let description = [{
    What an operation, or the library that does it, prefers a format for has that one: channels last around convolutions,
    row-major around products. For all other values, arguments among them, formats are chosen together, so that what
    they cost those who write and read them is least: a copy where a library does not take what it reads as it lies, reads
    with gaps where a kernel that goes through its result in the order of memory does not find its operands in that
    order, a step more where an epilogue does not lie as its call's result does, and the change of order where users give
    or get values. Each value may be row-major, channels last, by columns (with the last two dimensions swapped), or as
    the nearest operation that prefers a format has it, carried from operand to result; of what costs the same it is
    the latter. So a transpose that makes what a product reads only says in which order that lies. Sets `plan.formats` of
    each operation, one for each result, and `plan.format` of each argument.

    ```mlir
    %0 = dovetail.conv %x, %w {...} : ...
    ```

    becomes

    ```mlir
    %0 = dovetail.conv %x, %w {plan.formats = [#plan.format<[0, 2, 3, 1]>], ...} : ...
    ```

    and, with the transpose copying rows of 64 instead of single elements,

    ```mlir
    %1 = dovetail.transpose %0 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x128x8x64xf32>) -> tensor<1x8x64x128xf32>
    %2 = dovetail.matmul %q, %1 : ...
    ```

    becomes

    ```mlir
    %1 = dovetail.transpose %0 {plan.formats = [#plan.format<[0, 1, 3, 2]>], ...} : ...
    %2 = dovetail.matmul %q, %1 {plan.formats = [#plan.format<[0, 1, 2, 3]>]} : ...
    ```
  }];
  let options = LibraryOptions<>.options;
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def KeepPacked : Pass<"dovetail-keep-packed", "::mlir::func::FuncOp"> {
  let summary = "Keep weights in memory as they are stored";
  let description = [{
    A factor of a product that is computed of constants alone, and takes several times their memory, such as weights of
    4 bits that are dequantised, is computed in each run (`plan.each_run`), not in the prologue: ranks keep the
    constants. Each product has its own copy of what computes it, right before, so that memory for the factor is needed
    there alone. If the product has few rows, it becomes a kernel (`plan.generated`), which computes the factor where it
    reads it; else the factor is computed as a whole, and what a library then does takes longer than that.

    What the factor is, types and definitions say: how much larger it is than constants, and how many results an element
    has a part in, its rows. What is stored in fewer than 8 bits for each of its elements is never in the prologue. More
    stays there if neither a kernel reads it nor rows are many, and for convolutions, whose libraries want weights in an
    order of their own.

    ```mlir
    %0 = dovetail.unpack %c {dim = 0 : i64} : (tensor<2048x4096xui8>) -> tensor<4096x4096xi4>
    %1 = dovetail.cast ...
    %2 = dovetail.matmul %x, %1 : ...
    ```

    becomes

    ```mlir
    %0 = dovetail.unpack %c {dim = 0 : i64, plan.each_run} : (tensor<2048x4096xui8>) -> tensor<4096x4096xi4>
    %1 = dovetail.cast ... {plan.each_run}
    %2 = dovetail.matmul %x, %1 {plan.generated} : ...
    ```
  }];
  let options = [Option<"kernelRows", "kernel-rows", "int64_t", "1024",
                        "Products of at most so many rows become kernels if columns of the factor are neighbours">];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def FormCalls : Pass<"dovetail-form-calls", "::mlir::func::FuncOp"> {
  let summary = "Form library calls with their epilogues";
  let description = [{
    Each operation that a library does on its operands as they are becomes a `plan.group` of that library, together with
    the elementwise operations behind it that the library can apply to the result before it stores it. What these read
    besides lies in memory as the result does, or is a vector.

    ```mlir
    %0 = dovetail.matmul %a, %b : ...
    %1 = dovetail.relu %0 : ...
    ```

    becomes

    ```mlir
    %1 = plan.group(%c = %a, %d = %b) by "onednn" : ... {
      %2 = dovetail.matmul %c, %d : ...
      %3 = dovetail.relu %2 : ...
      plan.yield %3 : ...
    }
    ```
  }];
  let options = LibraryOptions<>.options;
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def FuseKernels : Pass<"dovetail-fuse-kernels", "::mlir::func::FuncOp"> {
  let summary = "Group operations that become one kernel";
  let description = [{
    Goes from the last operation that is in no group backward, and makes each one the root of a `plan.group`. A producer
    joins when all its users are in the group and recomputing it is cheaper than storing it, and reductions of rows
    join when they are constant along the innermost dimensions of the result in memory, and all between them and the
    result keeps each row where it is. What costs more than to be computed twice, such as a resize, joins what reads
    each of its elements once, in the order of memory: concatenations and elementwise operations. What only says where
    the elements of its operand are, such as a reshape or a slice, is part of all kernels that read it, instead of being
    stored for them, if nobody else does and it reads what follows each other in memory.

    ```mlir
    %0 = dovetail.mul %a, %b : ...
    %1 = dovetail.exp %0 : ...
    ```

    becomes

    ```mlir
    %1 = plan.group(%c = %a, %d = %b) : ... {
      %2 = dovetail.mul %c, %d : ...
      %3 = dovetail.exp %2 : ...
      plan.yield %3 : ...
    }
    ```
  }];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def ConvertFormats : Pass<"dovetail-convert-formats", "::mlir::func::FuncOp"> {
  let summary = "Copy what library calls read in another format";
  let description = [{
    Where an operand of a library call does not lie in a format that the library takes, the call reads a
    `plan.convert_format` of it. Calls share copies.
  }];
  let options = LibraryOptions<>.options;
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def FormLoops : Pass<"dovetail-form-loops", "::mlir::func::FuncOp"> {
  let summary = "Put the operations of each loop one after the other";
  let description = [{
    The operations of a loop are those that depend on what it carries (`dovetail.iter_arg`), but for what leaves it
    (`dovetail.loop_result`). They come between a `plan.begin_loop`, which has the condition, and a `plan.end_loop`, by which
    what is carried becomes what `dovetail.yield` gives; what does not depend on the loop comes before it. Of a loop in a
    loop, all that it carries belongs to the outer one, where it begins anew in each iteration.
  }];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def FormChoices : Pass<"dovetail-form-choices", "::mlir::func::FuncOp"> {
  let summary = "Find what need not be computed";
  let description = [{
    What only one side of a choice (`dovetail.if`) depends on comes between a `plan.begin_choice`, which says when it is
    needed, and a `plan.end_choice`, if there is something that costs more than to choose. Else both sides are part of
    the kernel that chooses.

    On devices, to decide costs the time in which they do much work: with `least-work`, one side must be so much. The
    work of an operation is the elements of its operands and results, and a sixteenth of the iterations of its loops, of
    all ranks.
  }];
  let options = [Option<"leastWork", "least-work", "int64_t", /*default=*/"0",
                        "Work that is worth a decision; 0: all that is not part of the kernel that chooses">];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def FormPrologue : Pass<"dovetail-form-prologue", "::mlir::func::FuncOp"> {
  let summary = "Find what runs once, when a session starts";
  let description = [{
    Sets `plan.prologue` of what depends on constants alone, but for gathers: a constant of which ranks store pieces, a
    reshard of it, is brought together by a reshard of that before each use.
  }];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def PlaceGathers : Pass<"dovetail-place-gathers", "::mlir::func::FuncOp"> {
  let summary = "Decide when constants that ranks store in pieces are brought together";
  let description = [{
    Gives each step that reads such a constant a gather of its own, right before it, so that what is gathered takes memory
    for that time only; steps that follow each other share one. With `ahead`, where exchanges go on beside steps, a gather
    begins before the last step that reads weights: one layer ahead, so that there are those of two layers at most.

    ```mlir
    %1 = dovetail.reshard %0 : tensor<8x8xf32> -> tensor<8x8xf32, #pieces>
    %2 = dovetail.reshard %1 : tensor<8x8xf32, #pieces> -> tensor<8x8xf32, #whole>
    ```

    moves to where `%2` is read.
  }];
  let options = [Option<"ahead", "ahead", "bool", "false", "Whether gathers begin a layer ahead">];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def ShareStorage : Pass<"dovetail-share-storage", "::mlir::ModuleOp"> {
  let summary = "Decide which values share memory";
  let description = [{
    Adds a `plan.storage` for each buffer, with the values that lie in it and what each rank holds. A value and its
    halo-extended reshard share one; a reshard that gives a part of its operand is a `plan.view` in the operand's memory,
    which needs no step. Of a constant, a rank holds no more than its users need.

    The result of a kernel lies in the memory of an operand of its type and format that no step reads later and no other
    rank reads, where accesses say that this is possible: what is written over (scatter), or read at no other element
    than the one that is written, as by elementwise operations, or elsewhere in a row of which it gives values of the
    whole row, as by a softmax or norm. It is not what the user gives, an exchange brings or the prologue makes. So does
    the result of a call, where its library can do that (`Library::writesOver`), over what the user gives, too.

    ```mlir
    %1 = dovetail.reshard %0 : tensor<8xf32, #own> -> tensor<8xf32, #halo>
    ```

    gets

    ```mlir
    plan.storage arena tensor<8xf32, #halo> <[0]> of %0, %1 : tensor<8xf32, #own>, tensor<8xf32, #halo>
    ```
  }];
  let options = [
    Option<"kernelsInPlace", "kernels-in-place", "bool", "true",
           "Whether kernels may write over what they read: a thread computes a row as a whole">
  ] # LibraryOptions<>.options;
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def DovetailToPlan : Pass<"dovetail-to-plan", "::mlir::ModuleOp"> {
  let summary = "Emit buffers, kernels, library calls and exchanges";
  let description = [{
    Emits what the graph says: a buffer for each `plan.storage`, a kernel and its launch or a library call for each
    `plan.group`, an exchange for each reshard that is no `plan.view`, and a `plan.reorder` for each
    `plan.convert_format`; into the prologue where they have `plan.prologue`. Nothing is decided here.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "Target of the program">,
    Option<"memory", "memory", "::dovetail::plan::ProgramMemory", "::dovetail::plan::ProgramMemory::Host",
           "Where the program has its memory",
           [{::llvm::cl::values(clEnumValN(::dovetail::plan::ProgramMemory::Host, "host", "Ranks are threads"),
                                clEnumValN(::dovetail::plan::ProgramMemory::Device, "device", "Ranks are devices"))}]>,
    Option<"math", "math", "::dovetail::plan::MathMode", "::dovetail::plan::MathMode::F32",
           "What library calls may do with the factors of products of f32",
           [{::llvm::cl::values(
             clEnumValN(::dovetail::plan::MathMode::F32, "f32", "Nothing"),
             clEnumValN(::dovetail::plan::MathMode::TF32, "tf32", "Round them to 10 bits of mantissa"),
             clEnumValN(::dovetail::plan::MathMode::BF16, "bf16", "Round them to bfloat16"),
             clEnumValN(::dovetail::plan::MathMode::F32Strict, "f32-strict", "Nothing, nor compute sums of them"))}]>
  ];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

#endif // DOVETAIL_CONVERSION_PASSES_TD
