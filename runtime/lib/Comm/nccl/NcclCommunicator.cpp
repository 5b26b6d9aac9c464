//===- NcclCommunicator.cpp - Exchanges by NCCL ------------------------------ ===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NcclCommunicator.h"

#include "../../Backend/cuda/Context.h"
#include "../Rendezvous.h"
#include "MessagePlan.h"
#include "NcclApi.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using layout::Box;
using layout::ReductionKind;

namespace {

/// NCCL's communicator, which a failure of any rank ends.
struct Connection {
  Connection(const NcclApi &api, std::shared_ptr<Context> context) : api(api), context(std::move(context)) {}

  const NcclApi &api;
  std::shared_ptr<Context> context;
  std::unique_ptr<Rendezvous> rendezvous;
  ncclComm_t communicator = nullptr;
  std::mutex mutex; ///< Of `isOver`.
  bool isOver = false;

  /// Makes kernels that wait for other ranks end.
  void end() {
    std::lock_guard lock(mutex);
    if (std::exchange(isOver, true) || !communicator)
      return;
    ContextScope scope(*context);
    api.ncclCommAbort(communicator);
  }
};

StridedBox stridedOf(const BoxPair &pair, const MemoryView &target, const MemoryView &source) {
  return {target.data + pair.getTargetOffset(), source.data + pair.getSourceOffset(), pair.getElementBytes(),
          pair.getLoops()};
}

void addCopies(const MemoryView &target, const MemoryView &source, const Box &box, std::vector<StridedBox> &copies) {
  std::vector<BoxPair> pairs;
  BoxPair::append(target, source, box, pairs);
  for (const BoxPair &pair : pairs)
    copies.push_back(stridedOf(pair, target, source));
}

class NcclChannel : public Channel {
public:
  NcclChannel(std::shared_ptr<Connection> connection, int rank, ChannelDescription description)
      : connection(std::move(connection)), rank(rank), description(std::move(description)) {}

  const ChannelDescription &getDescription() const { return description; }
  /// `orders[source]`: of the messages of this channel from that rank.
  absl::Status resolve(const std::vector<std::vector<std::vector<int>>> &orders);

  absl::Status start() override {
    if (absl::Status status = connection->rendezvous->failure(); !status.ok())
      return status;
    return description.mover->mark(*ready, Lane::Steps);
  }
  absl::Status finish() override;
  absl::Status join() override { return description.mover->wait(*complete, Lane::Steps); }
  /// The messages are sent when the target is complete.
  absl::Status release() override { return join(); }

private:
  struct Message {
    int peer;
    std::byte *data;
    int64_t bytes;
  };

  absl::Status issueMessages(DeviceStream &stream) const;
  absl::Status addWork(absl::StatusOr<std::unique_ptr<DeviceWork>> work) {
    if (work.ok())
      after.push_back(*std::move(work));
    return work.status();
  }

  std::shared_ptr<Connection> connection;
  int rank;
  ChannelDescription description;
  std::unique_ptr<DeviceMemory> staging;
  std::vector<Message> sends, receives;
  std::unique_ptr<DeviceWork> pack;               ///< All boxes of all peers in one launch.
  std::vector<std::unique_ptr<DeviceWork>> after; ///< What becomes of the messages.
  std::unique_ptr<Mark> ready, complete;
};

} // namespace

