//===- dovetail.cpp - The compiler and the runtime on the command line -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses the command line and carries out the command.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "llvm/Support/raw_ostream.h"

using namespace dovetail;

static constexpr char kFooter[] = R"(Exit codes:
  0  ok                        5  unsupported
  1  outputs differ            6  does not fit
  2  usage                     7  incompatible or damaged artifact
  3  file                      8  device or communication
  4  invalid model             9  internal error

`dovetail COMMAND --help` shows the options of a command, with examples.)";

/// The command that was being parsed, as the user would type it.
static std::string getCommandName(const CLI::App &app) {
  std::string name = "dovetail";
  for (const CLI::App *command : app.get_subcommands())
    name += " " + command->get_name();
  return name;
}

int main(int argc, char **argv) {
  CLI::App app("Partitions ONNX models over a mesh of devices, compiles them and runs them.", "dovetail");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", "dovetail " DOVETAIL_VERSION);
  int exitCode = static_cast<int>(ExitCode::Ok);
  addCompileCommand(app, exitCode);
  addVerifyCommand(app, exitCode);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    // Help and version.
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    llvm::errs() << "dovetail: error: " << error.what() << "; see `" << getCommandName(app) << " --help`\n";
    return static_cast<int>(ExitCode::Usage);
  }
  return exitCode;
}
