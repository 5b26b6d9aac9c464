//===- MessageChannel.cpp - Exchanges between processes ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MessageChannel.h"

#include "../../Threads/Waiter.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <sched.h>
#include <set>
#include <time.h>
#include <utility>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::ReductionKind;

void OpenChannels::progress() {
  // Those that are done are taken from the list.
  for (size_t i = underWay.size(); i-- > 0;)
    underWay[i]->progress();
}

bool MessageChannel::isNear() const {
  const std::vector<int> &members = description.group.members;
  return neighbours && neighbours->allShare(number) &&
         std::all_of(members.begin(), members.end(), [&](int member) { return neighbours->has(member); });
}

MessageChannel::~MessageChannel() {
  --open.count;
  std::erase(open.underWay, this);
  open.stagingBytes -= stagingBytes;
  if (isUnderWay || !rendezvous.failure().ok())
    open.memory.push_back(staging);
}

absl::Status MessageChannel::prepareMessages(int ranks, Transport &transport) {
  for (const ChannelMove &move : description.moves)
    if (move.reduction != ReductionKind::None && move.inPlace() && !move.local.empty() && !move.receives.empty())
      return absl::InternalError(absl::StrCat("exchange '", description.name, "' combines values in their own memory"));

  // Who has the source says whether others read it.
  StagedMessages messages(
      description, [&](int peer) { return isShared(peer, rank); }, [&](int peer) { return isShared(peer, peer); });
  if (absl::Status status = allocate(messages.bytes); !status.ok())
    return status;
  messages.bind(staging.get());
  std::vector<StagedMessages::Part> received = messages.receives;
  addNear(received);

  std::vector<StridedBox> packs, copies;
  std::vector<CombinationDescription> combinations;
  for (const StagedMessages::Part &part : messages.sends)
    if (part.offset >= 0)
      appendCopies(part.view, part.move->source, part.box, packs);
  for (const ChannelMove &move : description.moves) {
    if (move.reduction == ReductionKind::None)
      addCopies(move, received, copies);
    else
      addCombinations(move, received, ranks, copies, combinations);
  }
  if (!packs.empty())
    if (absl::Status status = add(description.mover->prepare(std::move(packs), {})); !status.ok())
      return status;
  if (!messages.sends.empty() || !messages.receives.empty())
    if (absl::Status status = add(
            transport.prepareExchange(messages.listMessages(messages.sends), messages.listMessages(messages.receives)));
        !status.ok())
      return status;
  firstNear = parts.size();
  if (!copies.empty())
    if (absl::Status status = add(description.mover->prepare(std::move(copies), std::move(combinations))); !status.ok())
      return status;
  return createEvents();
}

void MessageChannel::addNear(std::vector<StagedMessages::Part> &received) {
  std::set<int> from, to;
  for (size_t i = 0; i < description.moves.size(); ++i) {
    const ChannelMove &move = description.moves[i];
    for (const layout::Transfer &transfer : move.receives)
      if (isShared(transfer.source, transfer.source)) {
        from.insert(transfer.source);
        // Neither in memory for messages nor in its place.
        MemoryView source = neighbours->sourceOf(transfer.source, number, i, move.target.type);
        received.push_back({&move, transfer.source, transfer.box, source, /*offset=*/0});
      }
    for (const layout::Transfer &transfer : move.sends)
      if (isShared(transfer.dest, rank))
        to.insert(transfer.dest);
  }
  for (int peer : from)
    sources.push_back(&neighbours->countsOf(peer, number));
  for (int peer : to)
    readers.push_back(&neighbours->countsOf(peer, number));
}

void MessageChannel::addCopies(const ChannelMove &move, const std::vector<StagedMessages::Part> &received,
                               std::vector<StridedBox> &copies) {
  if (!move.inPlace())
    for (const Box &box : move.local)
      appendCopies(move.target, move.source, box, copies);
  for (const StagedMessages::Part &part : received)
    if (part.move == &move && part.offset >= 0)
      appendCopies(move.target, part.view, part.box, copies);
}

void MessageChannel::addCombinations(const ChannelMove &move, const std::vector<StagedMessages::Part> &received,
                                     int ranks, std::vector<StridedBox> &copies,
                                     std::vector<CombinationDescription> &combinations) const {
  // In ascending order of the sources, this rank included: so all ranks get the same bits.
  struct Contribution {
    const MemoryView *view;
    const Box *box;
  };
  std::vector<Contribution> contributions;
  for (int from = 0; from < ranks; ++from) {
    if (from == rank)
      for (const Box &box : move.local)
        contributions.push_back({&move.source, &box});
    for (const StagedMessages::Part &part : received)
      if (part.move == &move && part.peer == from)
        contributions.push_back({&part.view, &part.box});
  }
  std::vector<Box> begun;
  for (const auto &[view, box] : contributions) {
    if (std::find(begun.begin(), begun.end(), *box) == begun.end()) {
      begun.push_back(*box);
      appendCopies(move.target, *view, *box, copies);
      continue;
    }
    combinations.push_back(describeCombination(move.reduction, move.target, *view, *box));
  }
}

absl::Status MessageChannel::allocate(int64_t bytes) {
  absl::StatusOr<std::shared_ptr<std::byte>> memory = description.mover->allocate(bytes);
  if (!memory.ok())
    return memory.status();
  staging = *std::move(memory);
  stagingBytes = bytes;
  open.stagingBytes += bytes;
  return absl::OkStatus();
}

