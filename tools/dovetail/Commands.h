//===- Commands.h - The commands of dovetail -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the commands of the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_DOVETAIL_COMMANDS_H
#define DOVETAIL_TOOLS_DOVETAIL_COMMANDS_H

#include <CLI/CLI.hpp>

namespace dovetail {

/// Each adds a command to `app` that, when it is given, is carried out by the parser and sets `exitCode`.
void addCalibrateCommand(CLI::App &app, int &exitCode);
void addCompileCommand(CLI::App &app, int &exitCode);
void addVerifyCommand(CLI::App &app, int &exitCode);
void addInspectCommand(CLI::App &app, int &exitCode);
void addOperatorsCommand(CLI::App &app, int &exitCode);
void addPlanCommand(CLI::App &app, int &exitCode);

} // namespace dovetail

#endif // DOVETAIL_TOOLS_DOVETAIL_COMMANDS_H