absl::Status NcclChannel::resolve(const std::vector<std::vector<std::vector<int>>> &orders) {
  Device *device = description.mover->getDevice();
  const MemoryView &source = description.source, &target = description.target;
  bool reduces = description.reduction != ReductionKind::None, inPlace = source.data == target.data;
  if (reduces && inPlace && !description.local.empty() && !description.receives.empty())
    return absl::InternalError(absl::StrCat("exchange '", description.name, "' combines values in their own memory"));

  // First the size of the staging memory, then addresses in it.
  struct Staged {
    MemoryView view;
    int64_t offset = -1; ///< Negative: where it is.
  };
  int64_t bytes = 0;
  auto place = [&](const MemoryView &memory, const Box &box, const std::vector<int> &order, bool mayStay) {
    Staged staged{messageView(memory.type, box, order), -1};
    if (mayStay && isMessage(memory, box, order)) {
      staged.view.data = memory.address(box);
    } else {
      staged.offset = bytes;
      bytes += (staged.view.bytes() + 255) / 256 * 256;
    }
    return staged;
  };
  std::vector<Staged> out, in;
  for (const layout::Transfer &transfer : description.sends)
    out.push_back(place(source, transfer.box, messageOrder(source, transfer.box), true));
  std::vector<size_t> taken(orders.size());
  for (const layout::Transfer &transfer : description.receives) {
    const auto &from = orders[transfer.source];
    size_t index = taken[transfer.source]++;
    if (index >= from.size() || static_cast<int>(from[index].size()) != transfer.box.rank())
      return absl::InternalError(absl::StrCat("rank ", transfer.source, " does not know what rank ", rank,
                                              " receives from it in exchange '", description.name, "'"));
    in.push_back(place(target, transfer.box, from[index], !reduces));
  }
  for (size_t from = 0; from < orders.size(); ++from)
    if (taken[from] != orders[from].size())
      return absl::InternalError(absl::StrCat("rank ", from, " sends more than rank ", rank,
                                              " receives from it in exchange '", description.name, "'"));
  absl::StatusOr<std::unique_ptr<DeviceMemory>> memory = device->allocate(bytes);
  if (!memory.ok())
    return memory.status();
  staging = *std::move(memory);

  std::vector<StridedBox> packs, copies;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].offset >= 0) {
      out[i].view.data = staging->data() + out[i].offset;
      addCopies(out[i].view, source, description.sends[i].box, packs);
    }
    sends.push_back({description.sends[i].dest, out[i].view.data, out[i].view.bytes()});
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].offset >= 0)
      in[i].view.data = staging->data() + in[i].offset;
    receives.push_back({description.receives[i].source, in[i].view.data, in[i].view.bytes()});
  }
  if (!packs.empty()) {
    absl::StatusOr<std::unique_ptr<DeviceWork>> work = device->prepareCopies(std::move(packs));
    if (!work.ok())
      return work.status();
    pack = *std::move(work);
  }

  if (!reduces) {
    if (!inPlace)
      for (const Box &box : description.local)
        addCopies(target, source, box, copies);
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i].offset >= 0)
        addCopies(target, in[i].view, description.receives[i].box, copies);
  } else {
    // In ascending order of the sources, this rank included: so all ranks get the same bits.
    struct Contribution {
      const MemoryView *view;
      Box box;
    };
    std::vector<Contribution> contributions;
    for (int from = 0; from < static_cast<int>(orders.size()); ++from) {
      if (from == rank)
        for (const Box &box : description.local)
          contributions.push_back({&source, box});
      for (size_t i = 0; i < in.size(); ++i)
        if (description.receives[i].source == from)
          contributions.push_back({&in[i].view, description.receives[i].box});
    }
    std::vector<Box> begun;
    std::vector<CombinationDescription> combinations;
    for (const Contribution &contribution : contributions) {
      const Box &box = contribution.box;
      if (std::find(begun.begin(), begun.end(), box) == begun.end()) {
        begun.push_back(box);
        addCopies(target, *contribution.view, box, copies);
        continue;
      }
      CombinationDescription combination{description.reduction, target.type, 0, 0, {}};
      Box firsts = box;
      if (description.reduction == ReductionKind::Moments) {
        int last = box.rank() - 1;
        firsts[last] = {0, 1};
        combination.targetMoment = target.offset(last, 1) * elementSize(target.type);
        combination.sourceMoment = contribution.view->offset(last, 1) * elementSize(target.type);
      }
      addCopies(target, *contribution.view, firsts, combination.boxes);
      combinations.push_back(std::move(combination));
    }
    if (!copies.empty())
      if (absl::Status status = addWork(device->prepareCopies(std::exchange(copies, {}))); !status.ok())
        return status;
    for (CombinationDescription &combination : combinations)
      if (absl::Status status = addWork(device->prepareCombination(std::move(combination))); !status.ok())
        return status;
  }
  if (!copies.empty())
    if (absl::Status status = addWork(device->prepareCopies(std::move(copies))); !status.ok())
      return status;
  for (std::unique_ptr<Mark> *mark : {&ready, &complete}) {
    absl::StatusOr<std::unique_ptr<Mark>> made = description.mover->createMark();
    if (!made.ok())
      return made.status();
    *mark = *std::move(made);
  }
  return absl::OkStatus();
}

