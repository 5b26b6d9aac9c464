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

/// What messages in the channel's memory are aligned to.
constexpr int64_t stagingAlignment = 256;

class TransportMove : public Move {
public:
  TransportMove(std::unique_ptr<DeviceWork> work, DeviceStream &stream) : work(std::move(work)), stream(stream) {}
  absl::Status run() override { return work->issue(stream); }

private:
  std::unique_ptr<DeviceWork> work;
  DeviceStream &stream;
};

} // namespace

absl::Status MessageChannel::prepareMessages(int ranks, Transport &transport) {
  const MemoryView &source = description.source, &target = description.target;
  bool reduces = description.reduction != ReductionKind::None;
  if (reduces && source.data == target.data && !description.local.empty() && !description.receives.empty())
    return absl::InternalError(absl::StrCat("exchange '", description.name, "' combines values in their own memory"));

  // First the size of the staging memory, then addresses in it.
  int64_t bytes = 0;
  auto place = [&](const MemoryView &memory, const Box &box, bool mayStay) {
    Staged staged{messageView(memory, box, description.format), -1};
    if (mayStay && isMessage(memory, box, description.format)) {
      staged.view.data = memory.address(box);
    } else {
      staged.offset = bytes;
      bytes += (staged.view.bytes() + stagingAlignment - 1) / stagingAlignment * stagingAlignment;
    }
    return staged;
  };
  std::vector<Staged> out, in;
  for (const layout::Transfer &transfer : description.sends)
    out.push_back(place(source, transfer.box, true));
  for (const layout::Transfer &transfer : description.receives)
    in.push_back(place(target, transfer.box, !reduces));
  absl::StatusOr<std::shared_ptr<std::byte>> memory = description.mover->allocate(bytes);
  if (!memory.ok())
    return memory.status();
  staging = *std::move(memory);

  std::vector<StridedBox> packs;
  std::vector<Message> sends, receives;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].offset >= 0) {
      out[i].view.data = staging.get() + out[i].offset;
      appendCopies(out[i].view, source, description.sends[i].box, packs);
    }
    sends.push_back({description.sends[i].dest, out[i].view.data, out[i].view.bytes()});
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].offset >= 0)
      in[i].view.data = staging.get() + in[i].offset;
    receives.push_back({description.receives[i].source, in[i].view.data, in[i].view.bytes()});
  }
  if (!packs.empty())
    if (absl::Status status = add(description.mover->prepare(std::move(packs), {})); !status.ok())
      return status;
  if (!sends.empty() || !receives.empty())
    if (absl::Status status = add(transport.prepareExchange(std::move(sends), std::move(receives))); !status.ok())
      return status;
  if (absl::Status status = reduces ? addCombinations(in, ranks) : addCopies(in); !status.ok())
    return status;
  return createEvents();
}

absl::Status MessageChannel::addCopies(const std::vector<Staged> &received) {
  const MemoryView &source = description.source, &target = description.target;
  std::vector<StridedBox> copies;
  if (source.data != target.data)
    for (const Box &box : description.local)
      appendCopies(target, source, box, copies);
  for (size_t i = 0; i < received.size(); ++i)
    if (received[i].offset >= 0)
      appendCopies(target, received[i].view, description.receives[i].box, copies);
  return copies.empty() ? absl::OkStatus() : add(description.mover->prepare(std::move(copies), {}));
}

absl::Status MessageChannel::addCombinations(const std::vector<Staged> &received, int ranks) {
  const MemoryView &source = description.source, &target = description.target;
  // In ascending order of the sources, this rank included: so all ranks get the same bits.
  struct Contribution {
    const MemoryView *view;
    Box box;
  };
  std::vector<Contribution> contributions;
  for (int from = 0; from < ranks; ++from) {
    if (from == rank)
      for (const Box &box : description.local)
        contributions.push_back({&source, box});
    for (size_t i = 0; i < received.size(); ++i)
      if (description.receives[i].source == from)
        contributions.push_back({&received[i].view, description.receives[i].box});
  }
  std::vector<Box> begun;
  std::vector<StridedBox> copies;
  std::vector<CombinationDescription> combinations;
  for (const Contribution &contribution : contributions) {
    const MemoryView &view = *contribution.view;
    const Box &box = contribution.box;
    if (std::find(begun.begin(), begun.end(), box) == begun.end()) {
      begun.push_back(box);
      appendCopies(target, view, box, copies);
      continue;
    }
    combinations.push_back(describeCombination(description.reduction, target, view, box));
  }
  if (copies.empty())
    return absl::OkStatus();
  return add(description.mover->prepare(std::move(copies), std::move(combinations)));
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
