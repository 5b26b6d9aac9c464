//===- Commands.h - The commands of dovetail -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the commands and what they share.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_DOVETAIL_COMMANDS_H
#define DOVETAIL_TOOLS_DOVETAIL_COMMANDS_H

#include "dovetail/Driver/Options.h"

#include <CLI/CLI.hpp>

namespace dovetail {

/// Each adds a command to `app` that, when it is given, is carried out by the parser and sets `exitCode`.
void addCompileCommand(CLI::App &app, int &exitCode);
void addVerifyCommand(CLI::App &app, int &exitCode);

/// Adds the options that decide what a model is compiled to. `arguments` must outlive the parse.
void addCompileOptions(CLI::App &command, CompileArguments &arguments);
/// Adds an option that may be given several times, with one value each time.
CLI::Option *addRepeatable(CLI::App &command, const std::string &name, std::vector<std::string> &values,
                           const std::string &description);

} // namespace dovetail

#endif // DOVETAIL_TOOLS_DOVETAIL_COMMANDS_H
