//===- CommandLine.h - Options of commands that compile -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the command-line options that decide what a model is compiled to.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_COMMANDLINE_H
#define DOVETAIL_DRIVER_COMMANDLINE_H

#include "dovetail/Driver/Options.h"

namespace CLI {
class App;
} // namespace CLI

namespace dovetail {

/// Adds the options that decide what a model is compiled to. `arguments` must outlive the parse.
void addCompileOptions(CLI::App &command, CompileArguments &arguments);
/// Adds those of them that fix extents which the model leaves open, alone.
void addShapeOptions(CLI::App &command, CompileArguments &arguments);
/// The same options, from an array of arguments instead of a command line. Errors are usage errors.
llvm::FailureOr<CompileOptions> parseOptions(llvm::ArrayRef<std::string> arguments, Diagnostics &diagnostics);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_COMMANDLINE_H
