//===- OutputFiles.h - Outputs that are written in parts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines outputs of which each process writes the parts that it has, and which are there whole or not at all.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_OUTPUTFILES_H
#define DOVETAIL_TOOLS_OUTPUTFILES_H

#include "dovetail/Layout/Box.h"
#include "dovetail/runtime/ProgramRunner.h"

#include <map>
#include <string>
#include <vector>

namespace dovetail::tools {

/// Files of NumPy's that all processes of a run write to, under names that are not theirs yet. Those of a run that ends
/// otherwise, also by a signal that asks the process to end, are removed by whichever process comes to it.
class OutputFiles {
public:
  struct File {
    std::string path;
    size_t output; ///< Its number in the plan.
  };

  /// File systems of many machines take shorter pieces one after another, and lock more than these.
  static constexpr int64_t pieceBytes = 1 << 20;

  /// All processes create, open, close and publish the same files.
  explicit OutputFiles(std::vector<File> files) : files(std::move(files)), handles(this->files.size(), -1) {}
  ~OutputFiles();
  OutputFiles(const OutputFiles &) = delete;
  OutputFiles &operator=(const OutputFiles &) = delete;

  /// What temporary names end in, the same for all processes, which all call it.
  static absl::StatusOr<std::string> makeSuffix(runtime::ProgramRunner &runner);

  /// The process of rank 0 creates the files, all others open them. Errors: those of files, of whichever process.
  absl::Status open(runtime::ProgramRunner &runner);
  /// `output` has a file.
  bool has(size_t output) const;
  /// The extents that outputs, all of the plan's, turn out to have; not beyond those that they were created for. Called
  /// by all processes before they write, in any order.
  absl::Status resize(runtime::ProgramRunner &runner, absl::Span<const std::vector<int64_t>> extents);
  /// Writes a part of `output`, row-major, to its file, if it has one. By several threads at once.
  absl::Status write(size_t output, const layout::Box &box, const std::byte *elements) const;
  /// All that was written is on disk, everywhere; then files get their names. Errors: as above.
  absl::Status publish(runtime::ProgramRunner &runner);

  /// The same step by step, for processes that agree at other times. Errors are this process's alone.
  ///
  /// First of all, the files have these temporary names, which are removed by whoever gives up.
  void setNames(const runtime::Plan &plan, const std::string &suffix);
  /// Rank 0 creates them, then all others find them.
  absl::Status create(const runtime::Plan &plan);
  absl::Status find();
  bool isOpen() const { return handles.empty() || handles[0] >= 0; }
  /// All that this process has written is on disk.
  absl::Status close();
  /// When all processes have closed them: rank 0 gives them their names, and none removes them any more.
  absl::Status rename() const;
  void keep();

private:
  absl::Status problem(size_t file) const;
  void setShape(size_t file, runtime::ElementType type, const std::vector<int64_t> &shape);
  /// Writes what says which shape it is, and makes the file as long as it will be.
  absl::Status shapeFile(size_t file, runtime::ElementType type) const;

  std::vector<File> files;
  std::vector<std::string> temporaries;
  std::vector<int> handles;
  std::vector<int64_t> begins; ///< Where elements begin.
  std::vector<int64_t> sizes;  ///< Of elements, in bytes.
  std::vector<std::vector<int64_t>> shapes;
};

/// That all processes were given the same options, each by its name with its values as the command line has them: what
/// they send each other depends on it. All call it. Errors: INVALID_ARGUMENT, naming the option.
absl::Status compareOptions(runtime::ProgramRunner &runner, const std::map<std::string, std::string> &options);

/// `own`, or the first error of another process. All processes call it.
absl::Status agree(runtime::ProgramRunner &runner, const absl::Status &own);

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_OUTPUTFILES_H
