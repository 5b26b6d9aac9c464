//===- CommandLine.cpp - The compiler and the runtime on the command line -*- C++ -*-===//
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

#include "../steps/RunCommand.h"
#include "Commands.h"
#include "Facts.h"
#include "dovetail/compiler.h"

#include "dovetail/CodeGen/CPU/Compile.h"
#include "dovetail/Driver/ExitCode.h"
#include "dovetail/runtime/ExitCode.h"
#include "dovetail/runtime/HostFeatures.h"
#include "dovetail/tools/RunCommands.h"
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

[[noreturn]] static void printCpus() {
  for (const std::string &name : listCpus())
    llvm::outs() << name << "\n";
  throw CLI::Success();
}

/// Reports results that did not arrive: nothing is lost silently, nor by LLVM's abort.
static absl::Status finishOutput() {
  llvm::outs().flush();
  if (std::error_code error = llvm::outs().error()) {
    llvm::outs().clear_error();
    if (error == std::errc::broken_pipe)
      return absl::CancelledError("the reader of the standard output has ended");
    return absl::PermissionDeniedError("cannot write to the standard output: " + error.message());
  }
  return tools::flushOutput();
}

int dovetail::carryOut(CLI::App &app, int argc, char **argv, int &exitCode, llvm::raw_ostream &err) {
  if (absl::Status status = runtime::checkBaseline(); !status.ok()) {
    err << "dovetail: error: " << std::string(status.message()) << "\n";
    return runtime::exitCodeOf(status);
  }
  if (std::string message = tools::describeMissingValue(app, argc, argv); !message.empty()) {
    err << "dovetail: error: " << message << "\n";
    return static_cast<int>(ExitCode::Usage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    // Help and version are no errors.
    if (dynamic_cast<const CLI::Success *>(&error) && !tools::namesUnknownCommand(app, argc, argv))
      return app.exit(error);
    err << "dovetail: error: " << tools::describeUsageError(error, app, argc, argv) << "\n";
    return static_cast<int>(ExitCode::Usage);
  } catch (const std::bad_alloc &) {
    err << "dovetail: error: there is not enough memory for the tensors of this model\n";
    return static_cast<int>(ExitCode::DoesNotFit);
  }
  return exitCode;
}

int dovetail_main(int argc, char **argv) {
  CLI::App app("Partition ONNX models over a mesh of devices, compile them and run them.", "dovetail");
  app.footer(kFooter);
  app.require_subcommand(1);
  // The program answers itself, without this library.
  tools::addVersionFlags(app, compilerFacts());
  int exitCode = static_cast<int>(ExitCode::Ok);
  CommandContext context{llvm::outs(), llvm::errs()};
  addCompileCommand(app, exitCode);
  tools::addRunCommand(app, exitCode);
  addVerifyCommand(app, exitCode, context);
  addInspectCommand(app, exitCode, context);
  addPlanCommand(app, exitCode, context);
  addOperatorsCommand(app, exitCode);
  tools::addBenchCommand(app, exitCode);
  tools::addDevicesCommand(app, exitCode);
  addCalibrateCommand(app, exitCode);
  addMessagesCommand(app, exitCode, context);
  // Names of CPUs are the code generator's, which only this library has.
  app.add_flag_callback("--list-cpus", [] { printCpus(); }, "Print the names that --cpu takes, one a line.");
  exitCode = carryOut(app, argc, argv, exitCode, llvm::errs());
  if (absl::Status status = finishOutput(); !status.ok()) {
    if (absl::IsCancelled(status))
      return exitCode ? exitCode : tools::unreadExitCode;
    llvm::errs() << "dovetail: error: " << std::string(status.message()) << "\n";
    return exitCode ? exitCode : runtime::exitCodeOf(status);
  }
  return exitCode;
}
