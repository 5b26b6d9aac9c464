//===- SharedSegment.h - Memory that processes share -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how parts of a process's memory become pages that other processes of the machine read where they are. These
// are of a file without a name, which ends with the last of them: nothing is left of it, whatever happens.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_SHAREDSEGMENT_H
#define DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_SHAREDSEGMENT_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dovetail::runtime {

struct ByteRange {
  std::byte *begin = nullptr;
  int64_t bytes = 0;
};

/// What this process lets others read: memory for notes, and parts of its own memory.
class SharedSegment {
public:
  /// Of `owned`, whose whole pages belong to the caller, makes the pages with something of `parts` shared ones, with
  /// the same contents at the same addresses; nobody else may use them meanwhile. What lies outside of `owned` stays as
  /// it is. All of it is there when this returns: nothing ends by a signal later because memory is used up. Errors:
  /// RESOURCE_EXHAUSTED where that is more than `mostBytes`, or than the system gives; UNAVAILABLE; INTERNAL where
  /// memory of the caller is lost, which must not go on. With the others its memory is as it was.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> create(int64_t noteBytes, const std::vector<ByteRange> &owned,
                                                               const std::vector<ByteRange> &parts, int64_t mostBytes);
  ~SharedSegment();
  SharedSegment(const SharedSegment &) = delete;
  SharedSegment &operator=(const SharedSegment &) = delete;

  /// The memory for notes, at the segment's beginning; zeroed.
  std::byte *notes() const { return begin; }
  /// Where in the segment this memory is; negative if not all of it is.
  int64_t offsetOf(const std::byte *memory, int64_t bytes) const;
  /// By which processes of the same user and machine open it until `close`.
  std::string name() const;
  /// Those that have opened it keep it.
  void close();
  int64_t bytes() const { return total; } ///< That are shared.

private:
  SharedSegment() = default;
  absl::Status share(const std::vector<ByteRange> &parts);
  absl::Status share(ByteRange part, int64_t offset);

  struct Shared {
    ByteRange memory;
    int64_t offset;
  };
  std::vector<Shared> shared;
  std::byte *begin = nullptr;
  int64_t noteBytes = 0, total = 0;
  int file = -1;
};

/// What another process lets this one read.
class SharedView {
public:
  /// Errors: UNAVAILABLE, also where it is of another user, or away.
  static absl::StatusOr<std::unique_ptr<SharedView>> open(const std::string &name);
  ~SharedView();
  SharedView(const SharedView &) = delete;
  SharedView &operator=(const SharedView &) = delete;

  const std::byte *data() const { return begin; }

private:
  SharedView() = default;
  const std::byte *begin = nullptr;
  int64_t bytes = 0;
};

/// Processes with the same one may open each other's segments: of one user, that see each other on one machine. Empty
/// where nobody can say that.
std::string sharingPlace();

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_SHAREDSEGMENT_H
