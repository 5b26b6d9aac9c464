//===- LocalCommunicator.cpp - Exchanges by direct copies -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LocalRecording.h"

#include "../TransportRegistry.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <atomic>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

class LocalChannel : public Channel {
public:
  LocalChannel(std::shared_ptr<LocalGroup::State> group, int rank, int index, ChannelDescription description)
      : group(std::move(group)), rank(rank), index(index), description(std::move(description)) {}

  /// Works out all copies, once the other ranks have opened their side.
  absl::Status resolve();

  absl::Status start() override;
  absl::Status finish() override;
  absl::Status join() override;
  absl::Status fence() override;

private:
  /// What is taken from one rank, possibly this one.
  struct Pull {
    int source;
    std::atomic<uint64_t> *finished; ///< Where the source looks whether this rank is done; null for itself.
    DeviceEvent *taken;              ///< Where this rank is done, for the source; null for itself.
    std::vector<StridedBox> copies;  ///< Until `move` has them.
    std::vector<CombinationDescription> combinations;
    std::unique_ptr<Move> move;
  };

  DeviceStream &steps() const { return description.mover->getStream(StreamKind::Steps); }
  SharedChannel &sharedOf(int rank) const { return *group->ranks[rank]->channels[index]; }
  /// The entry of `pulls` for `source`, which may be new.
  Pull &pullFrom(int source);
  absl::Status resolveReduction(size_t move);
  void resolveCopies(size_t move);
  void sortPulls();

  std::shared_ptr<LocalGroup::State> group;
  int rank, index;
  ChannelDescription description;
  std::vector<Pull> pulls; ///< In the order in which they are done.
  std::unique_ptr<DeviceEvent> complete;
  uint64_t runs = 0;
};

class LocalCommunicator : public Communicator {
public:
  LocalCommunicator(std::shared_ptr<LocalGroup::State> group, int rank) : group(std::move(group)), ownRank(rank) {}

  int rank() const override { return ownRank; }
  int size() const override { return static_cast<int>(group->ranks.size()); }

  absl::StatusOr<std::unique_ptr<Channel>> open(ChannelDescription description) override {
    RankState &self = *group->ranks[ownRank];
    auto shared = std::make_unique<SharedChannel>();
    for (const ChannelMove &move : description.moves) {
      shared->sources.push_back(move.source);
      for (const layout::Transfer &transfer : move.sends)
        shared->readers.push_back(transfer.dest);
    }
    std::sort(shared->readers.begin(), shared->readers.end());
    shared->readers.erase(std::unique(shared->readers.begin(), shared->readers.end()), shared->readers.end());
    shared->finished = std::make_unique<std::atomic<uint64_t>[]>(shared->readers.size());
    shared->taken.resize(shared->readers.size());
    absl::StatusOr<std::unique_ptr<DeviceEvent>> ready = description.mover->createEvent();
    if (!ready.ok())
      return ready.status();
    shared->ready = *std::move(ready);
    auto channel =
        std::make_unique<LocalChannel>(group, ownRank, static_cast<int>(self.channels.size()), std::move(description));
    self.channels.push_back(std::move(shared));
    unresolved.push_back(channel.get());
    return channel;
  }

  void keep(std::shared_ptr<void> memory) override { group->ranks[ownRank]->memory.push_back(std::move(memory)); }

  absl::Status connect() override;
  absl::StatusOr<std::unique_ptr<Move>> record(Mover &mover, absl::FunctionRef<absl::Status()> issue) override {
    return recordTogether(group, ownRank, mover, issue);
  }

  absl::StatusOr<bool> decide(bool decision) override;

  void enterStep(const char *name) override {
    RankState &self = *group->ranks[ownRank];
    self.step.store(name, std::memory_order_relaxed);
    self.progress.fetch_add(1, std::memory_order_relaxed);
  }

  void setBusy(bool busy) override {
    RankState &self = *group->ranks[ownRank];
    ++self.progress;
    self.busy = busy;
  }

  absl::Status state() const override { return group->failure(); }
  absl::Status abort(const absl::Status &status) override {
    group->abort(status);
    return group->failure();
  }

private:
  std::shared_ptr<LocalGroup::State> group;
  int ownRank;
  std::vector<LocalChannel *> unresolved;
};

} // namespace

