//===- SocketTransport.cpp - Messages by sockets -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the transport `sockets`: the host sends what is in its memory when a stream comes to it.
//
//===----------------------------------------------------------------------===//

#include "SocketMesh.h"

#include "dovetail/runtime/PluginBuild.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::sockets;

namespace {

class SocketWork : public DeviceWork, public HostTask {
public:
  explicit SocketWork(std::shared_ptr<SocketMesh> mesh) : mesh(std::move(mesh)) {}
  absl::Status issue(DeviceStream &stream) override { return stream.call(*this); }

protected:
  std::shared_ptr<SocketMesh> mesh;
};

class Exchange : public SocketWork {
public:
  Exchange(std::shared_ptr<SocketMesh> mesh, std::vector<Message> sends, std::vector<Message> receives)
      : SocketWork(std::move(mesh)), sends(std::move(sends)), receives(std::move(receives)) {}
  absl::Status perform() override { return mesh->exchange(sends, receives); }

private:
  std::vector<Message> sends, receives;
};

class CollectiveWork : public SocketWork {
public:
  CollectiveWork(std::shared_ptr<SocketMesh> mesh, const Collective &collective)
      : SocketWork(std::move(mesh)), collective(collective) {}
  absl::Status perform() override { return mesh->perform(collective); }

private:
  Collective collective;
};

class SocketTransport : public Transport {
public:
  SocketTransport(std::string name, std::shared_ptr<SocketMesh> mesh, std::shared_ptr<DeviceContext> device)
      : name(std::move(name)), mesh(std::move(mesh)), device(std::move(device)) {}

  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareExchange(std::vector<Message> sends,
                                                              std::vector<Message> receives) override {
    for (const std::vector<Message> *messages : {&sends, &receives})
      for (const Message &message : *messages)
        if (absl::Status status = checkMemory(message.data, message.bytes); !status.ok())
          return status;
    return std::make_unique<Exchange>(mesh, std::move(sends), std::move(receives));
  }
  // As NCCL's: largest and least numbers lose those that are none there.
  bool hasReduction(layout::ReductionKind kind, ElementType) const override {
    return kind == layout::ReductionKind::Sum || kind == layout::ReductionKind::Prod;
  }
  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareCollective(const Collective &collective) override {
    int64_t bytes = collective.elements * elementSize(collective.type), all = bytes * mesh->size();
    absl::Status status =
        checkMemory(collective.source, collective.kind == layout::ExchangeKind::ReduceScatter ? all : bytes);
    if (status.ok())
      status = checkMemory(collective.target, collective.kind == layout::ExchangeKind::AllGather ? all : bytes);
    if (!status.ok())
      return status;
    return std::make_unique<CollectiveWork>(mesh, collective);
  }

  absl::StatusOr<std::unique_ptr<Transport>> split(const std::vector<int> &members) override {
    ++splits;
    auto own = std::find(members.begin(), members.end(), mesh->rank());
    std::string part = absl::StrCat(name, "-", splits, "-", members[0]);
    absl::StatusOr<std::unique_ptr<SocketMesh>> made =
        SocketMesh::join(part, static_cast<int>(own - members.begin()), static_cast<int>(members.size()));
    if (!made.ok())
      return made.status();
    return std::make_unique<SocketTransport>(part, *std::move(made), device);
  }

  absl::Status check() override { return absl::OkStatus(); }
  void abort() override { mesh->shutDown(); }

private:
  absl::Status checkMemory(const std::byte *data, int64_t bytes) const {
    return device && bytes > 0 ? device->checkMemory(data, bytes) : absl::OkStatus();
  }

  std::string name;
  std::shared_ptr<SocketMesh> mesh;
  std::shared_ptr<DeviceContext> device; ///< Null on CPUs.
  int splits = 0;
};

absl::StatusOr<std::string> nameGroup() { return SocketMesh::newName(); }

absl::StatusOr<std::unique_ptr<Transport>> joinGroup(const std::string &name, GroupMember member) {
  absl::StatusOr<std::unique_ptr<SocketMesh>> mesh = SocketMesh::join(name, member.rank, member.size);
  if (!mesh.ok())
    return mesh.status();
  return std::make_unique<SocketTransport>(name, *std::move(mesh), std::move(member.device));
}

} // namespace

extern "C" __attribute__((visibility("default"))) const TransportPlugin *dovetailTransportPlugin() {
  static const TransportPlugin plugin = {
      .version = transportPluginVersion,
      .build = pluginBuild,
      .memory = hostMemory,
      .description = "each process is a rank of this machine, for tests",
      .nameGroup = nameGroup,
      .joinGroup = joinGroup,
      .isPublic = false,
  };
  return &plugin;
}
