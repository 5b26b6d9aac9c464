//===- Version.h - What a program consists of ------------------ -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_VERSION_H
#define DOVETAIL_TOOLS_VERSION_H

#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace dovetail::tools {

/// The parts of a program beyond the runtime.
struct ProgramFacts {
  std::string commit = "";               ///< Empty for libraries, which are of a version.
  std::string llvm = "";                 ///< The version of LLVM; empty without a compiler.
  std::vector<std::string> targets = {}; ///< Of the compiler; without one, those that the runtime can run count.
};

/// Adds `--version`, and `--json` for it.
void addVersionFlags(CLI::App &app, const ProgramFacts &facts);

/// The commit that programs were built of, or "unknown". It is a part of programs alone, so that neither libraries nor
/// artifacts change with it.
const char *commit();

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_VERSION_H
