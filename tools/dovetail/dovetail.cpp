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

#include "dovetail/Driver/ExitCode.h"
#include "dovetail/tools/RunCommands.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

#include <new>

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

/// What is wrong with the command line, in more words than the parser's where it says little.
static std::string describe(const CLI::ParseError &error, const CLI::App &app, llvm::ArrayRef<char *> arguments) {
  if (!app.get_subcommands().empty() || arguments.size() < 2 || arguments[1][0] == '-')
    return error.what();
  std::string names;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    names += (names.empty() ? "" : ", ") + command->get_name();
  return "there is no command '" + std::string(arguments[1]) + "'; the commands are " + names;
}

int main(int argc, char **argv) {
  tools::makeLibraryThreadsSleep(argv);
  CLI::App app("Partitions ONNX models over a mesh of devices, compiles them and runs them.", "dovetail");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", "dovetail " DOVETAIL_VERSION);
  int exitCode = static_cast<int>(ExitCode::Ok);
  addCompileCommand(app, exitCode);
  tools::addRunCommand(app, exitCode);
  addVerifyCommand(app, exitCode);
  addInspectCommand(app, exitCode);
  tools::addBenchCommand(app, exitCode);
  tools::addDevicesCommand(app, exitCode);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    // Help and version.
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    llvm::errs() << "dovetail: error: " << describe(error, app, {argv, size_t(argc)}) << "; see `"
                 << getCommandName(app) << " --help`\n";
    return static_cast<int>(ExitCode::Usage);
  } catch (const std::bad_alloc &) {
    llvm::errs() << "dovetail: error: there is not enough memory for the tensors of this model\n";
    return static_cast<int>(ExitCode::DoesNotFit);
  }
  return exitCode;
}
