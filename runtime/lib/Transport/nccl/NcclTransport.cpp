//===- NcclTransport.cpp - Messages by NCCL ------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NcclApi.h"

#include "dovetail/runtime/PluginBuild.h"
#include "dovetail/runtime/Transport.h"

#include "absl/strings/str_cat.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using layout::ReductionKind;

namespace {

absl::StatusOr<const NcclApi *> nccl() {
  static const auto *api = new absl::StatusOr<NcclApi>(NcclApi::open());
  if (!api->ok())
    return api->status();
  return &**api;
}

std::optional<ncclDataType_t> dataTypeOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return ncclFloat32;
  case ElementType::F64:
    return ncclFloat64;
  case ElementType::F16:
    return ncclFloat16;
  case ElementType::BF16:
    return ncclBfloat16;
  case ElementType::I8:
    return ncclInt8;
  case ElementType::I32:
    return ncclInt32;
  case ElementType::I64:
    return ncclInt64;
  case ElementType::U8:
    return ncclUint8;
  case ElementType::U32:
    return ncclUint32;
  case ElementType::U64:
    return ncclUint64;
  default:
    return std::nullopt;
  }
}

bool isFloat(ncclDataType_t type) {
  return type == ncclFloat32 || type == ncclFloat64 || type == ncclFloat16 || type == ncclBfloat16;
}

std::optional<ncclRedOp_t> operationOf(ReductionKind kind, ncclDataType_t type) {
  switch (kind) {
  case ReductionKind::Sum:
    return ncclSum;
  case ReductionKind::Prod:
    return ncclProd;
  case ReductionKind::Max:
  case ReductionKind::Min:
    // NCCL drops numbers that are none; Dovetail keeps them.
    if (isFloat(type))
      return std::nullopt;
    return kind == ReductionKind::Max ? ncclMax : ncclMin;
  default:
    return std::nullopt;
  }
}

/// A communicator of NCCL, shared with the work that was prepared for it.
class Group {
public:
  Group(const NcclApi &api, std::shared_ptr<DeviceContext> device) : api(api), device(std::move(device)) {}
  ~Group() {
    if (!handle || isOver)
      return;
    DeviceScope scope(*device);
    api.ncclCommDestroy(handle);
  }

  absl::Status check(ncclResult_t result, const char *function) const { return api.check(result, function, handle); }

  /// Calls `body`, unless all is over.
  template <typename Body> absl::Status call(Body body) {
    std::lock_guard lock(calling);
    if (isOver)
      return absl::UnavailableError(absl::StrCat("NCCL ", api.version, ": the communication was ended"));
    DeviceScope scope(*device);
    return body();
  }

  /// What NCCL has found out since. Nothing while a call is under way, which sees it itself.
  absl::Status checkLater() {
    std::unique_lock lock(calling, std::try_to_lock);
    if (!lock || isOver)
      return absl::OkStatus();
    ncclResult_t found = ncclSuccess;
    absl::Status status = check(api.ncclCommGetAsyncError(handle, &found), "ncclCommGetAsyncError");
    return status.ok() ? check(found, "the communication") : status;
  }

  void abort() {
    {
      // A call may be waiting for a rank that is lost; then nothing but this ends it.
      std::unique_lock lock(calling, std::chrono::seconds(1));
      if (isOver.exchange(true) || !handle)
        return;
    }
    // NCCL waits until the graphs with calls of the communicator are gone. Whoever has them may be about to issue more,
    // and is told instead of waiting for this.
    DeviceScope scope(*device);
    api.ncclCommAbort(handle);
  }

  const NcclApi &api;
  std::shared_ptr<DeviceContext> device;
  ncclComm_t handle = nullptr;

private:
  std::timed_mutex calling;
  std::atomic<bool> isOver = false;
};

class Exchange : public DeviceWork {
public:
  Exchange(std::shared_ptr<Group> group, std::vector<Message> sends, std::vector<Message> receives)
      : group(std::move(group)), sends(std::move(sends)), receives(std::move(receives)) {}

  absl::Status issue(DeviceStream &stream) override {
    return group->call([&] {
      const NcclApi &api = group->api;
      auto raw = static_cast<cudaStream_t>(stream.nativeHandle());
      absl::Status status = group->check(api.ncclGroupStart(), "ncclGroupStart");
      if (!status.ok())
        return status;
      for (const Message &message : sends)
        if (status.ok())
          status = group->check(api.ncclSend(message.data, message.bytes, ncclInt8, message.peer, group->handle, raw),
                                "ncclSend");
      for (const Message &message : receives)
        if (status.ok())
          status = group->check(api.ncclRecv(message.data, message.bytes, ncclInt8, message.peer, group->handle, raw),
                                "ncclRecv");
      absl::Status ended = group->check(api.ncclGroupEnd(), "ncclGroupEnd");
      return status.ok() ? ended : status;
    });
  }

private:
  std::shared_ptr<Group> group;
  std::vector<Message> sends, receives;
};

