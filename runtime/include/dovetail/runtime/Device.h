//===- Device.h - What a device plug-in offers ------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the interface between sessions and devices: accelerators with memory of their own that run blocks of threads.
// A plug-in implements it, the shared library `libdovetail_<target>.so`, which is opened when a program for that target
// is run.
//
// A device belongs to one session and is used by one thread, but for what is said to be otherwise. What is prepared on
// it is issued to streams; see Stream.h.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_DEVICE_H
#define DOVETAIL_RUNTIME_DEVICE_H

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/BoxCopy.h"
#include "dovetail/runtime/CallReport.h"
#include "dovetail/runtime/RankMemory.h"
#include "dovetail/runtime/Stream.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dovetail::runtime {

/// What a device is and can do.
struct DeviceInfo {
  std::string target;      ///< As in plans.
  std::string name;        ///< The product's name.
  std::string description; ///< In one sentence, for reports: what it is, versions of driver and libraries.
  std::string arch;        ///< Such as `sm_90`.
  int64_t memoryBytes = 0;
  int multiprocessors = 1; ///< How many blocks run at a time, if each fills one.
  int maxThreads = 1024;   ///< Of a block.
  int64_t maxSharedBytes = 0;
  int64_t maxBlocks = 1;                                      ///< Of a launch that is worth while.
  bool capturesStreams = false;                               ///< Whether `beginCapture` works.
  int dlpackDevice = 0;                                       ///< Its number among DLPack's kinds of devices; 0: none.
  int ordinal = 0;                                            ///< Among the devices of the plug-in.
  std::vector<std::pair<std::string, std::string>> libraries; ///< Name and version, as found.
};

/// Memory of a device, or pinned memory of the host. Freed on destruction, which may happen on any thread and after the
/// device is gone.
class DeviceMemory {
public:
  virtual ~DeviceMemory() = default;
  std::byte *data() const { return address; }
  int64_t size() const { return bytes; }

protected:
  std::byte *address = nullptr;
  int64_t bytes = 0;
};

/// Memory that a launch may use, for devices that check.
struct DeviceRegion {
  std::string name; ///< As in messages: `tensor 'x'`.
  const std::byte *data;
  int64_t bytes;
  bool written;
};

/// Everything about the launch of a kernel.
struct LaunchDescription {
  std::string name; ///< As in messages: rank and step.
  int64_t blocks = 1;
  int threads = 1;
  int64_t sharedBytes = 0;
  /// The kernel's parameters, in this order: see KernelAbi.h.
  std::vector<void *> pointers;
  std::vector<int64_t> numbers;
  std::vector<DeviceRegion> regions;
};

/// Kernels loaded on a device; they must outlive the launches prepared from them.
class DeviceCode {
public:
  virtual ~DeviceCode() = default;
  /// Errors: DATA_LOSS when there is no kernel `symbol`; FAILED_PRECONDITION when the device cannot launch it so.
  virtual absl::StatusOr<std::unique_ptr<DeviceWork>> prepareLaunch(const std::string &symbol,
                                                                    LaunchDescription description) = 0;
};

/// A library's convolution, matrix product, pooling or reorder on one rank, with its epilogue. It has as much memory as
/// the plan and the boxes say, and takes no implementation that needs more.
class DeviceLibraryCall {
public:
  virtual ~DeviceLibraryCall() = default;
  /// Called once, when the buffers of the rank have their addresses: the call's own memory while it runs, and for what
  /// `pack` makes.
  virtual absl::Status bind(std::byte *scratch, std::byte *packed) = 0;
  /// Called once after the prologue: what depends on constants alone.
  virtual absl::Status pack(DeviceStream &) { return absl::OkStatus(); }
  virtual absl::Status issue(DeviceStream &stream) = 0;
  /// How the library does it, in full where it was prepared with `explain`. To be called after `pack`.
  virtual LibraryCallReport report() const { return {}; }
};

/// What to know when a library call is prepared.
struct LibraryCallOptions {
  bool inPrologue = false; ///< It runs once: nothing is worth packing or measuring.
  bool autotune = false;   ///< Measure the library's algorithms with `pack`, and from then on use the fastest.
  bool explain = false;    ///< Collect what `report` says.
};

/// An open device, for one session.
class Device {
public:
  virtual ~Device() = default;
  virtual const DeviceInfo &info() const = 0;