absl::Status NcclChannel::issueMessages(DeviceStream &stream) const {
  if (sends.empty() && receives.empty())
    return absl::OkStatus();
  const NcclApi &api = connection->api;
  ContextScope scope(*connection->context);
  auto raw = reinterpret_cast<cudaStream_t>(handleOf(stream));
  absl::Status status = api.check(api.ncclGroupStart(), "ncclGroupStart", connection->communicator);
  if (!status.ok())
    return status;
  for (const Message &message : sends)
    if (status.ok())
      status =
          api.check(api.ncclSend(message.data, message.bytes, ncclInt8, message.peer, connection->communicator, raw),
                    "ncclSend", connection->communicator);
  for (const Message &message : receives)
    if (status.ok())
      status =
          api.check(api.ncclRecv(message.data, message.bytes, ncclInt8, message.peer, connection->communicator, raw),
                    "ncclRecv", connection->communicator);
  absl::Status ended = api.check(api.ncclGroupEnd(), "ncclGroupEnd", connection->communicator);
  return status.ok() ? ended : status;
}

absl::Status NcclChannel::finish() {
  if (absl::Status status = connection->rendezvous->failure(); !status.ok())
    return status;
  DeviceStream &stream = *description.mover->getStream(Lane::Moves);
  absl::Status status = description.mover->wait(*ready, Lane::Moves);
  if (status.ok() && pack)
    status = pack->issue(stream);
  if (status.ok())
    status = issueMessages(stream);
  for (const std::unique_ptr<DeviceWork> &work : after)
    if (status.ok())
      status = work->issue(stream);
  if (status.ok())
    return description.mover->mark(*complete, Lane::Moves);
  // When another rank's failure has ended NCCL, that is the reason.
  absl::Status reason = connection->rendezvous->failure();
  return reason.ok() ? annotate(status, absl::StrCat("rank ", rank, ", exchange '", description.name, "'")) : reason;
}

namespace {

class NcclCommunicator : public Communicator {
public:
  NcclCommunicator(std::shared_ptr<Connection> connection, LaunchEnvironment environment)
      : connection(std::move(connection)), environment(std::move(environment)) {}

  ~NcclCommunicator() override {
    {
      std::lock_guard lock(pollMutex);
      stopping = true;
    }
    pollSignal.notify_all();
    if (poller.joinable())
      poller.join();
    Connection &own = *connection;
    if (!own.rendezvous)
      return; // It never began.
    if (!own.rendezvous->failure().ok()) {
      own.end();
    } else {
      std::lock_guard lock(own.mutex);
      if (!std::exchange(own.isOver, true)) {
        ContextScope scope(*own.context);
        own.api.ncclCommDestroy(own.communicator);
      }
    }
    own.rendezvous.reset();
  }

  /// Meets the others, and begins to look after them.
  absl::Status begin(std::chrono::milliseconds timeout);

  int rank() const override { return environment.rank; }
  int size() const override { return environment.size; }

  absl::StatusOr<std::unique_ptr<Channel>> open(ChannelDescription description) override {
    if (!description.mover->getDevice())
      return absl::InvalidArgumentError("NCCL connects GPUs, but this program runs on CPUs; use --comm local");
    auto channel = std::make_unique<NcclChannel>(connection, environment.rank, std::move(description));
    channels.push_back(channel.get());
    return channel;
  }
  void keep(std::shared_ptr<void> kept) override { memory.push_back(std::move(kept)); }
  absl::Status connect() override;
  void setBusy(bool busy) override { connection->rendezvous->setBusy(busy); }
  void enterStep(const char *name) override { connection->rendezvous->enterStep(name); }
  absl::Status state() const override { return connection->rendezvous->failure(); }
  void abort(const absl::Status &status) override {
    connection->rendezvous->fail(annotate(status, absl::StrCat("rank ", environment.rank)));
  }

private:
  void poll();

  std::shared_ptr<Connection> connection;
  LaunchEnvironment environment;
  std::vector<NcclChannel *> channels; ///< Until `connect`.
  std::vector<std::shared_ptr<void>> memory;
  std::thread poller;
  std::mutex pollMutex;
  std::condition_variable pollSignal;
  bool stopping = false;
};

} // namespace

