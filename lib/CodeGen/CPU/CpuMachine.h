//===- CpuMachine.h - The CPU that code is generated for -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how names of CPUs become LLVM targets.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_CPU_CPUMACHINE_H
#define DOVETAIL_LIB_CODEGEN_CPU_CPUMACHINE_H

#include "FloatConversions.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>
#include <vector>

namespace dovetail {

/// An LLVM target and what it demands of the host.
struct CpuMachine {
  std::unique_ptr<llvm::TargetMachine> machine;
  std::string cpu;
  std::vector<std::string> features;
  FloatInstructions floats;
};

/// The target for a name as in `CpuTarget::cpu`; an error at `location` that names it when LLVM does not know it.
llvm::FailureOr<CpuMachine> createCpuMachine(mlir::Location location, llvm::StringRef cpu);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_CPU_CPUMACHINE_H
