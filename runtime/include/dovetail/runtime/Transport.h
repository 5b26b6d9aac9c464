//===- Transport.h - Messages between processes ----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the bytes of an exchange get from one process to another. A transport is a plug-in, the shared library
// `libdovetail_transport_<name>.so`, which is opened when ranks are to be connected with it (`--comm <name>`).
// Everything else about exchanges between processes is the same for all transports. They know of devices only what
// Stream.h says, and devices know nothing of them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_H
#define DOVETAIL_RUNTIME_TRANSPORT_H

#include "dovetail/runtime/MemoryView.h"
#include "dovetail/runtime/Stream.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dovetail::runtime {

/// Contiguous bytes of this rank, sent to or received from another.
struct Message {
  int peer;
  std::byte *data;
  int64_t bytes;
};

/// What all ranks of a group do with parts of equal size, one for each of them, in the order of ranks. `AllReduce` has
/// one part, that of all.
struct Collective {
  layout::ExchangeKind kind = layout::ExchangeKind::AllGather; ///< Neither `Messages` nor `PackedGather`.
  layout::ReductionKind reduction = layout::ReductionKind::None;
  ElementType type = ElementType::F32;
  int64_t elements = 0; ///< Of a part.
  const std::byte *source = nullptr;
  std::byte *target = nullptr;
};

/// Connects a rank with the others of a group. Work is prepared once and then issued to streams, in the same order on
/// all ranks.
class Transport {
public:
  virtual ~Transport() = default;

  /// All messages at once. For each pair of ranks both list the same ones in the same order.
  virtual absl::StatusOr<std::unique_ptr<DeviceWork>> prepareExchange(std::vector<Message> sends,
                                                                      std::vector<Message> receives) = 0;
  /// Whether there is a collective with results that are those of messages, but for the order of additions.
  bool hasCollective(layout::ExchangeKind kind, layout::ReductionKind reduction, ElementType type) const {
    return layout::isGather(kind) || (kind != layout::ExchangeKind::Messages && hasReduction(reduction, type));
  }
  /// Whether collectives reduce so. The same on all ranks.
  virtual bool hasReduction(layout::ReductionKind kind, ElementType type) const = 0;
  virtual absl::StatusOr<std::unique_ptr<DeviceWork>> prepareCollective(const Collective &collective) = 0;
  /// A group of these ranks, ascending, this one among them. All ranks of this group call it at once, and each is in
  /// one of the new groups. At start-up only.
  virtual absl::StatusOr<std::unique_ptr<Transport>> split(const std::vector<int> &members) = 0;

  /// Errors that came to light since. Thread-safe.
  virtual absl::Status check() = 0;
  /// Makes work that waits for other ranks end. Thread-safe, and may be called once only.
  virtual void abort() = 0;
  /// Whether messages of work that is destroyed may still be read or written, as it was given up and could not be
  /// called back. Then their memory must never be given back. Thread-safe.
  virtual bool holdsMemory() const { return false; }
};

/// A process that joins a group.
struct GroupMember {
  int rank = 0, size = 1;
  /// The device whose streams work is issued to. Null on CPUs, where it is done at once.
  std::shared_ptr<DeviceContext> device;
};

/// The processes of a run, where a transport knows by itself who they are: nobody has to say which rank one is, and how
/// it finds the others.
class ProcessWorld {
public:
  virtual ~ProcessWorld() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Processes of this machine that may use the same cores as this one, which counts, and the number of this one among
  /// them.
  virtual int sharers() const = 0;
  virtual int numberAmongSharers() const = 0;

  /// Carries bytes from rank 0 to all. All ranks call it, at start-up only. Errors: DEADLINE_EXCEEDED, UNAVAILABLE.
  virtual absl::StatusOr<std::string> broadcast(std::string bytes) = 0;
  /// Connects the ranks, which all call it, once.
  virtual absl::StatusOr<std::unique_ptr<Transport>> join() = 0;
};

/// What processes enter a world for.
struct WorldRequest {
  int ranks = 1; ///< Of the program.
  /// What the program that this is part of calls the processes, if it has said so, such as an `MPI_Fint`.
  std::optional<int> communicator;
  std::chrono::milliseconds timeout; ///< For start-up.
};

/// What a plug-in for a transport is.
struct TransportPlugin {
  /// `transportPluginVersion` as the plug-in was compiled.
  uint32_t version;
  /// `pluginBuild` of PluginBuild.h as the plug-in was compiled: versions do not tell builds of one day apart.
  const char *build;
  /// The kind of memory that messages are in: `hostMemory`, or what a `DevicePlugin` calls its own.
  const char *memory;
  /// What it connects, in a few words, as in `one GPU of NVIDIA for each process`.
  const char *description;
  /// A name for a new group of processes: the first makes it, and all join with it. Null, as what follows, with
  /// `enterWorld`.
  absl::StatusOr<std::string> (*nameGroup)();
  /// Joins a group. May wait for the others without end.
  absl::StatusOr<std::unique_ptr<Transport>> (*joinGroup)(const std::string &name, GroupMember member);
  /// The libraries that it needs: the name of each, and its version or what is the matter with it. May be null.
  std::vector<std::pair<std::string, std::string>> (*listLibraries)() = nullptr;
  /// Null: what the processes are, their launcher's environment says. All of them call it. Errors: UNAVAILABLE when
  /// they are not as many as the program has ranks, and as below.
  absl::StatusOr<std::unique_ptr<ProcessWorld>> (*enterWorld)(const WorldRequest &request) = nullptr;
  /// Whether users have a use for it: what only tests name is not listed.
  bool isPublic = true;
  /// A variable of the environment that is 1 where ranks may share a device. Null: they always may.
  const char *sharingVariable = nullptr;
};

/// Incremented whenever anything in this header or those that it includes changes.
inline constexpr uint32_t transportPluginVersion = 7;

/// The one symbol of a plug-in: `extern "C" const TransportPlugin *dovetailTransportPlugin()`.
inline constexpr const char *transportPluginSymbol = "dovetailTransportPlugin";

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_H
