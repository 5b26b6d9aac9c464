//===- Compile.h - From kernels to machine code -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how the kernels of a module become a shared object for a CPU.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CODEGEN_CPU_COMPILE_H
#define DOVETAIL_CODEGEN_CPU_COMPILE_H

#include "dovetail/Artifact/ProgramCode.h"
#include "dovetail/CodeGen/Options.h"
#include "mlir/IR/BuiltinOps.h"

namespace dovetail {

/// The nested module that plan-generate-cpu-kernels creates.
inline constexpr llvm::StringLiteral cpuKernelsModule = "cpu_kernels";

/// Compiles what plan-generate-cpu-kernels left in `module` to an ELF shared object that exports one function for each
/// kernel; undefined symbols are functions of libm and libmvec, and memcpy, memmove and memset. The nested module is
/// consumed. Emits an error, at the module's location or that of a kernel, when the CPU is not known, code generation
/// fails, or generated code refers to anything else.
llvm::FailureOr<ProgramCode> compileCpuKernels(mlir::ModuleOp module, const CodeGenOptions &options);

/// What code for `cpu`, a known name, may use, as LLVM calls it.
std::vector<std::string> getCpuFeatures(llvm::StringRef cpu);

/// True, after no message, if `cpu` is a name that `compileCpuKernels` accepts.
bool isKnownCpu(llvm::StringRef cpu);

/// Those names.
std::vector<std::string> listCpus();

/// For messages about a name that is not known: `; did you mean ...`, and the option that prints all names.
std::string adviseCpu(llvm::StringRef cpu);

} // namespace dovetail

#endif // DOVETAIL_CODEGEN_CPU_COMPILE_H
