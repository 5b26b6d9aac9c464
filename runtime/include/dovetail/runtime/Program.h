//===- Program.h - Loaded artifacts -----------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines a compiled program in memory: its plan, its kernels and its weights.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PROGRAM_H
#define DOVETAIL_RUNTIME_PROGRAM_H

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/KernelAbi.h"
#include "dovetail/runtime/Plan.h"

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace dovetail::runtime {

class PackedWeights;

/// What a program is loaded for.
struct ProgramOptions {
  /// Makes the program executable: checks the CPU and loads the kernels; those for devices are loaded by sessions.
  /// Without it, a program for another CPU or for a device that is not there can be looked at.
  bool executable = true;
  /// Checks all weights while loading. Without it, each session checks the parts that its rank reads, and no others are
  /// read, which is for processes that have one rank of many.
  bool checkWeights = true;
};

/// A compiled program: immutable, and shared by the sessions of all ranks of a process. Thread-safe.
class Program {
public:
  /// Maps the artifact at `path` and verifies all of it, but for weights where the options say so. Errors: NOT_FOUND,
  /// PERMISSION_DENIED and other codes of the file system; FAILED_PRECONDITION for files that are no artifacts, have
  /// another format version or need what this runtime or CPU lacks; DATA_LOSS for damaged ones.
  static absl::StatusOr<std::shared_ptr<const Program>> load(const std::string &path, ProgramOptions options = {});
  /// The same for an artifact in memory, which is copied.
  static absl::StatusOr<std::shared_ptr<const Program>> load(absl::Span<const std::byte> bytes,
                                                             ProgramOptions options = {});
  ~Program();
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  const Plan &getPlan() const { return plan; }
  int numRanks() const { return plan.mesh.numRanks(); }
  /// All bytes that it was loaded from.
  absl::Span<const std::byte> getArtifact() const;
  absl::Span<const std::byte> getWeights() const { return weights.getBytes(); }
  /// Makes sure that the elements in `box` of `buffer`, a constant, are what was compiled. Errors: DATA_LOSS.
  absl::Status checkWeights(const BufferInfo &buffer, const layout::Box &box) const;
  /// Says that a part of the weights is not going to be read soon: where it is mapped from a file, the system may have
  /// its memory, and reads it again when need be.
  void releaseWeights(uint64_t offset, uint64_t size) const;
  /// What its sessions share.
  PackedWeights &getPackedWeights() const { return *packed; }
  /// The kernels' code; with several images, a device chooses one.
  absl::Span<const CodeImage> getCode() const { return code; }
  /// Size of all images.
  size_t getCodeSize() const;
  /// The same for equal artifacts, and another one for others.
  uint64_t getChecksum() const { return checksum; }
  bool isExecutable() const { return executable; }
  /// The kernel called `symbol` in a kernel step of the plan; the program must be executable, on the CPU.
  DovetailKernel getKernel(const std::string &symbol) const;

private:
  struct Storage;
  Program();
  static absl::StatusOr<std::shared_ptr<const Program>> create(std::unique_ptr<Storage> storage,
                                                               ProgramOptions options);

  std::unique_ptr<Storage> storage;
  std::unique_ptr<PackedWeights> packed;
  Plan plan;
  CheckedSection weights, packedImage;
  std::vector<CodeImage> code;
  uint64_t checksum = 0;
  bool executable = false;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PROGRAM_H
