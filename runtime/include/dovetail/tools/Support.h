//===- Support.h - What commands share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what the commands of the runtime and those of the compiler share: inputs of programs, and text for people.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_SUPPORT_H
#define DOVETAIL_TOOLS_SUPPORT_H

#include "dovetail/runtime/Plan.h"
#include "dovetail/runtime/ProgramRunner.h"
#include "dovetail/tools/InputSource.h"
#include "dovetail/tools/RankGroups.h"

#include "absl/status/statusor.h"

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace dovetail::tools {

/// Adds an option that may be given several times, with one value each time.
CLI::Option *addRepeatable(CLI::App &command, const std::string &name, std::vector<std::string> &values,
                           const std::string &description);

/// The program's inputs from specifications: `NAME=@FILE.npy`, `NAME=@FILE.npz`, `@FILE.npz`, `NAME=random:SEED`. With
/// `randomDefault`, those that are not given are random, from `seed` on; otherwise they are missed.
absl::StatusOr<std::vector<NamedTensor>> readInputs(const runtime::Plan &plan, const std::vector<std::string> &specs,
                                                    bool randomDefault, uint64_t seed = 0);
/// The same, to be read in parts. Inputs of other types or shapes than the program's are errors, too: INVALID_ARGUMENT.
absl::StatusOr<std::vector<std::unique_ptr<InputSource>>>
openInputs(const runtime::Plan &plan, const std::vector<std::string> &specs, bool randomDefault);

/// Tensors for all outputs of the program.
std::vector<NamedTensor> makeOutputs(const runtime::Plan &plan);
/// Leaves of these tensors what the last run gave: less than their shape where extents depend on data.
void cutOutputs(const runtime::ProgramRunner &runner, std::vector<NamedTensor> &outputs);
std::vector<runtime::FullTensor> viewsOf(std::vector<NamedTensor> &tensors);

/// True if both paths name one file, which need not be there yet.
bool isSameFile(const std::string &a, const std::string &b);

/// Text in columns, the first row being the head.
std::string formatTable(const std::vector<std::vector<std::string>> &rows, const std::string &indent = "  ");
/// `3.1 MiB`.
std::string formatBytes(int64_t bytes);
/// `float32[1, 3, 8, 8]`.
std::string formatType(runtime::ElementType type, const std::vector<int64_t> &shape);

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_SUPPORT_H
