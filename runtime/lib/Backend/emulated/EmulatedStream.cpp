//===- EmulatedStream.cpp - Work that is done late ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedStream.h"

#include <algorithm>

using namespace dovetail::runtime;
using namespace dovetail::runtime::emulated;

absl::Status StreamState::push(std::unique_lock<std::mutex> &lock, Entry entry) {
  queue.push_back(std::move(entry));
  if (seed != 0 && random() % 4 == 0)
    while (working || next < queue.size())
      step(lock);
  return failure;
}

absl::Status StreamState::add(HostTask &task) {
  std::unique_lock lock(mutex);
  if (!capture)
    return push(lock, {&task, nullptr, nullptr, 0});
  capture->nodes.push_back({&task, std::move(last)});
  last = {capture->nodes.size() - 1};
  return failure;
}

absl::Status StreamState::record(const std::shared_ptr<EventState> &event) {
  std::unique_lock lock(mutex);
  uint64_t count = 0;
  {
    std::lock_guard eventLock(event->mutex);
    event->capture = capture;
    event->after = last;
    if (capture)
      return failure;
    event->stream = shared_from_this();
    count = ++event->recorded;
  }
  return push(lock, {nullptr, event, nullptr, count});
}

absl::Status StreamState::wait(const std::shared_ptr<EventState> &event) {
  std::unique_lock lock(mutex);
  uint64_t count;
  {
    std::lock_guard eventLock(event->mutex);
    if (event->capture || (capture && event->recorded > 0))
      return waitCaptured(*event);
    if (event->happened >= event->recorded)
      return failure;
    count = event->recorded;
  }
  return push(lock, {nullptr, nullptr, event, count});
}

absl::Status StreamState::waitCaptured(EventState &event) {
  if (!event.capture || event.capture->isOver || (capture && capture != event.capture))
    return absl::FailedPreconditionError("a stream waits across the border of a recording");
  if (!capture) {
    capture = event.capture;
    capture->streams.push_back(shared_from_this());
    last.clear();
  }
  last.insert(last.end(), event.after.begin(), event.after.end());
  return failure;
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
  if (entry.task && !skipped)
    status = entry.task->perform();
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
  if (capture)
    return absl::FailedPreconditionError("a stream that is captured cannot be waited for");
  while (working || next < queue.size())
    step(lock);
  return failure;
}

absl::Status StreamState::beginCapture() {
  std::lock_guard lock(mutex);
  if (capture)
    return absl::FailedPreconditionError("the stream is captured already");
  capture = std::make_shared<Capture>();
  capture->streams.push_back(shared_from_this());
  last.clear();
  return failure;
}

absl::StatusOr<std::unique_ptr<HostTask>> StreamState::endCapture() {
  std::shared_ptr<Capture> ended = std::move(capture);
  if (!ended || ended->streams.front().get() != this)
    return absl::FailedPreconditionError("the stream is not captured, or from another one");
  // What this stream does not wait for would be done at any time.
  std::vector<bool> isWaitedFor(ended->nodes.size());
  for (size_t node : last)
    isWaitedFor[node] = true;
  for (size_t node = ended->nodes.size(); node-- > 0;)
    for (size_t before : isWaitedFor[node] ? ended->nodes[node].after : std::vector<size_t>())
      isWaitedFor[before] = true;
  ended->isOver = true;
  for (const std::shared_ptr<StreamState> &stream : ended->streams)
    stream->capture = nullptr;
  ended->streams.clear();
  if (std::find(isWaitedFor.begin(), isWaitedFor.end(), false) != isWaitedFor.end())
    return absl::FailedPreconditionError("a recording ends before work of another stream does");
  return std::make_unique<GraphTask>(std::move(ended->nodes), seed);
}

absl::Status GraphTask::perform() {
  std::vector<size_t> missing(nodes.size()), ready;
  for (size_t node = 0; node < nodes.size(); ++node) {
    missing[node] = nodes[node].after.size();
    if (missing[node] == 0)
      ready.push_back(node);
  }
  while (!ready.empty()) {
    // Without a seed what was recorded last comes first.
    auto chosen = seed == 0 ? std::max_element(ready.begin(), ready.end()) : ready.begin() + random() % ready.size();
    size_t done = *chosen;
    ready.erase(chosen);
    if (absl::Status status = nodes[done].task->perform(); !status.ok())
      return status;
    for (size_t node = done + 1; node < nodes.size(); ++node)
      for (size_t before : nodes[node].after)
        if (before == done && --missing[node] == 0)
          ready.push_back(node);
  }
  return absl::OkStatus();
}

absl::Status EmulatedStream::wait(const DeviceEvent &event) {
  return state->wait(static_cast<const EmulatedEvent &>(event).state);
}
