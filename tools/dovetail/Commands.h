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

#include "dovetail/Driver/Compilation.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

namespace dovetail {

/// Where commands print, and what they read in place of a file.
struct CommandContext {
  llvm::raw_ostream &out, &err;
  /// The contents of the model, which the command line gives no more than a name; nothing if it is a file.
  std::optional<llvm::StringRef> model = std::nullopt;
  /// Whether the standard error may show progress.
  bool showsProgress = true;

  /// The model that the command line calls `path`.
  ModelSource getModel(llvm::StringRef path) const { return {path.str(), model}; }
};

/// Each adds a command to `app` that, when it is given, is carried out by the parser and sets `exitCode`. `context`
/// must outlive `app`.
void addCalibrateCommand(CLI::App &app, int &exitCode);
void addCompileCommand(CLI::App &app, int &exitCode);
void addVerifyCommand(CLI::App &app, int &exitCode, CommandContext &context);
void addInspectCommand(CLI::App &app, int &exitCode, CommandContext &context);
void addMessagesCommand(CLI::App &app, int &exitCode, CommandContext &context);
void addOperatorsCommand(CLI::App &app, int &exitCode);
void addPlanCommand(CLI::App &app, int &exitCode, CommandContext &context);

/// Lets `app` carry out a command line, whose commands set `exitCode`; errors of the line are printed to `err`. Returns
/// the exit code.
int carryOut(CLI::App &app, int argc, char **argv, int &exitCode, llvm::raw_ostream &err);

} // namespace dovetail

#endif // DOVETAIL_TOOLS_DOVETAIL_COMMANDS_H
