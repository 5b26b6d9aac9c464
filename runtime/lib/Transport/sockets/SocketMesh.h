//===- SocketMesh.h - Bytes between processes ------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how processes of one machine send each other bytes, for tests of what is done between GPUs elsewhere.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_SOCKETS_SOCKETMESH_H
#define DOVETAIL_RUNTIME_TRANSPORT_SOCKETS_SOCKETMESH_H

#include "dovetail/runtime/Transport.h"

#include "absl/types/span.h"

#include <string>

namespace dovetail::runtime::sockets {

/// A connection with each of the other ranks of a group.
class SocketMesh {
public:
  /// A name that no other group has.
  static std::string newName();
  /// Returns when all ranks have come. Errors: DEADLINE_EXCEEDED after a minute.
  static absl::StatusOr<std::unique_ptr<SocketMesh>> join(const std::string &name, int rank, int size);
  ~SocketMesh();
  SocketMesh(const SocketMesh &) = delete;
  SocketMesh &operator=(const SocketMesh &) = delete;

  int rank() const { return ownRank; }
  int size() const { return static_cast<int>(sockets.size()); }

  /// Returns when all bytes are sent and received, between a pair of ranks in the order of the list. Errors:
  /// UNAVAILABLE, naming the rank that is gone.
  absl::Status exchange(absl::Span<const Message> sends, absl::Span<const Message> receives);
  /// With messages of all to all, and contributions combined in descending order of ranks.
  absl::Status perform(const Collective &collective);
  /// Makes `exchange` return, now and later. Thread-safe.
  void shutDown();

private:
  SocketMesh(int rank, int size) : ownRank(rank), sockets(size, -1) {}

  int ownRank;
  std::vector<int> sockets;
};

} // namespace dovetail::runtime::sockets

#endif // DOVETAIL_RUNTIME_TRANSPORT_SOCKETS_SOCKETMESH_H
