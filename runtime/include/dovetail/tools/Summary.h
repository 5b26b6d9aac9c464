//===- Summary.h - Tensors in a few numbers -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what is printed of outputs that are not written, of which parts may come one after another.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_SUMMARY_H
#define DOVETAIL_TOOLS_SUMMARY_H

#include "dovetail/runtime/ProgramRunner.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dovetail::tools {

struct Summary {
  double least = INFINITY, most = -INFINITY, sum = 0;
  int64_t count = 0, invalid = 0, infinite = 0; ///< All elements, NaNs, and infinities.

  void add(runtime::ElementType type, const std::byte *elements, int64_t count);
  void add(const Summary &other);
  /// Empty for types of less than 16 bits.
  std::string text(runtime::ElementType type) const;
};

/// Names outputs with NaN or infinities, in one sentence; empty if there are none. `names` are those of the summaries.
std::string describeNonFinite(const std::vector<std::string> &names, const std::vector<Summary> &summaries);

/// On rank 0's process, summaries of what all processes have, each of which gives its `own`, one for each output. All
/// call it.
absl::StatusOr<std::vector<Summary>> shareSummaries(runtime::ProgramRunner &runner, const std::vector<Summary> &own);

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_SUMMARY_H