  /// Memory aligned to 256 bytes, with any contents. `bytes` may be 0. Errors: RESOURCE_EXHAUSTED.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate(int64_t bytes) = 0;
  /// Memory of the host that the device reads and writes, too: copies (`prepareCopies`) take its addresses.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> allocatePinned(int64_t bytes) = 0;
  /// Copies to or from any memory of the host; returns when that is done. For start-up only.
  virtual absl::Status copyToDevice(std::byte *device, const std::byte *host, int64_t bytes) = 0;
  virtual absl::Status copyToHost(std::byte *host, const std::byte *device, int64_t bytes) = 0;

  virtual absl::StatusOr<std::unique_ptr<DeviceStream>> createStream() = 0;
  virtual absl::StatusOr<std::unique_ptr<DeviceEvent>> createEvent() = 0;

  /// Loads the program's code: the best of several images of the same kernels. The bytes outlive the result. Errors:
  /// FAILED_PRECONDITION when there is none for this device.
  virtual absl::StatusOr<std::unique_ptr<DeviceCode>> loadCode(absl::Span<const CodeImage> images) = 0;

  /// Copies of boxes, as few launches as possible. Targets are disjoint. Memory may be this device's, that of another
  /// device of the plug-in, or pinned memory of the host.
  virtual absl::StatusOr<std::unique_ptr<DeviceWork>> prepareCopies(std::vector<StridedBox> boxes) = 0;
  virtual absl::StatusOr<std::unique_ptr<DeviceWork>> prepareCombination(CombinationDescription description) = 0;

  /// A library call of a plan. `memory` outlives it and has all addresses when `bind` is called. Null when the rank has
  /// nothing to do. Errors: UNIMPLEMENTED for what the library does not have; RESOURCE_EXHAUSTED for what it has with
  /// more memory than the plan allows only.
  virtual absl::StatusOr<std::unique_ptr<DeviceLibraryCall>>
  prepareLibraryCall(const RankMemory &memory, const StepInfo &step, LibraryCallOptions options) = 0;

  /// Until `endCapture`, work issued to `stream` is recorded and not done. Other streams join by waiting for an event
  /// of it, and must have been waited for at the end. `synchronize` must not be called in between.
  virtual absl::Status beginCapture(DeviceStream &stream) = 0;
  /// What was recorded, to be issued as a whole. When `beginCapture` succeeded, this must be called.
  virtual absl::StatusOr<std::unique_ptr<DeviceWork>> endCapture(DeviceStream &stream) = 0;
  /// The nodes recorded so far, those of streams that joined included; none if no capture is under way, or if the
  /// device cannot tell. For reports: the time that it takes grows with the number of nodes.
  virtual absl::StatusOr<std::optional<GraphNodes>> recordedNodes(DeviceStream &) { return std::nullopt; }
};

/// What a plug-in is.
struct DevicePlugin {
  /// `devicePluginVersion` as the plug-in was compiled.
  uint32_t version;
  /// `pluginBuild` of PluginBuild.h as the plug-in was compiled, as in `TransportPlugin`.
  const char *build;
  /// The kind of its memory, as in `TransportPlugin`: transports that move such memory connect its ranks.
  const char *memory;
  /// How many devices there are. Errors: UNAVAILABLE, with what is missing (a driver, a library, its version) and what
  /// to do.
  absl::StatusOr<int> (*countDevices)();
  /// Opens a device, 0 <= ordinal < number of devices. Thread-safe.
  absl::StatusOr<std::unique_ptr<Device>> (*openDevice)(int ordinal);
  /// What transports need of the device, 0 <= ordinal < number of devices. Thread-safe.
  absl::StatusOr<std::shared_ptr<DeviceContext>> (*openContext)(int ordinal);
  /// The libraries that some steps need: the name of each, and its version or what is the matter with it. May be null.
  std::vector<std::pair<std::string, std::string>> (*listLibraries)() = nullptr;
};

/// Incremented whenever anything in this header or those that it includes changes.
inline constexpr uint32_t devicePluginVersion = 12;

/// The one symbol of a plug-in: `extern "C" const DevicePlugin *dovetailDevicePlugin()`.
inline constexpr const char *devicePluginSymbol = "dovetailDevicePlugin";

/// Opens the plug-in for a target, once for each process: beside the library or program that contains this function,
/// then in the folders of the variable DOVETAIL_PLUGINS (separated by colons). Thread-safe. Errors: UNAVAILABLE, naming
/// the library and the places looked at; FAILED_PRECONDITION for a plug-in of another version.
absl::StatusOr<const DevicePlugin *> openDevicePlugin(const std::string &target);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_DEVICE_H
