//===- PackedWeights.cpp - Weights packed once for a process --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackedWeights.h"

using namespace dovetail::runtime;

bool PackedWeights::Entry::claim() {
  std::lock_guard lock(mutex);
  if (state != State::Empty)
    return false;
  state = State::Claimed;
  return true;
}

void PackedWeights::Entry::finish(bool success) {
  {
    std::lock_guard lock(mutex);
    state = success ? State::Packed : State::Empty;
  }
  changed.notify_all();
}

PackedWeights::Entry::State PackedWeights::Entry::waitFor(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, time, [&] { return state != State::Claimed; });
  return state;
}

absl::StatusOr<std::vector<std::shared_ptr<PackedWeights::Entry>>>
PackedWeights::acquire(const std::vector<Request> &requests, const std::string &machine,
                       absl::FunctionRef<absl::StatusOr<std::shared_ptr<std::byte>>(int64_t bytes)> allocate) {
  std::lock_guard lock(mutex);
  std::erase_if(entries, [](const auto &entry) { return entry.second.expired(); });
  std::vector<std::shared_ptr<Entry>> result;
  std::vector<std::pair<Entry *, int64_t>> created;
  int64_t bytes = 0;
  for (const Request &request : requests) {
    std::weak_ptr<Entry> &known = entries[request.key];
    std::shared_ptr<Entry> entry = known.lock();
    if (!entry) {
      entry = std::make_shared<Entry>();
      entry->bytes = request.bytes;
      known = entry;
      auto packed = image.entries.find(request.key);
      if (packed != image.entries.end() && image.machine == machine &&
          static_cast<int64_t>(packed->second.size()) == request.bytes) {
        if (absl::Status status = checkImage(packed->second); !status.ok())
          return status;
        entry->state = Entry::State::Packed;
        entry->memory = const_cast<std::byte *>(packed->second.data()); // Nobody writes to what is packed.
        result.push_back(std::move(entry));
        continue;
      }
      missing += !image.machine.empty();
      created.push_back({entry.get(), bytes});
      bytes += request.bytes;
    }
    result.push_back(std::move(entry));
  }
  // Entries without memory go with `result`.
  absl::StatusOr<std::shared_ptr<std::byte>> memory = allocate(bytes);
  if (!memory.ok())
    return memory.status();
  for (auto [entry, offset] : created) {
    entry->owner = *memory;
    entry->memory = memory->get() + offset;
  }
  return result;
}

int64_t PackedWeights::bytes() {
  std::lock_guard lock(mutex);
  int64_t sum = 0;
  for (const auto &[key, known] : entries)
    if (std::shared_ptr<Entry> entry = known.lock())
      sum += entry->bytes;
  return sum;
}

std::map<std::string, absl::Span<const std::byte>> PackedWeights::contents() {
  std::lock_guard lock(mutex);
  std::map<std::string, absl::Span<const std::byte>> result;
  for (const auto &[key, known] : entries)
    if (std::shared_ptr<Entry> entry = known.lock())
      if (entry->waitFor(std::chrono::milliseconds(0)) == Entry::State::Packed)
        result[key] = {entry->memory, static_cast<size_t>(entry->bytes)};
  return result;
}

int64_t PackedWeights::numMissing() {
  std::lock_guard lock(mutex);
  return missing;
}
