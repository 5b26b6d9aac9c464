//===- MessageChannel.cpp - Exchanges between processes ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MessageChannel.h"

#include "../../Backend/device/DeviceMover.h"
#include "../../Memory/Combine.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::ReductionKind;

namespace {

/// What messages in the channel's memory are aligned to.
constexpr int64_t stagingAlignment = 256;

void appendCopies(const MemoryView &target, const MemoryView &source, const Box &box, std::vector<StridedBox> &copies) {
  std::vector<BoxPair> pairs;
  BoxPair::append(target, source, box, pairs);
  for (StridedBox &copy : stridedBoxes(pairs, target.data, source.data))
    copies.push_back(std::move(copy));
}

} // namespace

absl::Status MessageChannel::resolve(const std::vector<std::vector<std::vector<int>>> &orders, Transport &transport) {
  Device &device = *description.mover->getDevice();
  const MemoryView &source = description.source, &target = description.target;
  bool reduces = description.reduction != ReductionKind::None;
  if (reduces && source.data == target.data && !description.local.empty() && !description.receives.empty())
    return absl::InternalError(absl::StrCat("exchange '", description.name, "' combines values in their own memory"));

  // First the size of the staging memory, then addresses in it.
  int64_t bytes = 0;
  auto place = [&](const MemoryView &memory, const Box &box, const std::vector<int> &order, bool mayStay) {
    Staged staged{messageView(memory.type, box, order), -1};
    if (mayStay && isMessage(memory, box, order)) {
      staged.view.data = memory.address(box);
    } else {
      staged.offset = bytes;
      bytes += (staged.view.bytes() + stagingAlignment - 1) / stagingAlignment * stagingAlignment;
    }
    return staged;
  };
  std::vector<Staged> out, in;
  for (const layout::Transfer &transfer : description.sends)
    out.push_back(place(source, transfer.box, messageOrder(source, transfer.box), true));
  std::vector<size_t> taken(orders.size());
  auto disagree = [&](size_t from) {
    return absl::InternalError(absl::StrCat("ranks ", from, " and ", rank,
                                            " disagree on what the first sends to the second in exchange '",
                                            description.name, "'; run the same program on all ranks"));
  };
  for (const layout::Transfer &transfer : description.receives) {
    const auto &from = orders[transfer.source];
    size_t index = taken[transfer.source]++;
    if (index >= from.size() || static_cast<int>(from[index].size()) != transfer.box.rank())
      return disagree(transfer.source);
    in.push_back(place(target, transfer.box, from[index], !reduces));
  }
  for (size_t from = 0; from < orders.size(); ++from)
    if (taken[from] != orders[from].size())
      return disagree(from);
  absl::StatusOr<std::unique_ptr<DeviceMemory>> memory = device.allocate(bytes);
  if (!memory.ok())
    return memory.status();
  staging = *std::move(memory);

  std::vector<StridedBox> packs;
  std::vector<Message> sends, receives;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].offset >= 0) {
      out[i].view.data = staging->data() + out[i].offset;
      appendCopies(out[i].view, source, description.sends[i].box, packs);
    }
    sends.push_back({description.sends[i].dest, out[i].view.data, out[i].view.bytes()});
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].offset >= 0)
      in[i].view.data = staging->data() + in[i].offset;
    receives.push_back({description.receives[i].source, in[i].view.data, in[i].view.bytes()});
  }
  if (!packs.empty())
    if (absl::Status status = add(device.prepareCopies(std::move(packs))); !status.ok())
      return status;
  if (!sends.empty() || !receives.empty())
    if (absl::Status status = add(transport.prepareExchange(std::move(sends), std::move(receives))); !status.ok())
      return status;
  if (absl::Status status = reduces ? addCombinations(in, static_cast<int>(orders.size())) : addCopies(in);
      !status.ok())
    return status;
  return createMarks();
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
  return copies.empty() ? absl::OkStatus() : add(description.mover->getDevice()->prepareCopies(std::move(copies)));
}

absl::Status MessageChannel::addCombinations(const std::vector<Staged> &received, int ranks) {
  Device &device = *description.mover->getDevice();
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
    Combination combination(description.reduction, target, view, box);
    combinations.push_back({description.reduction, target.type, combination.getTargetMoment(),
                            combination.getSourceMoment(),
                            stridedBoxes(combination.getPairs(), target.data, view.data)});
  }
  if (!copies.empty())
    if (absl::Status status = add(device.prepareCopies(std::move(copies))); !status.ok())
      return status;
  for (CombinationDescription &combination : combinations)
    if (absl::Status status = add(device.prepareCombination(std::move(combination))); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status MessageChannel::resolve(const Collective &collective, Transport &transport) {
  if (absl::Status status = add(transport.prepareCollective(collective)); !status.ok())
    return status;
  return createMarks();
}

absl::Status MessageChannel::createMarks() {
  for (std::unique_ptr<Mark> *mark : {&ready, &complete}) {
    absl::StatusOr<std::unique_ptr<Mark>> made = description.mover->createMark();
    if (!made.ok())
      return made.status();
    *mark = *std::move(made);
  }
  return absl::OkStatus();
}

absl::Status MessageChannel::finish() {
  DeviceStream &stream = *description.mover->getStream(Lane::Moves);
  absl::Status status = rendezvous.failure();
  if (status.ok())
    status = description.mover->wait(*ready, Lane::Moves);
  for (const std::unique_ptr<DeviceWork> &work : works)
    if (status.ok())
      status = work->issue(stream);
  return status.ok() ? description.mover->mark(*complete, Lane::Moves) : status;
}
