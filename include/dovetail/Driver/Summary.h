//===- Summary.h - What came of a compilation -------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Summary, the lines that say what came of a compilation.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_SUMMARY_H
#define DOVETAIL_DRIVER_SUMMARY_H

#include "dovetail/Driver/Prediction.h"

#include <chrono>

namespace dovetail {

/// Tells people about a compilation that succeeded. Its clock begins with the compilation, whose context it must not
/// outlive.
class Summary {
public:
  /// Looks at `compilation` at the end of a phase. At the end of the phase lower its program is simulated. Nothing is
  /// said of a program that cannot be simulated: code may be generated all the same.
  void look(Compilation &compilation, Phase phase);
  /// After a compilation of several ranks, predicts the same model on one device alone. To lower it again takes hardly
  /// longer than to lower what was compiled. Nothing is said where that took more than a small part of the whole.
  void compareAlone(const Compilation &compilation);

  /// Four lines: the ranks, the size and the time of the compilation, then cuts and exchanges, memory, and the
  /// predicted time. `files`, the model and the artifact, come first unless they are empty.
  std::string describe(llvm::StringRef files, int64_t artifactBytes) const;
  /// One more line, the command that runs the artifact at `path`.
  std::string suggestRun(llvm::StringRef path) const;

private:
  void predict(Compilation &compilation);
  std::string describeCuts() const;
  std::string describeExchanges() const;
  std::string describeMemory() const;

  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  std::optional<PredictedRun> run;
  /// The model at the end of the phase simplify, to be lowered for one rank.
  std::unique_ptr<Compilation> single;
  Diagnostics quiet{llvm::nulls()};
  /// The model on one device alone.
  std::optional<PredictedRun> alone;
  /// Ranks whose memory was estimated, with bytes: all of few, some of many.
  std::vector<std::pair<int, int64_t>> memory;
  std::string cluster;
  /// Bytes that each rank may take, if that is limited.
  std::vector<double> limits;
};

} // namespace dovetail

#endif // DOVETAIL_DRIVER_SUMMARY_H
