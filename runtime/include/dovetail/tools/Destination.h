//===- Destination.h - Where outputs are written -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines where the commands write outputs, in one run or in each step of one.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_DESTINATION_H
#define DOVETAIL_TOOLS_DESTINATION_H

#include "dovetail/runtime/Plan.h"

#include "absl/status/statusor.h"

#include <string>
#include <vector>

namespace dovetail::tools {

/// Where an output is to be written.
struct Destination {
  std::string path;
  size_t output = 0;
  bool all = false; ///< An archive of all outputs.
};

/// What stands in names of files for the number of a step, from 1, and for that of the file that an input is read from.
inline constexpr const char *stepPlace = "{step}", *namePlace = "{name}";

/// Reads `NAME=FILE.npy` and `FILE.npz`. Errors: INVALID_ARGUMENT; with `willWrite`, those of files that cannot be
/// written.
absl::StatusOr<std::vector<Destination>> parseOutputs(const runtime::Plan &plan, const std::vector<std::string> &specs,
                                                      bool willWrite);

/// Whether a path has one of these places.
bool hasPlaces(const std::string &path);
/// The path in a step, counted from 0, of which the input's file is `name`.
std::string fillPlaces(const std::string &path, int64_t step, const std::string &name);

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_DESTINATION_H
