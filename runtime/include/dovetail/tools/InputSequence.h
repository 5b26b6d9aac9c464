//===- InputSequence.h - What inputs are in each step -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines inputs that are the same in all steps of a run, or another file, or another part of a file, in each.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_INPUTSEQUENCE_H
#define DOVETAIL_TOOLS_INPUTSEQUENCE_H

#include "dovetail/tools/InputSource.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dovetail::tools {

class InputSequence {
public:
  /// Opens a file, and checks that it is what the input takes.
  using Opener = std::function<absl::StatusOr<std::unique_ptr<InputSource>>(const std::string &path)>;

  /// One tensor, in `file` if that is not empty. If `isStacked`, its first dimension is that of steps.
  InputSequence(std::shared_ptr<InputSource> source, bool isStacked, std::string file);
  /// A file for each step.
  InputSequence(std::vector<std::string> files, Opener opener) : names(std::move(files)), opener(std::move(opener)) {}

  /// How many steps there are; nothing if it is the same in all of them.
  std::optional<int64_t> length() const;
  /// A file for each step, or one for all, or none.
  const std::vector<std::string> &files() const { return names; }
  /// Whether each step has a file of its own.
  bool hasFiles() const { return opener != nullptr; }
  /// What it is in a step, counted from 0. Errors: those of files; messages name the file.
  absl::StatusOr<std::shared_ptr<InputSource>> open(int64_t step) const;

private:
  std::shared_ptr<InputSource> source;
  bool isStacked = false;
  std::vector<std::string> names;
  Opener opener;
};

/// Whether `path` names files by a pattern of a shell's, and is no file itself.
bool isPattern(const std::string &path);
/// The files that a pattern names, in an order in which numbers in their names grow. Errors: NOT_FOUND if there is
/// none.
absl::StatusOr<std::vector<std::string>> expandPattern(const std::string &pattern);

/// Whether inputs are not the same in all steps, as their specifications say: patterns, and files with one dimension
/// more.
bool haveSteps(const runtime::Plan &plan, const std::vector<std::string> &specs);
/// As `openInputs`, of a program's inputs in each step, by one process or by each of several.
absl::StatusOr<std::vector<InputSequence>> openSequences(const runtime::Plan &plan,
                                                         const std::vector<std::string> &specs, bool areProcesses);
/// `path`, of which the elements are those of an input. Errors: as of `openInputs`.
absl::StatusOr<std::unique_ptr<InputSource>> openInputFile(const runtime::Plan &plan, const runtime::PortInfo &port,
                                                           const std::string &path);

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_INPUTSEQUENCE_H