absl::Status LocalCommunicator::connect() {
  group->ranks[ownRank]->connected = true;
  // Rank 0 waits for all others, and they for it: of thousands of ranks not each can wake each.
  if (ownRank != 0) {
    group->notify(0);
    if (absl::Status status = group->wait(ownRank, 0, [&] { return group->allConnected.load(); }); !status.ok())
      return status;
  } else {
    for (int peer = 1; peer < size(); ++peer)
      if (absl::Status status = group->wait(0, peer, [&] { return group->ranks[peer]->connected.load(); });
          !status.ok())
        return status;
    group->allConnected = true;
    for (int peer = 1; peer < size(); ++peer)
      group->notify(peer);
  }
  for (LocalChannel *channel : unresolved)
    if (absl::Status status = channel->resolve(); !status.ok())
      return status;
  unresolved.clear();
  return absl::OkStatus();
}

absl::StatusOr<bool> LocalCommunicator::decide(bool decision) {
  RankState &self = *group->ranks[ownRank];
  uint64_t number = self.decisions.load() + 1;
  if (ownRank != 0) {
    auto isThere = [&] { return group->decision.load() / 2 >= number; };
    if (absl::Status status = group->wait(ownRank, 0, isThere); !status.ok())
      return status;
    decision = group->decision.load() % 2 != 0;
    self.decisions.store(number);
    group->notify(0);
    return decision;
  }
  // There is one word for it: all know the one before by then.
  for (int peer = 1; peer < size(); ++peer) {
    auto isKnown = [&] { return group->ranks[peer]->decisions.load() + 1 >= number; };
    if (absl::Status status = group->wait(0, peer, isKnown); !status.ok())
      return status;
  }
  self.decisions.store(number);
  group->decision.store(2 * number + (decision ? 1 : 0));
  for (int peer = 1; peer < size(); ++peer)
    group->notify(peer);
  return decision;
}

LocalChannel::Pull &LocalChannel::pullFrom(int source) {
  for (Pull &pull : pulls)
    if (pull.source == source)
      return pull;
  SharedChannel &shared = sharedOf(source);
  auto reader = std::lower_bound(shared.readers.begin(), shared.readers.end(), rank);
  std::atomic<uint64_t> *finished = source == rank ? nullptr : &shared.finished[reader - shared.readers.begin()];
  pulls.push_back({source, finished, nullptr, {}, {}, nullptr});
  return pulls.back();
}

absl::Status LocalChannel::resolve() {
  for (const ChannelMove &move : description.moves)
    for (const layout::Transfer &transfer : move.receives) {
      const RankState &peer = *group->ranks[transfer.source];
      if (peer.channels.size() <= static_cast<size_t>(index) ||
          peer.channels[index]->sources.size() != description.moves.size() ||
          !std::binary_search(peer.channels[index]->readers.begin(), peer.channels[index]->readers.end(), rank))
        return absl::InternalError(absl::StrCat("rank ", transfer.source, " does not know that rank ", rank,
                                                " receives from it in exchange '", description.name, "'"));
    }
  for (size_t move = 0; move < description.moves.size(); ++move) {
    if (description.moves[move].reduction == layout::ReductionKind::None)
      resolveCopies(move);
    else if (absl::Status status = resolveReduction(move); !status.ok())
      return status;
  }
  sortPulls();
  Mover &mover = *description.mover;
  for (Pull &pull : pulls) {
    SharedChannel &shared = sharedOf(pull.source);
    absl::StatusOr<std::unique_ptr<Move>> move = mover.prepare(std::move(pull.copies), std::move(pull.combinations));
    if (!move.ok())
      return absl::Status(move.status().code(), absl::StrCat("rank ", rank, ", exchange '", description.name,
                                                             "': ", move.status().message()));
    pull.move = *std::move(move);
    if (!pull.finished)
      continue;
    absl::StatusOr<std::unique_ptr<DeviceEvent>> taken = mover.createEvent();
    if (!taken.ok())
      return taken.status();
    pull.taken = taken->get();
    shared.taken[pull.finished - shared.finished.get()] = *std::move(taken);
  }
  absl::StatusOr<std::unique_ptr<DeviceEvent>> event = mover.createEvent();
  if (!event.ok())
    return event.status();
  complete = *std::move(event);
  return absl::OkStatus();
}

