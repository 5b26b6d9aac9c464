//===- Options.h - How a model is compiled -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares CompileOptions and how they are read from the command line's spelling.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_OPTIONS_H
#define DOVETAIL_DRIVER_OPTIONS_H

#include "dovetail/Cost/Cluster.h"
#include "dovetail/Cost/Objective.h"
#include "dovetail/Driver/Diagnostics.h"
#include "dovetail/Import/Import.h"
#include "dovetail/Layout/Mesh.h"
#include "dovetail/Search/ChoiceGraph.h"
#include "dovetail/Target/Target.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dovetail {

/// `--shard NAME=_,_,y,x+z`: for each dimension of a tensor the mesh axes that split it, major to minor.
struct ShardRequest {
  std::string tensor;
  std::vector<std::vector<std::string>> dims;
};

/// How the extents of shards are found.
enum class SizesKind { Balanced, Chunk, Explicit };

/// `--sizes NAME:DIM=300,212`, `=chunk` or `=balanced`: how a dimension that `--shard` splits is cut.
struct SizesRequest {
  std::string tensor;
  int64_t dim = 0;
  SizesKind kind = SizesKind::Explicit;
  std::vector<int64_t> sizes;
};

/// When something is done that may gain time or cost it: where it is expected to gain something, or not at all, or
/// wherever it can be, for tests.
enum class When { Gain, Never, Always };

/// All that decides what a model is compiled to.
struct CompileOptions {
  ImportOptions import;
  layout::Mesh mesh{{{"rank", 1}}};
  std::vector<ShardRequest> shards;
  std::vector<SizesRequest> sizes;
  /// As the user spelt them, as names may contain colons.
  std::vector<std::string> feedback;
  /// What is to be least of all ways to split what is not stated.
  Objective objective = Objective::Time;
  /// What the search for that may take (`SearchLimits::work`).
  uint64_t searchWork = SearchLimits().work;
  /// Whether what is chosen is explained, in remarks.
  bool explain = false;
  /// Whether instead anything that may be decided is, at random from this seed, which is not 0.
  uint64_t shardingsSeed = 0;
  /// Bytes that library calls may take besides their bounds, to compare what becomes of them.
  int64_t spareCallMemory = 0;
  /// Whether all operations carry their definitions (`dovetail-generalize`), to compare what becomes of them.
  bool generalizes = false;
  /// Or whether the inputs are followed, which decisions are compared with.
  Following following = Following::No;
  /// The share of all time that a departure from what is stated has to save; 0: none.
  double follow = kDefaultFollow;
  /// Whether ranks compute halos in place of exchanging them.
  When halos = When::Gain;
  const Target *target = findTarget("cpu");
  /// What ranks are, for how long things take; never null. The target's unless the user says otherwise.
  std::shared_ptr<const Cluster> cluster = std::make_shared<const Cluster>(*Cluster::getBuiltIn("cpu"));
  /// Bytes that each rank may take, infinitely many where that is not known; empty if no rank has a limit.
  std::vector<double> memory;
  /// What that is to the search's estimates (`ChooseShardings`).
  std::optional<double> searchMemory;
  /// Of each rank, the share of what is divided that it may have, where one with more would not fit; empty if any.
  std::vector<double> mostShares;
  /// Of each rank, how many times as long as the search estimates work takes it, as programs have told; empty if once.
  std::vector<double> slowness;
  /// How many bytes weights take for each byte, copies in the order of libraries included, as programs have told.
  double searchWeightFactor = 1;
  /// Whether it is an error if that does not suffice; else the program is made as if it did.
  bool mustFit = true;
  /// Whether, where memory is to be least, programs are made to see which objective gives the one that takes least.
  bool comparesMemory = true;
  /// Whether weights may be transformed to larger ones, for algorithms that are faster with these.
  bool mayTransform = true;
  /// Whether weights may be stored in pieces, where memory matters.
  bool mayGather = true;
  /// Whether weights that are stored in pieces are gathered a layer ahead; nothing: if exchanges go on beside steps.
  std::optional<bool> gathersAhead;
  /// Whether, where devices differ, programs are made to see whether slow ones had better have nothing.
  bool comparesShares = true;
  /// Whether, where the search leaves what is stated, programs are made to see whether that saves enough.
  bool comparesDepartures = true;
  /// Whether it is said where fewer ranks are predicted to be faster.
  bool advises = false;
  /// How many ranks a mesh is to have that the compiler makes; `mesh` is not one of the user's then.
  std::optional<int64_t> autoRanks;
  CodeGenOptions codeGen;
  /// Whether library calls are used.
  bool libraries = true;
  /// Whether it is an error of a run that an index is out of range; else it is clamped. Constants are always checked.
  bool indexChecks = true;
  /// Whether artifacts and reports have what users call steps. Messages do in any case.
  bool sourceNames = true;
  /// Whether steps that read halos compute their interior first, while ranks exchange.
  When splitLaunches = When::Gain;
  /// Threads of a rank for which weights are packed when the artifact is written; 0: they are packed at start-up.
  int prepackThreads = 0;
  /// Threads of a rank with which alternatives are measured on this machine; 0: they are estimated.
  int autotuneThreads = 0;
  /// How convolutions that may be computed in several ways are, as `plan-choose-algorithms` takes it.
  std::vector<plan::ConvolutionAlgorithm> algorithms;
  /// What these may do with the factors of products; one of the target's.
  plan::MathMode math = plan::MathMode::F32;
};

/// The same as texts, each as the user spelt it.
struct CompileArguments {
  std::optional<std::string> mesh;
  std::vector<std::string> shards, sizes, feedback, dims, bounds, shapes;
  std::string target = "cpu";
  std::optional<std::string> cpu, arch, math, objective, cluster, memory, halos, splitLaunches, follow;
  std::optional<double> searchSeconds;
  uint64_t shardingsSeed = 0;
  int64_t spareCallMemory = 0;
  Following following = Following::No;
  bool noLibraries = false, noIndexChecks = false, noSourceNames = false, generalizes = false;
  std::optional<int> prepack, autotune;
};

/// Reads the texts. What can only be checked against the model is left to `attachRequests`. Errors are usage errors, or
/// unsupported ones for targets to come.
llvm::FailureOr<CompileOptions> parseOptions(const CompileArguments &arguments, Diagnostics &diagnostics);

/// The cluster in a file, or else the one that is built in under this name. Errors are usage errors, or those of files.
llvm::FailureOr<Cluster> readCluster(llvm::StringRef fileOrName, Diagnostics &diagnostics);

/// `'y', 'x'`, as in messages.
std::string listAxes(const layout::Mesh &mesh);
/// `y=4,x=2`, as `--mesh` has it.
std::string formatMesh(const layout::Mesh &mesh);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_OPTIONS_H
