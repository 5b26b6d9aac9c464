//===- Options.h - How code is generated ------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines CodeGenOptions.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CODEGEN_OPTIONS_H
#define DOVETAIL_CODEGEN_OPTIONS_H

#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace dovetail {

/// How code is generated.
struct CodeGenOptions {
  /// "native" or a CPU's name, for targets that run on CPUs.
  std::string cpu = "native";
  /// Names of architectures, such as sm_80, in the order of the target's; empty: the target's own choice.
  std::vector<std::string> archs;
  /// If not null, receive the optimised LLVM IR, and assembly, as text.
  llvm::raw_ostream *dumpLLVM = nullptr;
  llvm::raw_ostream *dumpAssembly = nullptr;
};

} // namespace dovetail

#endif // DOVETAIL_CODEGEN_OPTIONS_H