absl::Status MessageChannel::preparePacked(Transport &transport) {
  PackedBlocks blocks(description);
  if (absl::Status status = allocate(blocks.bytes()); !status.ok())
    return status;
  blocks.bind(staging.get());
  const std::vector<int> &members = description.group.members;
  auto own = static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
  std::vector<StridedBox> packs, copies;
  for (const PackedBlocks::Part &part : blocks.parts) {
    if (part.member == own)
      appendCopies(part.view, part.move->source, part.box, packs);
    // What is in its place stays as it is: steps may be reading it.
    if (part.member != own || !part.move->inPlace())
      appendCopies(part.move->target, part.view, part.box, copies);
  }
  for (std::vector<StridedBox> *boxes : {&packs, &copies}) {
    if (!boxes->empty())
      if (absl::Status status = add(description.mover->prepare(std::move(*boxes), {})); !status.ok())
        return status;
    if (boxes == &packs && blocks.blockBytes > 0)
      if (absl::Status status = add(transport.prepareCollective(blocks.describeCollective(staging.get(), own)));
          !status.ok())
        return status;
  }
  return createEvents();
}

absl::Status MessageChannel::prepareCollective(Transport &transport) {
  if (description.kind == layout::ExchangeKind::PackedGather)
    return preparePacked(transport);
  if (!description.group.parts[0].empty())
    if (absl::Status status = add(transport.prepareCollective(describeCollective(description, rank))); !status.ok())
      return status;
  return createEvents();
}

absl::Status MessageChannel::createEvents() {
  for (std::unique_ptr<DeviceEvent> *event : {&ready, &complete}) {
    absl::StatusOr<std::unique_ptr<DeviceEvent>> made = description.mover->createEvent();
    if (!made.ok())
      return made.status();
    *event = *std::move(made);
  }
  return absl::OkStatus();
}

bool MessageChannel::haveStarted() const {
  return std::all_of(sources.begin(), sources.end(), [&](const ChannelCounts *source) {
    return source->started.load(std::memory_order_acquire) >= runs;
  });
}

absl::Status MessageChannel::proceed(bool waits) {
  DeviceStream &stream = description.mover->getStream(StreamKind::Moves);
  bool isAtOnce = description.mover->doesAtOnce();
  for (; next < parts.size() || !sources.empty(); ++next) {
    if (next == firstNear && !sources.empty()) {
      isUnderWay = !haveStarted();
      if (isUnderWay)
        return absl::OkStatus();
      std::erase(open.underWay, this);
    }
    if (next == parts.size())
      break;
    const Part &part = parts[next];
    absl::Status status;
    if (part.move)
      status = part.move->run();
    else if (!isAtOnce)
      status = part.work->issue(stream);
    else if (!std::exchange(isUnderWay, true))
      status = part.work->begin(stream);
    if (!status.ok())
      return status;
    if (!isUnderWay)
      continue;
    absl::StatusOr<bool> isDone = part.work->proceed(waits);
    if (!isDone.ok() || !*isDone)
      return isDone.status();
    isUnderWay = false;
    std::erase(open.underWay, this);
  }
  if (!sources.empty())
    neighbours->counts(number).finished.store(runs, std::memory_order_release);
  return absl::OkStatus();
}

void MessageChannel::progress() {
  if (problem.ok())
    problem = proceed(/*waits=*/false);
}

absl::Status MessageChannel::waitUntil(absl::FunctionRef<bool()> isDone) const {
  using Clock = std::chrono::steady_clock;
  // Others may wait for what this rank has not read yet.
  auto look = [&] {
    open.progress();
    return isDone();
  };
  if (spinUntil(look))
    return absl::OkStatus();
  // Who waits longer leaves the core to others, and then to itself.
  constexpr std::chrono::microseconds yielding(2000);
  constexpr timespec nap = {0, 50'000};
  for (Clock::time_point begin = Clock::now(); !look();) {
    if (absl::Status status = rendezvous.failure(); !status.ok())
      return status;
    if (Clock::now() - begin > yielding)
      ::nanosleep(&nap, nullptr);
    else
      ::sched_yield();
  }
  return absl::OkStatus();
}

absl::Status MessageChannel::start() {
  ++runs;
  if (!readers.empty())
    neighbours->counts(number).started.store(runs, std::memory_order_release);
  return ready->record(description.mover->getStream(StreamKind::Steps));
}

absl::Status MessageChannel::finish() {
  DeviceStream &stream = description.mover->getStream(StreamKind::Moves);
  absl::Status status = rendezvous.failure();
  if (status.ok())
    status = stream.wait(*ready);
  next = 0;
  if (status.ok())
    status = proceed(/*waits=*/false);
  if (isUnderWay)
    open.underWay.push_back(this);
  return status.ok() ? complete->record(stream) : status;
}

absl::Status MessageChannel::join() {
  absl::Status status;
  if (isUnderWay && open.areNear)
    status = waitUntil([&] { return !isUnderWay || !problem.ok(); });
  else if (isUnderWay && problem.ok())
    status = proceed(/*waits=*/true);
  if (status.ok())
    status = problem;
  return status.ok() ? description.mover->getStream(StreamKind::Steps).wait(*complete) : status;
}

absl::Status MessageChannel::fence() {
  absl::Status status = join();
  auto isRead = [&](const ChannelCounts *reader) { return reader->finished.load(std::memory_order_acquire) >= runs; };
  auto areDone = [&] { return std::all_of(readers.begin(), readers.end(), isRead); };
  return status.ok() && !areDone() ? waitUntil(areDone) : status;
}