void LocalChannel::sortPulls() {
  // Contributions are combined in the order of ranks. Else each rank begins with the next one, so that not all of them
  // read from the first at once.
  bool reduces = std::any_of(description.moves.begin(), description.moves.end(),
                             [](const ChannelMove &move) { return move.reduction != layout::ReductionKind::None; });
  int size = group->ranks.size(), first = reduces ? 0 : rank;
  std::sort(pulls.begin(), pulls.end(), [&](const Pull &a, const Pull &b) {
    return (a.source - first + size) % size < (b.source - first + size) % size;
  });
}

void LocalChannel::resolveCopies(size_t move) {
  const ChannelMove &own = description.moves[move];
  if (!own.inPlace())
    for (const layout::Box &box : own.local)
      appendCopies(own.target, own.source, box, pullFrom(rank).copies);
  for (const layout::Transfer &transfer : own.receives)
    appendCopies(own.target, sharedOf(transfer.source).sources[move], transfer.box, pullFrom(transfer.source).copies);
}

absl::Status LocalChannel::resolveReduction(size_t move) {
  const ChannelMove &own = description.moves[move];
  std::vector<layout::Transfer> contributions;
  for (int source = 0, size = group->ranks.size(); source < size; ++source) {
    if (source == rank)
      for (const layout::Box &box : own.local)
        contributions.push_back({rank, rank, box});
    for (const layout::Transfer &transfer : own.receives)
      if (transfer.source == source)
        contributions.push_back(transfer);
  }
  std::vector<layout::Box> begun;
  for (const layout::Transfer &transfer : contributions) {
    const layout::Box &box = transfer.box;
    const MemoryView &source = sharedOf(transfer.source).sources[move];
    if (std::find(begun.begin(), begun.end(), box) != begun.end()) {
      pullFrom(transfer.source).combinations.push_back(describeCombination(own.reduction, own.target, source, box));
      continue;
    }
    for (const layout::Box &other : begun)
      if (!other.intersect(box).empty())
        return absl::InternalError(absl::StrCat("contributions ", other.str(), " and ", box.str(), " to exchange '",
                                                description.name, "' overlap in part"));
    begun.push_back(box);
    appendCopies(own.target, source, box, pullFrom(transfer.source).copies);
  }
  return absl::OkStatus();
}

absl::Status LocalChannel::start() {
  ++runs;
  SharedChannel &shared = sharedOf(rank);
  if (absl::Status status = shared.ready->record(steps()); !status.ok())
    return status;
  shared.started.store(runs);
  for (int reader : shared.readers)
    group->notify(reader);
  return absl::OkStatus();
}

absl::Status LocalChannel::finish() {
  DeviceStream &moves = description.mover->getStream(StreamKind::Moves);
  absl::Status status = moves.wait(*sharedOf(rank).ready);
  for (const Pull &pull : pulls) {
    if (!status.ok())
      return status;
    SharedChannel &shared = sharedOf(pull.source);
    status = group->wait(rank, pull.source, [&] { return shared.started.load() >= runs; });
    if (status.ok() && pull.finished)
      status = moves.wait(*shared.ready);
    if (status.ok())
      status = pull.move->run();
    if (!status.ok() || !pull.finished)
      continue;
    status = pull.taken->record(moves);
    pull.finished->store(runs);
    group->notify(pull.source);
  }
  return status.ok() ? complete->record(moves) : status;
}

absl::Status LocalChannel::join() { return steps().wait(*complete); }

absl::Status LocalChannel::fence() {
  const SharedChannel &shared = sharedOf(rank);
  for (size_t i = 0; i < shared.readers.size(); ++i) {
    if (absl::Status status = group->wait(rank, shared.readers[i], [&] { return shared.finished[i].load() >= runs; });
        !status.ok())
      return status;
    if (absl::Status status = steps().wait(*shared.taken[i]); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

std::unique_ptr<Communicator> LocalGroup::communicator(int rank) {
  return std::make_unique<LocalCommunicator>(state, rank);
}

TransportEntry dovetail::runtime::localTransport() {
  TransportInfo info{"local", "all ranks are threads of this process"};
  info.connectsProcesses = false;
  return {info, [](const ConnectionRequest &request) -> absl::StatusOr<std::unique_ptr<RankGroup>> {
            if (request.processes)
              return absl::InvalidArgumentError(
                  "a communicator of MPI was given, but ranks are connected with local, not mpi");
            return std::make_unique<LocalGroup>(request.ranks, request.timeout, request.device);
          }};
}