absl::Status NcclCommunicator::connect() {
  std::vector<const ChannelDescription *> descriptions;
  for (const NcclChannel *channel : channels)
    descriptions.push_back(&channel->getDescription());
  absl::StatusOr<std::vector<std::string>> packed = connection->rendezvous->allGather(packOrders(descriptions));
  if (!packed.ok())
    return packed.status();
  // For each channel and each source, the orders of its messages to this rank.
  std::vector<std::vector<std::vector<std::vector<int>>>> orders(channels.size());
  for (int source = 0; source < size(); ++source) {
    absl::StatusOr<std::vector<std::vector<std::vector<int>>>> own = unpackOrders((*packed)[source], rank());
    if (!own.ok())
      return own.status();
    if (own->size() != channels.size())
      return absl::InternalError(absl::StrCat("rank ", source, " runs another program than rank ", rank()));
    for (size_t channel = 0; channel < channels.size(); ++channel)
      orders[channel].push_back(std::move((*own)[channel]));
  }
  for (size_t channel = 0; channel < channels.size(); ++channel)
    if (absl::Status status = channels[channel]->resolve(orders[channel]); !status.ok())
      return status;
  channels.clear();
  connection->rendezvous->watch([connection = connection.get()](const absl::Status &) { connection->end(); });
  poller = std::thread([this] { poll(); });
  return absl::OkStatus();
}

/// Errors of the network come to light here.
void NcclCommunicator::poll() {
  std::unique_lock lock(pollMutex);
  while (!pollSignal.wait_for(lock, std::chrono::milliseconds(100), [&] { return stopping; })) {
    std::lock_guard guard(connection->mutex);
    if (connection->isOver)
      return;
    ncclResult_t found = ncclSuccess;
    absl::Status status = connection->api.check(connection->api.ncclCommGetAsyncError(connection->communicator, &found),
                                                "ncclCommGetAsyncError");
    if (status.ok())
      status = connection->api.check(found, "the communication", connection->communicator);
    if (!status.ok())
      abort(status);
  }
}

absl::Status NcclCommunicator::begin(std::chrono::milliseconds timeout) {
  absl::StatusOr<std::unique_ptr<Rendezvous>> met = Rendezvous::connect(environment, timeout);
  if (!met.ok())
    return met.status();
  connection->rendezvous = *std::move(met);
  ncclUniqueId id = {};
  if (rank() == 0)
    if (absl::Status status = connection->api.check(connection->api.ncclGetUniqueId(&id), "ncclGetUniqueId");
        !status.ok())
      return status;
  absl::StatusOr<std::vector<std::string>> ids =
      connection->rendezvous->allGather(std::string(id.internal, rank() == 0 ? sizeof(id.internal) : 0));
  if (!ids.ok())
    return ids.status();
  if ((*ids)[0].size() != sizeof(id.internal))
    return absl::UnavailableError("rank 0 sent something else than Dovetail does");
  std::memcpy(id.internal, (*ids)[0].data(), sizeof(id.internal));

  // NCCL waits for the others without end; a thread of its own can be left behind.
  struct Attempt {
    std::mutex mutex;
    std::condition_variable done;
    bool isDone = false;
    ncclResult_t result = ncclSuccess;
    ncclComm_t communicator = nullptr;
  };
  auto attempt = std::make_shared<Attempt>();
  std::thread([attempt, id, connection = connection, size = size(), rank = rank()] {
    ncclComm_t communicator = nullptr;
    ContextScope scope(*connection->context);
    ncclResult_t result = connection->api.ncclCommInitRank(&communicator, size, id, rank);
    std::lock_guard lock(attempt->mutex);
    attempt->isDone = true;
    attempt->result = result;
    attempt->communicator = communicator;
    attempt->done.notify_all();
  }).detach();
  std::unique_lock lock(attempt->mutex);
  if (!attempt->done.wait_for(lock, timeout, [&] { return attempt->isDone; }))
    return absl::DeadlineExceededError(absl::StrCat("rank ", rank(), ": NCCL did not connect ", size(),
                                                    " ranks within ", timeout.count() / 1000.0, " s"));
  connection->communicator = attempt->communicator;
  return annotate(connection->api.check(attempt->result, "ncclCommInitRank"), absl::StrCat("rank ", rank()));
}

absl::StatusOr<std::unique_ptr<Communicator>> dovetail::runtime::cuda::connectNccl(const LaunchEnvironment &environment,
                                                                                   int ordinal,
                                                                                   std::chrono::milliseconds timeout) {
  static const auto *api = new absl::StatusOr<NcclApi>(NcclApi::open());
  if (!api->ok())
    return api->status();
  absl::StatusOr<std::shared_ptr<Context>> context = Context::of(ordinal);
  if (!context.ok())
    return context.status();
  auto connection = std::make_shared<Connection>(**api, *std::move(context));
  auto communicator = std::make_unique<NcclCommunicator>(connection, environment);
  if (absl::Status status = communicator->begin(timeout); !status.ok()) {
    // What is left of NCCL may never return.
    connection->isOver = true;
    return status;
  }
  return communicator;
}
