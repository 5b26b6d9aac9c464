//===- CommandLine.cpp - Options of commands that compile -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the command-line options that decide what a model is compiled to.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/CommandLine.h"

#include "dovetail/tools/RunCommands.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/StringExtras.h"

#include <CLI/CLI.hpp>

using namespace dovetail;
using tools::addRepeatable;

void dovetail::addShapeOptions(CLI::App &command, CompileArguments &arguments) {
  addRepeatable(command, "--dim", arguments.dims,
                "Extent of an open dimension, or of a symbol in expressions such as '4*N'. There is no default.")
      ->type_name("N=1");
  addRepeatable(command, "--bound", arguments.bounds,
                "Largest extent of a dimension that varies from run to run; N may be INPUT:DIM. There is no default.")
      ->type_name("N=512");
  addRepeatable(command, "--shape", arguments.shapes, "Shape of an input. Default: as in the model.")
      ->type_name("NAME=1,3,736,1280");
}

/// Options that only tests need: a group without a name is not part of the help.
static void addTestOptions(CLI::App &command, CompileArguments &arguments) {
  command.add_option("--shardings-seed", arguments.shardingsSeed, "Decide at random how everything is split")
      ->group("")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command.add_option("--spare-call-memory", arguments.spareCallMemory, "Bytes that library calls may take besides")
      ->group("")
      ->check(CLI::NonNegativeNumber)
      ->type_name("BYTES");
  command.add_flag("--generalize", arguments.generalizes, "Make all operations carry their definitions")->group("");
  command.add_option("--follow-inputs", arguments.following, "Instead of a search, follow how inputs are split")
      ->group("")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Following>{{"inputs", Following::Inputs}, {"evenly", Following::Evenly}}))
      ->type_name("inputs|evenly");
}

/// Options that a first use does not need.
static void addExpertOptions(CLI::App &command, CompileArguments &arguments) {
  const std::string group = tools::expertGroup;
  command
      .add_option("--search-seconds", arguments.searchSeconds,
                  "Time limit for the sharding search in seconds, counted in steps, so that all machines decide "
                  "alike. Default: 10.")
      ->group(group)
      ->type_name("N");
  command
      .add_option("--follow", arguments.follow,
                  "Percent of predicted time that must be saved to depart from --shard and --sizes. Default: 10.")
      ->group(group)
      ->type_name("PERCENT");
  command
      .add_option("--halos", arguments.halos,
                  "Compute halos instead of exchanging them: where --objective gains, never, or wherever possible. "
                  "Default: gain.")
      ->group(group)
      ->type_name("gain|never|always");
  command
      .add_option(
          "--split-launches", arguments.splitLaunches,
          "Compute what needs no halo during the exchange: where predicted faster, never, or wherever possible. "
          "Default: gain.")
      ->group(group)
      ->type_name("gain|never|always");
  command
      .add_option("--math", arguments.math,
                  "Rounding of f32 factors in library calls: f32, f32-strict (cpu), tf32 or bf16 (cuda). Default: f32.")
      ->group(group)
      ->type_name("MODE");
  command
      .add_flag("--no-libraries", arguments.noLibraries,
                "Generate code for every operation instead of calling libraries.")
      ->group(group);
  command
      .add_flag("--no-index-checks", arguments.noIndexChecks,
                "Clamp indices that are out of range instead of ending the run with an error.")
      ->group(group);
  command
      .add_flag("--no-source-names", arguments.noSourceNames,
                "Leave module names and source lines out of artifacts and reports.")
      ->group(group);
  command
      .add_option("--prepack", arguments.prepack,
                  "Store weights as library calls on this machine read them, with THREADS threads a rank. Default: "
                  "pack at start.")
      ->group(group)
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("THREADS");
  command
      .add_option("--autotune", arguments.autotune,
                  "Choose convolution algorithms by measuring on this machine, with THREADS threads a rank. Default: "
                  "by estimate.")
      ->group(group)
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("THREADS");
}

void dovetail::addCompileOptions(CLI::App &command, CompileArguments &arguments) {
  command
      .add_option(
          "--mesh", arguments.mesh,
          "Axes of the mesh with their sizes, or auto=N: the compiler makes axes of N ranks. Default: one rank.")
      ->type_name("y=4,x=2|auto=8");
  addRepeatable(command, "--shard", arguments.shards,
                "Mesh axes that split each dimension of a tensor, or '_' for none. Default: the compiler chooses.")
      ->type_name("NAME=_,_,y,x+z");
  addRepeatable(command, "--sizes", arguments.sizes,
                "Extents of a dimension's shards, 'balanced' or 'chunk'. Default: the compiler chooses.")
      ->type_name("NAME:DIM=300,212");
  addRepeatable(command, "--feedback", arguments.feedback,
                "Output that is an input of the next step of `run --steps N`. Default: none.")
      ->type_name("OUT:IN");
  command
      .add_option("--objective", arguments.objective,
                  "Quantity to minimise: predicted time, bytes that ranks send, or memory of each rank. Default: time.")
      ->type_name("time|bytes|memory");
  command
      .add_option("--cluster", arguments.cluster,
                  "Devices and links that predictions are for: a file, or " +
                      llvm::join(Cluster::getBuiltInNames(), ", ") + ". Default: fits the target.")
      ->type_name("FILE|NAME");
  command
      .add_option("--memory", arguments.memory,
                  "Memory limit of each rank with its unit. Default: as in --cluster, or no limit.")
      ->type_name("80GiB");
  addShapeOptions(command, arguments);
  command.add_option("--target", arguments.target, "What to compile for: " + listTargets() + ". Default: cpu.")
      ->type_name("NAME");
  command
      .add_option("--cpu", arguments.cpu,
                  "CPU to generate code for: native, x86-64-v2, x86-64-v3, x86-64-v4 or another of `dovetail "
                  "--list-cpus`. Default: native.")
      ->type_name("NAME");
  command.add_option("--arch", arguments.arch, "CUDA architectures to generate code for. Default: sm_80,sm_90,sm_100.")
      ->type_name("sm_80,sm_90");
  addExpertOptions(command, arguments);
  addTestOptions(command, arguments);
}

llvm::FailureOr<CompileOptions> dovetail::parseOptions(llvm::ArrayRef<std::string> arguments,
                                                       Diagnostics &diagnostics) {
  CLI::App app;
  app.set_help_flag();
  CompileArguments texts;
  addCompileOptions(app, texts);
  if (std::string message = tools::describeMissingValue(app, arguments.vec()); !message.empty())
    return diagnostics.error(ExitCode::Usage, message);
  // The parser takes them from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError &error) {
    return diagnostics.error(ExitCode::Usage, tools::describeParseError(error, app));
  }
  return parseOptions(texts, diagnostics);
}
