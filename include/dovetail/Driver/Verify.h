//===- Verify.h - The partitioned program against the whole one -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares verify, which checks that partitioning a model changes nothing.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_VERIFY_H
#define DOVETAIL_DRIVER_VERIFY_H

#include "dovetail/Driver/Compare.h"
#include "dovetail/Driver/Compilation.h"
#include "dovetail/Driver/Diagnostics.h"
#include "dovetail/Driver/Options.h"

#include <string>
#include <vector>

namespace dovetail {

/// A value of the unpartitioned program, and how the partitioned one's differs from it.
struct Comparison {
  tools::NamedTensor expected;
  Difference difference;
  /// The source name of the node that computes a value which is no output; empty if the model does not say it.
  std::string source = {};
};

/// What to compare, and on which inputs.
struct VerifyOptions {
  CompileOptions compile;
  /// Threads of each of the two runs.
  int threads = 1;
  /// Compares every value, not only outputs.
  bool perOp = false;
  /// Specifications of inputs as those of `dovetail run`; inputs without one are random, from `seed` on.
  std::vector<std::string> inputs;
  uint64_t seed = 0;
  /// Files with outputs, as `--expect` names them, to compare with in place of the unpartitioned model.
  std::vector<std::string> expected;
};

/// Compiles `model` partitioned and for one rank, runs both on the same inputs and compares the outputs;
/// with `perOp` all values, in the order in which they are computed. Where files are expected, the outputs that they
/// have are compared, and the model is compiled once. Errors are reported; that outputs differ is not.
llvm::FailureOr<std::vector<Comparison>> verify(const ModelSource &model, const VerifyOptions &options,
                                                Diagnostics &diagnostics);

/// Runs the artifact at `path` and compares its outputs with the files that are expected.
llvm::FailureOr<std::vector<Comparison>> verifyArtifact(llvm::StringRef path, const VerifyOptions &options,
                                                        Diagnostics &diagnostics);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_VERIFY_H
