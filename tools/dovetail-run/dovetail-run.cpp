//===- dovetail-run.cpp - The runtime alone -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads, inspects, runs and measures compiled programs, on machines without a compiler.
//
//===----------------------------------------------------------------------===//

#include "../steps/RunCommand.h"
#include "dovetail/runtime/ExitCode.h"
#include "dovetail/runtime/HostFeatures.h"
#include "dovetail/tools/RunCommands.h"
#include "dovetail/tools/Version.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

using namespace dovetail;

static constexpr char footer[] = R"(Exit codes:
  0  ok                        6  does not fit
  2  usage                     7  incompatible or damaged artifact
  3  file                      8  device or communication
  5  unsupported               9  internal error

`dovetail-run COMMAND --help` shows the options of a command, with examples.)";

int main(int argc, char **argv) {
  if (absl::Status status = runtime::checkBaseline(); !status.ok()) {
    std::fprintf(stderr, "dovetail-run: error: %s\n", std::string(status.message()).c_str());
    return runtime::exitCodeOf(status);
  }
  CLI::App app("Run compiled programs.", "dovetail-run");
  app.footer(footer);
  app.require_subcommand(1);
  tools::addVersionFlags(app, {.commit = tools::commit()});
  int exitCode = 0;
  tools::addRunCommand(app, exitCode);
  tools::addInspectCommand(app, exitCode);
  tools::addBenchCommand(app, exitCode);
  tools::addDevicesCommand(app, exitCode);
  if (std::string message = tools::describeMissingValue(app, argc, argv); !message.empty()) {
    std::fprintf(stderr, "dovetail-run: error: %s\n", message.c_str());
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    // Help and version are no errors.
    if (dynamic_cast<const CLI::Success *>(&error) && !tools::namesUnknownCommand(app, argc, argv))
      return app.exit(error);
    std::fprintf(stderr, "dovetail-run: error: %s\n", tools::describeUsageError(error, app, argc, argv).c_str());
    return 2;
  } catch (const std::bad_alloc &) {
    std::fputs("dovetail-run: error: there is not enough memory for the tensors of this program\n", stderr);
    return 6;
  }
  if (absl::Status status = tools::flushOutput(); !status.ok() && exitCode == 0) {
    if (absl::IsCancelled(status))
      return tools::unreadExitCode;
    std::fprintf(stderr, "dovetail-run: error: %s\n", std::string(status.message()).c_str());
    return runtime::exitCodeOf(status);
  }
  return exitCode;
}
