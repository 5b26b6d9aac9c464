//===- Passes.td - Passes that generate code -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CODEGEN_PASSES_TD
#define DOVETAIL_CODEGEN_PASSES_TD

include "mlir/Pass/PassBase.td"

def ShareKernels : Pass<"plan-share-kernels", "::mlir::ModuleOp"> {
  let summary = "Keep one of the kernels that are equal but for their name";
  let description = [{
    Launches of the others are redirected to the one that is kept. Locations and names of values do not count.
  }];
}

def GenerateCpuKernels : Pass<"plan-generate-cpu-kernels", "::mlir::ModuleOp"> {
  let summary = "Generate loops for every kernel, for CPUs";
  let description = [{
    For each `plan.kernel @k`, a function `@k` of the runtime's calling convention and the function `@k.body` that it
    calls, with loops in global coordinates, both in the nested module `@cpu_kernels`. Loops follow the physical order
    of the first result, except that loops which an expensive value inside does not depend on become innermost, so that
    the value is computed outside of them. Where neighbours in memory are read along another loop than the innermost,
    tiles of both are read into a buffer, in squares that are transposed in registers. Innermost loops end where the
    form of what they read changes, at borders of pads or operands of a concatenation, and others go on from there.
    Neighbours in memory that each go through terms by loops of their own, whose bounds they share, do so together.
    Sets the kernel's `parallel_loop`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

/// The fields of DeviceDescription.
class DeviceOption<string member, string argument, string description>
    : Option<member, argument, "int64_t", "DeviceDescription()." # member, description>;
defvar deviceOptions = [
  DeviceOption<"warpThreads", "warp-threads", "Threads of a warp">,
  DeviceOption<"blockThreads", "block-threads", "Threads of a block">,
  DeviceOption<"accessBytes", "access-bytes", "Bytes of the widest access to memory">,
  DeviceOption<"sharedBytes", "shared-bytes", "Bytes of a block's shared memory">,
  DeviceOption<"sharedBanks", "shared-banks", "Banks of shared memory">,
  DeviceOption<"busyBlocks", "busy-blocks", "Blocks that keep the device busy">
];

def PlaceWeights : Pass<"plan-place-weights", "::mlir::ModuleOp"> {
  let summary = "Let constants lie in memory as the products of kernels read them";
  let description = [{
    The weights of a convolution whose kernels alone read them get a format whose innermost dimension is that of the output channels, and
    whose outermost ones are the taps: threads read neighbours at a tap. A device's constants are copied when a session starts, in any format.
  }];
}

def SplitReductions : Pass<"plan-split-reductions", "::mlir::ModuleOp"> {
  let summary = "Let several blocks of threads share the elements of reductions that have few but long ones";
  let description = [{
    Replaces a kernel that yields a reduction, and whose elements would occupy few blocks, by two: one computes parts of each element
    (`plan.parts`), and the other one combines them in their order, so that results do not vary from run to run. The parts lie in a buffer of their
    own. The number of parts depends on the extents of the kernel alone.
  }];
  let options = deviceOptions;
}

def FuseEpilogues : Pass<"plan-fuse-epilogues", "::mlir::ModuleOp"> {
  let summary = "Let kernels of products do what the next kernel does to each of their elements";
  let description = [{
    Where a launch computes sums of products in tiles, or adds the parts of such sums, and the next step alone reads the result, element by
    element, both become one launch of one kernel. Sums then do not go through memory.
  }];
  let options = deviceOptions;
}

def GenerateBlockKernels : Pass<"plan-generate-block-kernels", "::mlir::ModuleOp"> {
  let summary = "Generate a function of the gpu dialect for every kernel, for devices that run blocks of threads";
  let description = [{
    For each `plan.kernel @k`, a `gpu.func @k` in the nested module `@block_kernels`. Its parameters are the tensors' pointers and then all of the
    numbers of the runtime's calling convention. The iterations of result loops are divided into tiles, which groups of threads (a thread, a warp, a
    block, or a column of a block) go through. `lib/CodeGen/GPU/Mapping/Mappings.h` says in which ways, and `ChooseMapping.cpp` which is preferred.
    Sets the kernel's `blocks`. The options describe the device.
  }];
  let options = deviceOptions;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def EmulateBlocks : Pass<"plan-emulate-blocks", "::mlir::ModuleOp"> {
  let summary = "Turn kernels for blocks of threads into host functions that run one thread each";
  let description = [{
    Moves the functions of `@block_kernels` to `@cpu_kernels`, in the calling convention of `EmulatedAbi.h`. Barriers, shuffles and checks of accesses
    become calls of the emulated device.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif // DOVETAIL_CODEGEN_PASSES_TD
