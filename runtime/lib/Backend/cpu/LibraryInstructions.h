//===- LibraryInstructions.h - What oneDNN may use --------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares which instructions oneDNN uses.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYINSTRUCTIONS_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYINSTRUCTIONS_H

#include "absl/status/status.h"

#include <dnnl.hpp>

namespace dovetail::runtime {

/// Limits oneDNN to the instructions that DOVETAIL_MAX_CPU allows; does nothing if the variable is unset. It has to
/// come before all other calls of oneDNN that depend on instructions, and takes effect once. A lower limit by
/// ONEDNN_MAX_CPU_ISA or DNNL_MAX_CPU_ISA stays. Errors: INVALID_ARGUMENT, if the variable is wrong;
/// FAILED_PRECONDITION, if something else in this process used oneDNN before.
absl::Status limitLibrary();

/// The instructions that oneDNN uses in this process.
dnnl::cpu_isa libraryInstructions();

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYINSTRUCTIONS_H
