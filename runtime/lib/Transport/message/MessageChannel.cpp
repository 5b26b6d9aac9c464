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

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::ReductionKind;

namespace {

/// What messages in the channel's memory are aligned to, and boxes in messages, which all ranks place alike.
constexpr int64_t messageAlignment = 256;
constexpr int64_t boxAlignment = 16;

class TransportMove : public Move {
public:
  TransportMove(std::unique_ptr<DeviceWork> work, DeviceStream &stream) : work(std::move(work)), stream(stream) {}
  absl::Status run() override { return work->issue(stream); }

private:
  std::unique_ptr<DeviceWork> work;
  DeviceStream &stream;
};

} // namespace

std::vector<MessageChannel::Part> MessageChannel::listParts(bool areSent) const {
  std::vector<Part> parts;
  for (const ChannelMove &move : description.moves)
    for (const layout::Transfer &transfer : areSent ? move.sends : move.receives)
      parts.push_back({&move, areSent ? transfer.dest : transfer.source, transfer.box});
  // One move is as it comes.
  if (description.moves.size() > 1)
    std::stable_sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) { return a.peer < b.peer; });
  return parts;
}

size_t MessageChannel::endOfMessage(const std::vector<Part> &parts, size_t first) const {
  size_t end = first + 1;
  while (description.moves.size() > 1 && end < parts.size() && parts[end].peer == parts[first].peer)
    ++end;
  return end;
}

void MessageChannel::place(std::vector<Part> &parts, bool areSent, int64_t &bytes) const {
  auto alignTo = [&](int64_t alignment) { bytes = (bytes + alignment - 1) / alignment * alignment; };
  for (size_t first = 0, end; first < parts.size(); first = end) {
    end = endOfMessage(parts, first);
    for (size_t i = first; i < end; ++i) {
      Part &part = parts[i];
      const MemoryView &memory = areSent ? part.move->source : part.move->target;
      part.view = messageView(memory, part.box, part.move->format);
      bool mayStay = end == first + 1 && (areSent || part.move->reduction == ReductionKind::None);
      if (mayStay && isMessage(memory, part.box, part.move->format)) {
        part.view.data = memory.address(part.box);
        continue;
      }
      alignTo(i == first ? messageAlignment : boxAlignment);
      part.offset = bytes;
      bytes += part.view.bytes();
    }
  }
}

std::vector<Message> MessageChannel::listMessages(const std::vector<Part> &parts) const {
  std::vector<Message> messages;
  for (size_t first = 0, end; first < parts.size(); first = end) {
    end = endOfMessage(parts, first);
    const MemoryView &begin = parts[first].view, &last = parts[end - 1].view;
    messages.push_back({parts[first].peer, begin.data, last.data + last.bytes() - begin.data});
  }
  return messages;
}

absl::Status MessageChannel::prepareMessages(int ranks, Transport &transport) {
  for (const ChannelMove &move : description.moves)
    if (move.reduction != ReductionKind::None && move.inPlace() && !move.local.empty() && !move.receives.empty())
      return absl::InternalError(absl::StrCat("exchange '", description.name, "' combines values in their own memory"));

  // First the size of the staging memory, then addresses in it.
  int64_t bytes = 0;
  std::vector<Part> out = listParts(/*areSent=*/true), in = listParts(/*areSent=*/false);
  place(out, /*areSent=*/true, bytes);
  place(in, /*areSent=*/false, bytes);
  absl::StatusOr<std::shared_ptr<std::byte>> memory = description.mover->allocate(bytes);
  if (!memory.ok())
    return memory.status();
  staging = *std::move(memory);
  for (std::vector<Part> *parts : {&out, &in})
    for (Part &part : *parts)
      if (part.offset >= 0)
        part.view.data = staging.get() + part.offset;

  std::vector<StridedBox> packs, copies;
  std::vector<CombinationDescription> combinations;
  for (const Part &part : out)
    if (part.offset >= 0)
      appendCopies(part.view, part.move->source, part.box, packs);
  for (const ChannelMove &move : description.moves) {
    if (move.reduction == ReductionKind::None)
      addCopies(move, in, copies);
    else
      addCombinations(move, in, ranks, copies, combinations);
  }
  if (!packs.empty())
    if (absl::Status status = add(description.mover->prepare(std::move(packs), {})); !status.ok())
      return status;
  if (!out.empty() || !in.empty())
    if (absl::Status status = add(transport.prepareExchange(listMessages(out), listMessages(in))); !status.ok())
      return status;
  if (!copies.empty())
    if (absl::Status status = add(description.mover->prepare(std::move(copies), std::move(combinations))); !status.ok())
      return status;
  return createEvents();
}

void MessageChannel::addCopies(const ChannelMove &move, const std::vector<Part> &received,
                               std::vector<StridedBox> &copies) {
  if (!move.inPlace())
    for (const Box &box : move.local)
      appendCopies(move.target, move.source, box, copies);
  for (const Part &part : received)
    if (part.move == &move && part.offset >= 0)
      appendCopies(move.target, part.view, part.box, copies);
}

void MessageChannel::addCombinations(const ChannelMove &move, const std::vector<Part> &received, int ranks,
                                     std::vector<StridedBox> &copies,
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
    for (const Part &part : received)
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

absl::Status MessageChannel::add(absl::StatusOr<std::unique_ptr<DeviceWork>> work) {
  if (work.ok())
    moves.push_back(std::make_unique<TransportMove>(*std::move(work), description.mover->getStream(StreamKind::Moves)));
  return work.status();
}

absl::Status MessageChannel::prepareCollective(Transport &transport) {
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

absl::Status MessageChannel::finish() {
  DeviceStream &stream = description.mover->getStream(StreamKind::Moves);
  absl::Status status = rendezvous.failure();
  if (status.ok())
    status = stream.wait(*ready);
  for (const std::unique_ptr<Move> &move : moves)
    if (status.ok())
      status = move->run();
  return status.ok() ? complete->record(stream) : status;
}
