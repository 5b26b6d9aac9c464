//===- RunCommand.h - The command `run` -------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares addRunCommand.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_STEPS_RUNCOMMAND_H
#define DOVETAIL_TOOLS_STEPS_RUNCOMMAND_H

namespace CLI {
class App;
} // namespace CLI

namespace dovetail::tools {

/// Adds the command `run` to `app`, which the parser carries out when it is given. It sets `exitCode`. Results go to
/// the standard output, messages to the standard error, beginning with the name of `app`.
void addRunCommand(CLI::App &app, int &exitCode);

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_STEPS_RUNCOMMAND_H
