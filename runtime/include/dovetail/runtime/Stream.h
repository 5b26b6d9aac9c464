//===- Stream.h - Work in order ------------------------------- -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines streams, which do work in order, and events, which put streams in order with one another: what plug-ins for
// devices offer, and all that plug-ins for transports know of a device.
//
// Work is *issued* to a stream and done later, in the order of the stream; errors of the work itself may come with any
// later call, at the latest with `synchronize`. Nothing here allocates but for what prepares work.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_STREAM_H
#define DOVETAIL_RUNTIME_STREAM_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>

namespace dovetail::runtime {

/// The kind of memory that the host's threads read and write: that of programs for the CPU, and of emulated devices.
inline constexpr const char *hostMemory = "host";

class DeviceStream;

/// A point in the work of a stream. Events may be waited for by streams of all devices of a plug-in, from any thread,
/// while nobody records them. They may be destroyed after what made them.
class DeviceEvent {
public:
  virtual ~DeviceEvent() = default;
  /// From now on it stands for what has been issued to `stream` so far.
  virtual absl::Status record(DeviceStream &stream) = 0;
};

/// Something that the host does when a stream comes to it.
class HostTask {
public:
  virtual ~HostTask() = default;
  virtual absl::Status perform() = 0;
};

/// Work done one after another.
class DeviceStream {
public:
  virtual ~DeviceStream() = default;
  /// What is issued from now on begins when the event, as it was last recorded, has happened. Nothing to wait for when
  /// it never was.
  virtual absl::Status wait(const DeviceEvent &event) = 0;
  /// Returns when all work is done. Errors: what went wrong with it.
  virtual absl::Status synchronize() = 0;
  /// Issues `task`, which outlives what is issued. Errors: UNIMPLEMENTED, unless the memory is `hostMemory`.
  virtual absl::Status call(HostTask &task) = 0;
  /// What the vendor's libraries call it, such as a CUstream; null if there are none.
  virtual void *nativeHandle() const { return nullptr; }
};

/// Something prepared once that is then done any number of times.
class DeviceWork {
public:
  virtual ~DeviceWork() = default;
  virtual absl::Status issue(DeviceStream &stream) = 0;
  /// The same where a stream does at once what is issued to it (`Mover::doesAtOnce`), but for what waits for other
  /// processes: that may still be under way, and `proceed` sees to it.
  virtual absl::Status begin(DeviceStream &stream) { return issue(stream); }
  /// Whether what was begun is done, which is waited for if `waits`. Errors: what went wrong with it.
  virtual absl::StatusOr<bool> proceed(bool /*waits*/) { return true; }
};

/// A device as all of this process share it. Thread-safe.
class DeviceContext {
public:
  virtual ~DeviceContext() = default;
  /// Makes it the device that calls of this thread to the vendor's libraries are for, until `leave`.
  virtual void enter() const {}
  virtual void leave() const {}
  /// Whether messages may come from there and go there, for devices that check. Errors: INTERNAL.
  virtual absl::Status checkMemory(const std::byte *, int64_t) const { return absl::OkStatus(); }
  /// A name that no other device has, on any machine, as the vendor's tools show it. Empty if there is none.
  virtual std::string uniqueName() const { return {}; }
};

/// The device is current on this thread as long as this lives.
class DeviceScope {
public:
  explicit DeviceScope(const DeviceContext &context) : context(context) { context.enter(); }
  ~DeviceScope() { context.leave(); }
  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;

private:
  const DeviceContext &context;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_STREAM_H