class CollectiveWork : public DeviceWork {
public:
  CollectiveWork(std::shared_ptr<Group> group, const Collective &collective)
      : group(std::move(group)), collective(collective) {}

  absl::Status issue(DeviceStream &stream) override {
    return group->call([&] {
      const NcclApi &api = group->api;
      const Collective &what = collective;
      auto raw = static_cast<cudaStream_t>(stream.nativeHandle());
      if (what.kind == layout::ExchangeKind::AllGather)
        return group->check(api.ncclAllGather(what.source, what.target, what.elements * elementSize(what.type),
                                              ncclInt8, group->handle, raw),
                            "ncclAllGather");
      ncclDataType_t type = *dataTypeOf(what.type);
      ncclRedOp_t operation = *operationOf(what.reduction, type);
      if (what.kind == layout::ExchangeKind::AllReduce)
        return group->check(
            api.ncclAllReduce(what.source, what.target, what.elements, type, operation, group->handle, raw),
            "ncclAllReduce");
      return group->check(
          api.ncclReduceScatter(what.source, what.target, what.elements, type, operation, group->handle, raw),
          "ncclReduceScatter");
    });
  }

private:
  std::shared_ptr<Group> group;
  Collective collective;
};

class NcclTransport : public Transport {
public:
  NcclTransport(std::shared_ptr<Group> group, int rank) : group(std::move(group)), rank(rank) {}

  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareExchange(std::vector<Message> sends,
                                                              std::vector<Message> receives) override {
    return std::make_unique<Exchange>(group, std::move(sends), std::move(receives));
  }

  bool hasReduction(ReductionKind kind, ElementType type) const override {
    std::optional<ncclDataType_t> dataType = dataTypeOf(type);
    return dataType && operationOf(kind, *dataType);
  }
  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareCollective(const Collective &collective) override {
    return std::make_unique<CollectiveWork>(group, collective);
  }

  absl::StatusOr<std::unique_ptr<Transport>> split(const std::vector<int> &members) override {
    auto part = std::make_shared<Group>(group->api, group->device);
    absl::Status status = group->call([&] {
      return group->check(group->api.ncclCommSplit(group->handle, members[0], rank, &part->handle, nullptr),
                          "ncclCommSplit");
    });
    if (!status.ok())
      return status;
    return std::make_unique<NcclTransport>(std::move(part), rank);
  }

  absl::Status check() override { return group->checkLater(); }
  void abort() override { group->abort(); }

private:
  std::shared_ptr<Group> group;
  int rank; ///< Of the world.
};

absl::StatusOr<std::string> nameGroup() {
  absl::StatusOr<const NcclApi *> api = nccl();
  if (!api.ok())
    return api.status();
  ncclUniqueId id = {};
  if (absl::Status status = (*api)->check((*api)->ncclGetUniqueId(&id), "ncclGetUniqueId"); !status.ok())
    return status;
  return std::string(id.internal, sizeof(id.internal));
}

absl::StatusOr<std::unique_ptr<Transport>> joinGroup(const std::string &name, GroupMember member) {
  absl::StatusOr<const NcclApi *> api = nccl();
  if (!api.ok())
    return api.status();
  ncclUniqueId id = {};
  if (name.size() != sizeof(id.internal))
    return absl::UnavailableError("rank 0 has another version of NCCL, or another program answers there");
  std::memcpy(id.internal, name.data(), sizeof(id.internal));
  auto group = std::make_shared<Group>(**api, std::move(member.device));
  DeviceScope scope(*group->device);
  ncclResult_t result = (*api)->ncclCommInitRank(&group->handle, member.size, id, member.rank);
  if (absl::Status status = group->check(result, "ncclCommInitRank"); !status.ok())
    return status;
  return std::make_unique<NcclTransport>(std::move(group), member.rank);
}

std::vector<std::pair<std::string, std::string>> listLibraries() {
  absl::StatusOr<const NcclApi *> api = nccl();
  return {{"NCCL", api.ok() ? (*api)->version : std::string(api.status().message())}};
}

} // namespace

extern "C" __attribute__((visibility("default"))) const TransportPlugin *dovetailTransportPlugin() {
  static const TransportPlugin plugin = {
      .version = transportPluginVersion,
      .build = pluginBuild,
      .memory = "cuda",
      .description = "each process is a rank with a GPU of NVIDIA",
      .nameGroup = nameGroup,
      .joinGroup = joinGroup,
      .listLibraries = listLibraries,
      .sharingVariable = "NCCL_MULTI_RANK_GPU_ENABLE",
  };
  return &plugin;
}
