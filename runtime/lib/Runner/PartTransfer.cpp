//===- PartTransfer.cpp - Inputs and outputs in parts ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PartTransfer.h"

#include "OutputSlabs.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <memory>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;

namespace {

constexpr int64_t mostBytes = 16 << 20;

/// Calls `body` for each piece of `box` that takes at most `mostBytes`: halves, and halves of these.
template <typename Body> absl::Status forEachPiece(const Box &box, int64_t elementBytes, Body body) {
  if (box.empty())
    return absl::OkStatus();
  int dim = 0;
  while (dim < box.rank() && box[dim].size() <= 1)
    ++dim;
  if (dim == box.rank() || box.volume() * elementBytes <= mostBytes)
    return body(box);
  Box first = box, second = box;
  first[dim].hi = second[dim].lo = box[dim].lo + box[dim].size() / 2;
  absl::Status status = forEachPiece(first, elementBytes, body);
  return status.ok() ? forEachPiece(second, elementBytes, body) : status;
}

/// Memory for the elements of a piece, which nobody has to set before.
std::unique_ptr<std::byte[]> allocateFor(const Box &box, int64_t elementBytes) {
  return std::make_unique_for_overwrite<std::byte[]>(std::min(mostBytes, box.volume() * elementBytes));
}

} // namespace

absl::Status dovetail::runtime::readParts(const PortInfo &port, size_t index, Session &session,
                                          Communicator &communicator, PortParts &parts) {
  communicator.setBusy(false);
  absl::Cleanup busy = [&] { communicator.setBusy(true); };
  int64_t elementBytes = elementSize(port.type);
  Box box = session.inputBox(index).intersect(Box::ofShape(port.shape));
  std::unique_ptr<std::byte[]> elements = allocateFor(box, elementBytes);
  return forEachPiece(box, elementBytes, [&](const Box &piece) {
    if (absl::Status ended = communicator.state(); !ended.ok())
      return ended;
    if (absl::Status read = parts.read(index, piece, elements.get()); !read.ok())
      return ofRank(communicator.rank(), read);
    return session.writeInput(index, MemoryView::rowMajor(port.type, piece, elements.get()), {piece});
  });
}

/// All ranks come here for the same outputs.
static absl::Status writeSlabs(const PortInfo &port, size_t index, const OutputSlabs &slabs, Session &session,
                               Communicator &communicator, PortParts &parts) {
  int rank = communicator.rank();
  // Others may still send to it when this rank gives up.
  std::shared_ptr<std::byte[]> elements = std::make_shared_for_overwrite<std::byte[]>(slabs.slabBytes());
  for (int64_t round = 0; round < slabs.rounds(); ++round) {
    if (absl::Status ended = communicator.state(); !ended.ok())
      return ended;
    Box slab = slabs.slab(rank, round);
    absl::Status status =
        session.exchangeOutput(index, slabs.sends(rank, round), slabs.receives(rank, round), slabs.local(rank, round),
                               MemoryView::rowMajor(port.type, slab, elements.get()));
    if (!status.ok()) {
      communicator.keep(elements);
      return status;
    }
    if (absl::Status written = slab.empty() ? status : parts.write(index, slab, elements.get()); !written.ok())
      return ofRank(rank, written);
  }
  return absl::OkStatus();
}

absl::Status dovetail::runtime::writeParts(const PortInfo &port, size_t index, const OutputPieces &pieces,
                                           bool areProcesses, Session &session, Communicator &communicator,
                                           PortParts &parts) {
  // Others may still write, which takes as long as it takes.
  communicator.setBusy(false);
  absl::Cleanup busy = [&] { communicator.setBusy(true); };
  if (int64_t bytes = parts.pieceBytes(index); areProcesses && bytes > 0 && session.canExchangeOutputs())
    if (OutputSlabs slabs(port, pieces, communicator.size()); slabs.areBetter(bytes))
      return writeSlabs(port, index, slabs, session, communicator, parts);
  int64_t elementBytes = elementSize(port.type);
  for (const Box &box : pieces.of(communicator.rank())) {
    std::unique_ptr<std::byte[]> elements = allocateFor(box, elementBytes);
    absl::Status status = forEachPiece(box, elementBytes, [&](const Box &piece) {
      if (absl::Status ended = communicator.state(); !ended.ok())
        return ended;
      MemoryView view = MemoryView::rowMajor(port.type, piece, elements.get());
      if (absl::Status read = session.readOutput(index, view, {piece}); !read.ok())
        return read;
      absl::Status written = parts.write(index, piece, elements.get());
      return written.ok() ? written : ofRank(communicator.rank(), written);
    });
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status dovetail::runtime::gatherOutput(const PortInfo &port, size_t index, const OutputPieces &pieces, int rank,
                                             Session &session, RankGroup &group, const MemoryView &output) {
  ElementType type = port.type;
  for (size_t round = 0; round < pieces.rounds(); ++round) {
    std::string bytes;
    const Box *piece = rank == 0 ? nullptr : pieces.piece(rank, round);
    if (piece) {
      bytes.resize(piece->volume() * elementSize(type));
      if (absl::Status status = session.readOutput(index, MemoryView::rowMajor(type, *piece, bytes.data()), {*piece});
          !status.ok())
        return status;
    }
    absl::StatusOr<std::vector<std::string>> all = group.gather(std::move(bytes));
    if (!all.ok())
      return all.status();
    for (size_t source = 1; source < all->size(); ++source) {
      const Box *box = pieces.piece(static_cast<int>(source), round);
      std::string &got = (*all)[source];
      if (static_cast<int64_t>(got.size()) != (box ? box->volume() * elementSize(type) : 0))
        return absl::InternalError(
            absl::StrCat("rank ", source, " sent data that are not its part of output '", port.name, "'"));
      if (box)
        copyBox(output, MemoryView::rowMajor(type, *box, got.data()), *box);
    }
  }
  return absl::OkStatus();
}
