//===- ProgramCode.h - Code of a program's kernels --------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what code generation hands to the writer of artifacts.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_ARTIFACT_PROGRAMCODE_H
#define DOVETAIL_ARTIFACT_PROGRAMCODE_H

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/Plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dovetail {

/// Code of a program's kernels.
struct ProgramCode {
  struct Image {
    runtime::SectionKind kind; ///< Code, Ptx or Cubin.
    std::string arch;          ///< See `runtime::Section`.
    std::vector<char> bytes;
  };
  /// Each has all kernels; none when there are no kernels.
  std::vector<Image> images;
  /// For reports.
  std::vector<runtime::KernelUse> uses;
  /// The CPU that the code was generated for, and features that the host must have; empty for devices.
  std::string cpu;
  std::vector<std::string> features;
};

} // namespace dovetail

#endif // DOVETAIL_ARTIFACT_PROGRAMCODE_H
