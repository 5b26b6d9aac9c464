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
                "Extent of a named dimension of the model, or of a symbol in expressions such as '4*N'")
      ->type_name("N=1");
  addRepeatable(
      command, "--bound", arguments.bounds,
      "Largest extent of a named dimension of the model, or of a dimension of an input (NAME:DIM), that varies "
      "from run to run")
      ->type_name("N=512");
  addRepeatable(command, "--shape", arguments.shapes, "Shape of an input of the model")->type_name("NAME=1,3,736,1280");
}

void dovetail::addCompileOptions(CLI::App &command, CompileArguments &arguments) {
  command
      .add_option("--mesh", arguments.mesh,
                  "Axes of the mesh with their sizes, in order; or so many ranks, of which the compiler makes axes")
      ->type_name("y=4,x=2|auto=8");
  addRepeatable(
      command, "--shard", arguments.shards,
      "Splits an input, output or other tensor that is computed: for each dimension '_' or the mesh axes that split it")
      ->type_name("NAME=_,_,y,x+z");
  addRepeatable(command, "--sizes", arguments.sizes,
                "Extents of the shards of a dimension, 'balanced' or 'chunk'; chosen by the compiler if not given")
      ->type_name("NAME:DIM=300,212");
  addRepeatable(command, "--feedback", arguments.feedback,
                "An output that is an input of the next run, of the same type and shape: `run --steps N` then runs the "
                "program again and again, while ranks keep their parts; several are fed back at once")
      ->type_name("OUT:IN");
  command
      .add_option(
          "--objective", arguments.objective,
          "What is to be least of all ways to split what --shard leaves open: time, as predicted (if not given); bytes "
          "that ranks send while work is divided evenly; or memory of each rank")
      ->type_name("time|bytes|memory");
  command
      .add_option("--search-seconds", arguments.searchSeconds,
                  "How long to search for that, about, 10 if not given; counted in steps, so that all machines decide "
                  "alike. If it does not suffice, a warning says how far from the best the result may be")
      ->type_name("N");
  command
      .add_option("--follow", arguments.follow,
                  "Percent of the predicted time that not following --shard and --sizes must save (default 10, for "
                  "--objective time)")
      ->type_name("PERCENT");
  command
      .add_option("--cluster", arguments.cluster,
                  "What ranks are and how they reach each other, for predictions of time: a file that `dovetail "
                  "calibrate` or you wrote, or one of " +
                      llvm::join(Cluster::getBuiltInNames(), ", ") + "; by default what fits the target")
      ->type_name("FILE|NAME");
  command
      .add_option("--halos", arguments.halos,
                  "Whether ranks compute halos of what layers read in place of exchanging them, so that several layers "
                  "need one wider exchange: where --objective says that there is something to gain (if not given), "
                  "never, or wherever they can")
      ->type_name("gain|never|always");
  // For tests: a group without a name is not part of the help.
  command.add_option("--shardings-seed", arguments.shardingsSeed, "Decide at random how everything is split")
      ->group("")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command.add_option("--spare-call-memory", arguments.spareCallMemory, "Bytes that library calls may take besides")
      ->group("")
      ->check(CLI::NonNegativeNumber)
      ->type_name("BYTES");
  command.add_option("--follow-inputs", arguments.following, "Instead of a search, follow how inputs are split")
      ->group("")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Following>{{"inputs", Following::Inputs}, {"evenly", Following::Evenly}}))
      ->type_name("inputs|evenly");
  command
      .add_option("--memory", arguments.memory,
                  "What each rank may take at most, for weights, values and all else; by default what --cluster says")
      ->type_name("80GiB");
  addShapeOptions(command, arguments);
  command.add_option("--target", arguments.target, "What to compile for: " + listTargets())->type_name("NAME");
  command
      .add_option("--cpu", arguments.cpu,
                  "CPU to generate code for: native, x86-64-v2, x86-64-v3, x86-64-v4 or a name such as skylake-avx512 "
                  "or znver4; a name that is not known gets a list of those that are")
      ->type_name("NAME");
  command
      .add_option("--arch", arguments.arch, "CUDA architectures to generate code for; sm_80,sm_90,sm_100 if not given")
      ->type_name("sm_80,sm_90");
  command
      .add_option("--math", arguments.math,
                  "What library calls may round the factors of products of f32 to: f32 (nothing, the default), or on "
                  "target cuda tf32 or bf16; on target cpu f32-strict leaves out Winograd's algorithm, too")
      ->type_name("MODE");
  command.add_flag("--no-libraries", arguments.noLibraries,
                   "Generate code for every operation instead of library calls");
  command.add_flag(
      "--channel-blocks", arguments.channelBlocks,
      "Keep values around convolutions and pools in blocks of channels, 16 on CPUs with AVX-512 and else 8");
  command.add_flag(
      "--no-index-checks", arguments.noIndexChecks,
      "Clamp indices that are out of range (of scatters: leave out what they name) instead of ending with an error");
  command.add_flag("--no-source-names", arguments.noSourceNames,
                   "Leave the names of modules and the lines of their code out of artifacts and reports");
  command
      .add_option("--prepack", arguments.prepack,
                  "Put weights into the artifact as library calls on this machine want them, on ranks of so many "
                  "threads, so that programs start faster; elsewhere they are packed again")
      ->check(CLI::Range(1, 4096))
      ->type_name("THREADS");
  command
      .add_option("--autotune", arguments.autotune,
                  "Decide how convolutions are computed by measuring on this machine, on ranks of so many threads, and "
                  "not by estimates; takes about twice as long as to compile, and some seconds")
      ->check(CLI::Range(1, 4096))
      ->type_name("THREADS");
  command
      .add_option(
          "--split-launches", arguments.splitLaunches,
          "Whether kernels and library calls are divided into what needs no halo, or is in none, and the rest, so that "
          "ranks compute while they exchange: where that is predicted to be faster on --cluster (if not given), never, "
          "or wherever there is such a part")
      ->type_name("gain|never|always");
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
