//===- EmulatedStream.h - Work that is done late ----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the streams and events of the emulated device. Work is done as late as possible, or at any moment before, so
// that work which is in no order with other work, though it must be, comes too late or too soon.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_EMULATED_EMULATEDSTREAM_H
#define DOVETAIL_RUNTIME_BACKEND_EMULATED_EMULATEDSTREAM_H

#include "dovetail/runtime/Device.h"

#include <condition_variable>
#include <mutex>
#include <random>

namespace dovetail::runtime::emulated {

class StreamState;

/// What streams do while they are captured. Threads issue work to them one at a time.
struct Capture {
  struct Node {
    HostTask *task;
    std::vector<size_t> after; ///< Nodes that come before it.
  };
  std::vector<Node> nodes;
  std::vector<std::shared_ptr<StreamState>> streams; ///< The first is that where it began.
  bool isOver = false;
};

/// Work that was captured. It is done in some order that streams and events allow.
class GraphTask : public HostTask {
public:
  GraphTask(std::vector<Capture::Node> nodes, uint64_t seed) : nodes(std::move(nodes)), random(seed), seed(seed) {}
  absl::Status perform() override;

private:
  std::vector<Capture::Node> nodes;
  std::mt19937_64 random;
  uint64_t seed;
};

/// An event as streams see it; outlives the event.
struct EventState {
  std::mutex mutex;
  uint64_t recorded = 0, happened = 0;
  std::shared_ptr<StreamState> stream; ///< Where it was last recorded.
  /// If that was in a capture: which, and the nodes that it comes after.
  std::shared_ptr<Capture> capture;
  std::vector<size_t> after;
};

/// A stream as others see it; outlives the stream.
class StreamState : public std::enable_shared_from_this<StreamState> {
public:
  /// Seed 0: nothing is done before somebody must wait for it. Others decide when it is done earlier.
  explicit StreamState(uint64_t seed) : seed(seed), random(seed) {}

  absl::Status add(HostTask &task);
  absl::Status record(const std::shared_ptr<EventState> &event);
  absl::Status wait(const std::shared_ptr<EventState> &event);
  /// Does work until `event` has happened `count` times.
  void advance(EventState &event, uint64_t count);
  absl::Status synchronize();

  absl::Status beginCapture();
  absl::StatusOr<std::unique_ptr<HostTask>> endCapture();

private:
  struct Entry {
    HostTask *task = nullptr;
    std::shared_ptr<EventState> recorded, awaited;
    uint64_t count = 0; ///< Of the event.
  };
  /// Adds to the queue, and does now and then what is in it.
  absl::Status push(std::unique_lock<std::mutex> &lock, Entry entry);
  /// Does the first entry of the queue, or waits until another thread has. `lock` is that of `mutex`.
  void step(std::unique_lock<std::mutex> &lock);

  absl::Status waitCaptured(EventState &event);

  const uint64_t seed;
  std::mt19937_64 random;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Entry> queue;
  size_t next = 0; ///< In the queue.
  bool working = false;
  std::shared_ptr<Capture> capture; ///< If it is captured; then its last nodes:
  std::vector<size_t> last;
  absl::Status failure; ///< Nothing more is done after the first one.
};

class EmulatedStream : public DeviceStream {
public:
  explicit EmulatedStream(uint64_t seed) : state(std::make_shared<StreamState>(seed)) {}
  ~EmulatedStream() override { (void)state->synchronize(); }
  absl::Status wait(const DeviceEvent &event) override;
  absl::Status synchronize() override { return state->synchronize(); }
  absl::Status call(HostTask &task) override { return state->add(task); }

  std::shared_ptr<StreamState> state;
};

class EmulatedEvent : public DeviceEvent {
public:
  absl::Status record(DeviceStream &stream) override {
    return static_cast<EmulatedStream &>(stream).state->record(state);
  }

  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

class EmulatedWork : public DeviceWork {
public:
  absl::Status issue(DeviceStream &stream) override { return stream.call(*task); }

  explicit EmulatedWork(std::unique_ptr<HostTask> task) : task(std::move(task)) {}

private:
  std::unique_ptr<HostTask> task;
};

} // namespace dovetail::runtime::emulated

#endif // DOVETAIL_RUNTIME_BACKEND_EMULATED_EMULATEDSTREAM_H
