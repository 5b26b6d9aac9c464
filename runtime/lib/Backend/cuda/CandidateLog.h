//===- CandidateLog.h - Engines that were looked at -------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the candidates of a call, which is described to its library in one form after the other.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_CANDIDATELOG_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_CANDIDATELOG_H

#include "../common/DeviceStaging.h"

#include "dovetail/runtime/CallReport.h"

namespace dovetail::runtime::cuda {

/// The candidates of all forms, and the form that is tried.
struct CandidateLog {
  StagingMode layout = StagingMode::Direct;
  size_t fused = 0;         ///< How many of the post-ops are the library's.
  bool tensorFirst = false; ///< The second post-op comes before the first.
  std::vector<CallCandidate> candidates;

  /// Adds a candidate of the form; returns its number.
  size_t add(CallCandidate candidate) {
    candidate.layout = layoutName(layout);
    if (tensorFirst)
      candidate.source += ", tensor before bias";
    candidate.fused = static_cast<int64_t>(fused);
    candidates.push_back(std::move(candidate));
    return candidates.size() - 1;
  }
  /// Adds candidates and post-ops to a report.
  void addTo(LibraryCallReport &report) const {
    report.fused = static_cast<int64_t>(fused);
    report.candidates.insert(report.candidates.end(), candidates.begin(), candidates.end());
  }
};

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_CANDIDATELOG_H
