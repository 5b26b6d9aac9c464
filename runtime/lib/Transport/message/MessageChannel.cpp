//===- MessageChannel.cpp - Exchanges between processes ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MessageChannel.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::ReductionKind;

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

  StagedMessages messages(description);
  if (absl::Status status = allocate(messages.bytes); !status.ok())
    return status;
  messages.bind(staging.get());

  std::vector<StridedBox> packs, copies;
  std::vector<CombinationDescription> combinations;
  for (const StagedMessages::Part &part : messages.sends)
    if (part.offset >= 0)
      appendCopies(part.view, part.move->source, part.box, packs);
  for (const ChannelMove &move : description.moves) {
    if (move.reduction == ReductionKind::None)
      addCopies(move, messages.receives, copies);
    else
      addCombinations(move, messages.receives, ranks, copies, combinations);
  }
  if (!packs.empty())
    if (absl::Status status = add(description.mover->prepare(std::move(packs), {})); !status.ok())
      return status;
  if (!messages.sends.empty() || !messages.receives.empty())
    if (absl::Status status = add(
            transport.prepareExchange(messages.listMessages(messages.sends), messages.listMessages(messages.receives)));
        !status.ok())
      return status;
  if (!copies.empty())
    if (absl::Status status = add(description.mover->prepare(std::move(copies), std::move(combinations))); !status.ok())
      return status;
  return createEvents();
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

absl::Status MessageChannel::proceed(bool waits) {
  DeviceStream &stream = description.mover->getStream(StreamKind::Moves);
  bool isAtOnce = description.mover->doesAtOnce();
  for (; next < parts.size(); ++next) {
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
  return absl::OkStatus();
}

void MessageChannel::progress() {
  if (problem.ok())
    problem = proceed(/*waits=*/false);
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
  absl::Status status = isUnderWay && problem.ok() ? proceed(/*waits=*/true) : problem;
  return status.ok() ? description.mover->getStream(StreamKind::Steps).wait(*complete) : status;
}
