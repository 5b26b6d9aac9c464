//===- EmulatedTransport.cpp - Messages between emulated devices ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedTransport.h"

#include "EmulatedMemory.h"
#include "EmulatedStream.h"
#include "SocketMesh.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::emulated;

namespace {

class ExchangeJob : public Job {
public:
  ExchangeJob(std::shared_ptr<SocketMesh> mesh, std::vector<Message> sends, std::vector<Message> receives)
      : mesh(std::move(mesh)), sends(std::move(sends)), receives(std::move(receives)) {}
  absl::Status perform() override { return mesh->exchange(sends, receives); }

private:
  std::shared_ptr<SocketMesh> mesh;
  std::vector<Message> sends, receives;
};

class CollectiveJob : public Job {
public:
  CollectiveJob(std::shared_ptr<SocketMesh> mesh, const Collective &collective)
      : mesh(std::move(mesh)), collective(collective) {}
  absl::Status perform() override { return mesh->perform(collective); }

private:
  std::shared_ptr<SocketMesh> mesh;
  Collective collective;
};

class EmulatedTransport : public Transport {
public:
  EmulatedTransport(std::string name, std::shared_ptr<SocketMesh> mesh)
      : name(std::move(name)), mesh(std::move(mesh)) {}

  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareExchange(std::vector<Message> sends,
                                                              std::vector<Message> receives) override {
    for (const std::vector<Message> *messages : {&sends, &receives})
      for (const Message &message : *messages)
        if (message.bytes > 0 && !isDeviceMemory(message.data, message.bytes))
          return absl::InternalError("a message leaves the device's memory");
    return std::make_unique<EmulatedWork>(std::make_unique<ExchangeJob>(mesh, std::move(sends), std::move(receives)));
  }
  // As NCCL's: largest and least numbers lose those that are none there.
  bool hasReduction(layout::ReductionKind kind, ElementType) const override {
    return kind == layout::ReductionKind::Sum || kind == layout::ReductionKind::Prod;
  }
  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareCollective(const Collective &collective) override {
    int64_t bytes = collective.elements * elementSize(collective.type), all = bytes * mesh->size();
    if (!isDeviceMemory(collective.source, collective.kind == CollectiveKind::ReduceScatter ? all : bytes) ||
        !isDeviceMemory(collective.target, collective.kind == CollectiveKind::AllGather ? all : bytes))
      return absl::InternalError("a collective leaves the device's memory");
    return std::make_unique<EmulatedWork>(std::make_unique<CollectiveJob>(mesh, collective));
  }

  absl::StatusOr<std::unique_ptr<Transport>> split(const std::vector<int> &members) override {
    ++splits;
    if (members.empty())
      return nullptr;
    auto own = std::find(members.begin(), members.end(), mesh->rank());
    std::string part = absl::StrCat(name, "-", splits, "-", members[0]);
    absl::StatusOr<std::unique_ptr<SocketMesh>> made =
        SocketMesh::join(part, static_cast<int>(own - members.begin()), static_cast<int>(members.size()));
    if (!made.ok())
      return made.status();
    return std::make_unique<EmulatedTransport>(part, *std::move(made));
  }

  absl::Status check() override { return absl::OkStatus(); }
  void abort() override { mesh->shutDown(); }

private:
  std::string name;
  std::shared_ptr<SocketMesh> mesh;
  int splits = 0;
};

} // namespace

absl::StatusOr<std::string> emulated::nameGroup() { return SocketMesh::newName(); }

absl::StatusOr<std::unique_ptr<Transport>> emulated::joinGroup(const std::string &name, int rank, int size, int) {
  absl::StatusOr<std::unique_ptr<SocketMesh>> mesh = SocketMesh::join(name, rank, size);
  if (!mesh.ok())
    return mesh.status();
  return std::make_unique<EmulatedTransport>(name, *std::move(mesh));
}
