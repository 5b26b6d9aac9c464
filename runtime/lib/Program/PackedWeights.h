//===- PackedWeights.h - Weights packed once for a process ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how sessions of one program share what library calls pack: whoever comes first packs it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PROGRAM_PACKEDWEIGHTS_H
#define DOVETAIL_RUNTIME_PROGRAM_PACKEDWEIGHTS_H

#include "PackedImage.h"

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dovetail::runtime {

/// What sessions of a program have packed, as long as one of them lives. Thread-safe.
class PackedWeights {
public:
  /// The packed weights of a step. Whoever claims them packs them; all others wait.
  class Entry {
  public:
    enum class State { Empty, Claimed, Packed };

    std::byte *data() const { return memory; }
    /// Whether the caller is to pack now, and to call `finish` then.
    bool claim();
    /// Ends a claim. Without success, somebody else may claim.
    void finish(bool success);
    /// The state when nobody has a claim any more, or when `time` is over.
    State waitFor(std::chrono::milliseconds time);

  private:
    friend class PackedWeights;

    std::mutex mutex;
    std::condition_variable changed;
    State state = State::Empty;
    std::shared_ptr<std::byte> owner; ///< Of memory for several entries.
    std::byte *memory = nullptr;
    int64_t bytes = 0;
  };

  struct Request {
    std::string key; ///< What is packed, and how: equal where the packed bytes are.
    int64_t bytes;   ///< A multiple of `bufferAlignment`.
  };
  /// Says whether bytes of the artifact are what they were. Errors: DATA_LOSS.
  using Check = std::function<absl::Status(absl::Span<const std::byte>)>;
  /// What the program's artifact has packed, which outlives this, and is checked entry by entry when it is used. Called
  /// before all else.
  void setImage(PackedImage packed, Check check) {
    image = std::move(packed);
    checkImage = std::move(check);
  }

  /// Entries with these keys: those that there are, those of the image if it is for `machine`, and new ones, whose
  /// memory `allocate` gives, one piece for all of them. Errors: those of `allocate`, and of the check of the image.
  absl::StatusOr<std::vector<std::shared_ptr<Entry>>>
  acquire(const std::vector<Request> &requests, const std::string &machine,
          absl::FunctionRef<absl::StatusOr<std::shared_ptr<std::byte>>(int64_t bytes)> allocate);

  /// Of all entries that there are.
  int64_t bytes();
  /// What has been packed, as long as its sessions live.
  std::map<std::string, absl::Span<const std::byte>> contents();
  /// The image that the artifact has, if any.
  const PackedImage &getImage() const { return image; }
  /// How many entries that image lacked.
  int64_t numMissing();

private:
  std::mutex mutex;
  PackedImage image;
  Check checkImage;
  int64_t missing = 0;
  std::map<std::string, std::weak_ptr<Entry>> entries;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PROGRAM_PACKEDWEIGHTS_H
