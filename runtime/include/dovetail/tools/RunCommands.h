//===- RunCommands.h - Commands on artifacts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the commands that need an artifact and the runtime only: run, inspect, bench and devices.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_RUNCOMMANDS_H
#define DOVETAIL_TOOLS_RUNCOMMANDS_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <csignal>
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace dovetail::tools {

/// The heading, in a command's help, of options that a first use does not need.
inline constexpr char expertGroup[] = "Expert options";

/// Each adds a command to `app` that, when it is given, is carried out by the parser and sets `exitCode`. Results go to
/// the standard output, messages to the standard error, beginning with the name of `app`.
void addInspectCommand(CLI::App &app, int &exitCode);
void addBenchCommand(CLI::App &app, int &exitCode);
void addDevicesCommand(CLI::App &app, int &exitCode);

/// All that there is to say about the artifact at `path`, as JSON text.
absl::StatusOr<std::string> describeArtifact(const std::string &path);

/// Sets `text` to what `inspect` prints of the artifact at `path`, for a program with such a command of its own. Memory
/// is that of ranks with so many threads each. An error of the program itself comes with the text.
absl::Status inspectArtifact(const std::string &path, bool json, int threads, std::string &text);

/// What is wrong with the arguments of `command`, without a hint where to read on.
std::string describeParseError(const CLI::ParseError &error, const CLI::App &command);
/// Which option among `arguments` of `command` has the next option in place of a value, and how it is written; empty
/// if none has. The parser would take that option for the value.
std::string describeMissingValue(const CLI::App &command, const std::vector<std::string> &arguments);
/// The same of the command line `argv` of `app`, before it is parsed, and where to read on.
std::string describeMissingValue(const CLI::App &app, int argc, char **argv);
/// Whether `argv`, which `app` has parsed, begins with a command that there is not. It may ask for help all the same.
bool namesUnknownCommand(const CLI::App &app, int argc, char **argv);
/// What is wrong with the command line `argv` of `app`, what was probably meant, and where to read on.
std::string describeUsageError(const CLI::ParseError &error, const CLI::App &app, int argc, char **argv);

/// Makes sure that what was printed on the standard output has arrived. Errors: of the file system; CANCELLED where the
/// reader of a pipe has ended, which is no reason for a message.
absl::Status flushOutput();
/// The exit code of a command whose output nobody read to the end: that of programs which SIGPIPE ends.
inline constexpr int unreadExitCode = 128 + SIGPIPE;

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_RUNCOMMANDS_H
