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

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

#include <string>
#include <vector>

namespace dovetail {

/// The nested module that plan-generate-cpu-kernels creates.
inline constexpr llvm::StringLiteral cpuKernelsModule = "cpu_kernels";

/// Machine code of the kernels of a module.
struct CpuCode {
  /// An ELF shared object that exports one function for each kernel. Undefined symbols are those of libm and libmvec.
  /// Empty when the module has no kernels.
  llvm::SmallVector<char> object;
  /// LLVM's name of the CPU that the code was generated for.
  std::string cpu;
  /// Features that the host must have, as LLVM names them ("avx2").
  std::vector<std::string> features;
};

/// How code is generated.
struct CpuTarget {
  /// "native", "x86-64-v2", "x86-64-v3", "x86-64-v4" or another name of a CPU that LLVM knows.
  std::string cpu = "native";
  /// If not null, receives the optimised LLVM IR as text.
  llvm::raw_ostream *dumpLLVM = nullptr;
  /// If not null, receives assembly.
  llvm::raw_ostream *dumpAssembly = nullptr;
};

/// Compiles what plan-generate-cpu-kernels left in `module`. The nested module is consumed. Emits an error, at the
/// module's location, when the CPU is not known or code generation fails.
llvm::FailureOr<CpuCode> compileCpuKernels(mlir::ModuleOp module, const CpuTarget &target);

/// True, after no message, if `cpu` is a name that `compileCpuKernels` accepts.
bool isKnownCpu(llvm::StringRef cpu);

} // namespace dovetail

#endif // DOVETAIL_CODEGEN_CPU_COMPILE_H
