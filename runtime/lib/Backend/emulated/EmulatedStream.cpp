//===- EmulatedStream.cpp - Work that is done late ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedStream.h"

using namespace dovetail::runtime;
using namespace dovetail::runtime::emulated;

absl::Status StreamState::push(std::unique_lock<std::mutex> &lock, Entry entry) {
  queue.push_back(std::move(entry));
  if (isRandom && random() % 4 == 0)
    while (working || next < queue.size())
      step(lock);
  return failure;
}

absl::Status StreamState::add(Job &job) {
  std::unique_lock lock(mutex);
  if (!capturing)
    return push(lock, {&job, nullptr, nullptr, 0});
  captured.push_back(&job);
  return failure;
}

absl::Status StreamState::record(const std::shared_ptr<EventState> &event) {
  std::unique_lock lock(mutex);
  if (capturing)
    return absl::UnimplementedError("the emulated device captures no events");
  uint64_t count;
  {
    std::lock_guard eventLock(event->mutex);
    event->stream = shared_from_this();
    count = ++event->recorded;
  }
  return push(lock, {nullptr, event, nullptr, count});
}

absl::Status StreamState::wait(const std::shared_ptr<EventState> &event) {
  std::unique_lock lock(mutex);
  if (capturing)
    return absl::UnimplementedError("the emulated device captures no events");
  uint64_t count;
  {
    std::lock_guard eventLock(event->mutex);
    if (event->happened >= event->recorded)
      return failure;
    count = event->recorded;
  }
  return push(lock, {nullptr, nullptr, event, count});
}

void StreamState::step(std::unique_lock<std::mutex> &lock) {
  if (working) {
    changed.wait(lock);
    return;
  }
  working = true;
  Entry entry = queue[next];
  bool skipped = !failure.ok();
  lock.unlock();
  absl::Status status;
  if (entry.job && !skipped)
    status = entry.job->perform();
  if (entry.awaited && !skipped) {
    std::shared_ptr<StreamState> other;
    {
      std::lock_guard eventLock(entry.awaited->mutex);
      if (entry.awaited->happened < entry.count)
        other = entry.awaited->stream;
    }
    if (other)
      other->advance(*entry.awaited, entry.count);
  }
  if (entry.recorded) {
    std::lock_guard eventLock(entry.recorded->mutex);
    entry.recorded->happened = std::max(entry.recorded->happened, entry.count);
  }
  lock.lock();
  working = false;
  if (failure.ok())
    failure = status;
  if (++next == queue.size()) {
    queue.clear();
    next = 0;
  }
  changed.notify_all();
}

void StreamState::advance(EventState &event, uint64_t count) {
  auto hasHappened = [&] {
    std::lock_guard eventLock(event.mutex);
    return event.happened >= count;
  };
  std::unique_lock lock(mutex);
  while (!hasHappened() && (working || next < queue.size()))
    step(lock);
}

absl::Status StreamState::synchronize() {
  std::unique_lock lock(mutex);
  if (capturing)
    return absl::FailedPreconditionError("a stream that is captured cannot be waited for");
  while (working || next < queue.size())
    step(lock);
  return failure;
}

absl::Status StreamState::beginCapture() {
  std::lock_guard lock(mutex);
  if (capturing)
    return absl::FailedPreconditionError("the stream is captured already");
  capturing = true;
  captured.clear();
  return failure;
}

absl::StatusOr<std::vector<Job *>> StreamState::endCapture() {
  std::lock_guard lock(mutex);
  if (!capturing)
    return absl::FailedPreconditionError("the stream is not captured");
  capturing = false;
  return std::move(captured);
}

absl::Status EmulatedStream::wait(const DeviceEvent &event) {
  return state->wait(static_cast<const EmulatedEvent &>(event).state);
}
