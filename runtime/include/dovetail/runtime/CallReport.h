//===- CallReport.h - How libraries do calls --------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines reports of library calls: the implementation that does a call, the implementations that were offered, and
// what a call adds to recorded work.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_CALLREPORT_H
#define DOVETAIL_RUNTIME_CALLREPORT_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dovetail::runtime {

/// An implementation that a library offers for a call, and the runtime's decision about it.
struct CallCandidate {
  enum class Status {
    Chosen,   ///< It does the call.
    Usable,   ///< It may do the call, but another one is better.
    Untried,  ///< A better one was found before.
    Rejected, ///< It breaks a rule of the plan, which `reason` names.
    Failed,   ///< The library says that it cannot do the call.
  };

  std::string source;                                 ///< The library's list that has it, such as `mode A`.
  std::string engine;                                 ///< The library's number of it; empty if there is none.
  std::vector<std::pair<std::string, int64_t>> knobs; ///< Its settings.
  std::vector<std::string> notes;                     ///< Its arithmetic and demands, in the library's words.
  std::string layout;                                 ///< Of operands: `direct` or `packed`.
  int64_t fused = 0;                                  ///< The number of post-operations that it does, too.
  int64_t workspaceBytes = -1;                        ///< Negative if unknown.
  Status status = Status::Untried;
  std::string reason;                 ///< Empty for those that are chosen or usable.
  std::optional<double> milliseconds; ///< Of one run, if it was measured.
};

/// `chosen`, `usable`, `untried`, `rejected` or `failed`.
inline const char *statusName(CallCandidate::Status status) {
  switch (status) {
  case CallCandidate::Status::Chosen:
    return "chosen";
  case CallCandidate::Status::Usable:
    return "usable";
  case CallCandidate::Status::Untried:
    return "untried";
  case CallCandidate::Status::Rejected:
    return "rejected";
  case CallCandidate::Status::Failed:
    return "failed";
  }
  return "";
}

/// How a device's library does a call on a rank.
struct LibraryCallReport {
  std::string implementation;            ///< Library and engine; empty without a call.
  int64_t fused = 0, postOps = 0;        ///< Post-operations that the library does, and all.
  std::vector<std::string> staged;       ///< Operands that are copied around the call, such as `input`.
  std::vector<CallCandidate> candidates; ///< In the order in which they were looked at.

  /// Notes that an operand is copied, if it is and that is not noted.
  void addStaged(bool isStaged, const char *operand) {
    if (isStaged && std::find(staged.begin(), staged.end(), operand) == staged.end())
      staged.emplace_back(operand);
  }
};

/// Nodes of a graph of recorded work.
struct GraphNodes {
  int64_t kernels = 0, copies = 0, fills = 0, others = 0;

  GraphNodes operator-(const GraphNodes &other) const {
    return {kernels - other.kernels, copies - other.copies, fills - other.fills, others - other.others};
  }
};

/// The implementation and the memory, in bytes, of a library call on a rank. Other steps have none.
struct CallReport {
  /// The library's name of its implementation, or that of the runtime's own kernels; empty for other steps.
  std::string implementation = {};
  /// Whether the library has nothing but its reference implementation, which is slower by factors.
  bool isReference = false;
  /// Memory while the call runs, and for packed weights: what it takes, and what is set aside for it.
  int64_t scratchBytes = 0, scratchBound = 0, packedBytes = 0, packedBound = 0;
  int64_t excessBytes = 0; ///< Bytes beyond the plan's bounds, to which the library does not keep here.
  /// On devices, if the session explains calls.
  LibraryCallReport library = {};
  /// The nodes that the step, of any kind, adds to the graph that a device replays, if the session explains calls. None
  /// where steps are not recorded.
  std::optional<GraphNodes> nodes = {};
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_CALLREPORT_H
