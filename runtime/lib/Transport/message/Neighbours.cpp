//===- Neighbours.cpp - Ranks that read each other's memory ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A segment begins with the counts of all channels. Then comes for each channel where its notes are, as a number of
// words, and these: whether it is shared, and of each move where in the segment its source is and how it lies there.
//
//===----------------------------------------------------------------------===//

#include "Neighbours.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

/// What others find first: that it is the segment of this rank.
struct Head {
  alignas(64) uint64_t magic;
  uint64_t rank, channels;
};
constexpr uint64_t segmentMagic = 0x32676573766f64; // "dovseg2"

int64_t placeOfNotes(size_t channels) { return static_cast<int64_t>(sizeof(Head) + channels * sizeof(ChannelCounts)); }

const ChannelCounts *countsIn(const std::byte *segment) {
  return reinterpret_cast<const ChannelCounts *>(segment + sizeof(Head));
}

const int64_t *notesIn(const std::byte *segment) {
  size_t channels = reinterpret_cast<const Head *>(segment)->channels;
  return reinterpret_cast<const int64_t *>(segment + placeOfNotes(channels));
}

bool isSentTo(const ChannelMove &move, const std::map<int, std::string> &sharers) {
  return std::any_of(move.sends.begin(), move.sends.end(),
                     [&](const layout::Transfer &transfer) { return sharers.contains(transfer.dest); });
}

/// Numbers that say how the elements of a source lie, after its place.
void describe(const MemoryView &view, std::vector<int64_t> &words) {
  words.push_back(view.box.rank());
  for (const layout::Interval &range : view.box)
    words.insert(words.end(), {range.lo, range.hi});
  words.insert(words.end(), view.strides.begin(), view.strides.end());
}

} // namespace

absl::Status Neighbours::share(const std::vector<ByteRange> &owned,
                               const std::vector<const ChannelDescription *> &channels,
                               const std::map<int, std::string> &sharers, int64_t mostBytes) {
  struct Source {
    size_t channel, place; ///< Among the notes.
    const MemoryView *view;
  };
  std::vector<Source> sources;
  std::vector<ByteRange> parts;
  std::vector<int64_t> notes(channels.size());
  for (size_t i = 0; i < channels.size(); ++i) {
    const std::vector<ChannelMove> &moves = channels[i]->moves;
    size_t first = notes.size();
    notes[i] = static_cast<int64_t>(first);
    notes.resize(first + 1 + moves.size());
    notes[first] = 1;
    for (size_t k = 0; k < moves.size(); ++k) {
      notes[first + 1 + k] = static_cast<int64_t>(notes.size());
      if (isSentTo(moves[k], sharers) && moves[k].source.bytes() > 0) {
        sources.push_back({first, notes.size(), &moves[k].source});
        parts.push_back({moves[k].source.data, moves[k].source.bytes()});
      }
      notes.push_back(-1);
      describe(moves[k].source, notes);
    }
  }
  int64_t noteBytes = placeOfNotes(channels.size()) + static_cast<int64_t>(notes.size() * sizeof(int64_t));
  absl::StatusOr<std::unique_ptr<SharedSegment>> made = SharedSegment::create(noteBytes, owned, parts, mostBytes);
  if (!made.ok())
    return made.status();
  segment = *std::move(made);
  for (const auto &[channel, place, view] : sources) {
    notes[place] = segment->offsetOf(view->data, view->bytes());
    // It lies in memory of somebody else, such as the artifact's file.
    if (notes[place] < 0)
      notes[channel] = 0;
  }
  auto *counts = reinterpret_cast<ChannelCounts *>(segment->notes() + sizeof(Head));
  for (size_t i = 0; i < channels.size(); ++i)
    new (&counts[i]) ChannelCounts{};
  std::memcpy(segment->notes() + placeOfNotes(channels.size()), notes.data(), notes.size() * sizeof(int64_t));
  *reinterpret_cast<Head *>(segment->notes()) = {segmentMagic, static_cast<uint64_t>(own), channels.size()};
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Neighbours>> Neighbours::find(Rendezvous &rendezvous, int rank,
                                                             const std::vector<ByteRange> &owned,
                                                             const std::vector<const ChannelDescription *> &channels,
                                                             int64_t mostBytes) {
  // Each rank comes three times, whatever becomes of it.
  std::string place = sharingPlace();
  absl::StatusOr<std::map<int, std::string>> sharers = rendezvous.gatherAlike(place, "");
  if (!sharers.ok())
    return sharers.status();
  if (sharers->size() < 2)
    place.clear();
  std::unique_ptr<Neighbours> result(new Neighbours(rank));
  bool works = !place.empty() && mostBytes > 0;
  if (works) {
    absl::Status status = result->share(owned, channels, *sharers, mostBytes);
    if (absl::IsInternal(status))
      return status;
    works = status.ok();
  }
  absl::StatusOr<std::map<int, std::string>> names =
      rendezvous.gatherAlike(place, works ? result->segment->name() : "");
  if (!names.ok())
    return names.status();
  for (const auto &[other, name] : *names) {
    if (other == rank || !works)
      continue;
    absl::StatusOr<std::unique_ptr<SharedView>> view =
        name.empty() ? absl::UnavailableError("it shares no memory") : SharedView::open(name);
    works = view.ok();
    if (!works)
      break;
    const auto *head = reinterpret_cast<const Head *>((*view)->data());
    works =
        head->magic == segmentMagic && head->rank == static_cast<uint64_t>(other) && head->channels == channels.size();
    result->views[other] = *std::move(view);
  }
  absl::StatusOr<std::map<int, std::string>> all = rendezvous.gatherAlike(place, works ? "1" : "0");
  if (!all.ok())
    return all.status();
  if (result->segment)
    result->segment->close();
  // One alone that cannot is enough: then all of them send messages.
  bool agree =
      !all->empty() && std::all_of(all->begin(), all->end(), [](const auto &entry) { return entry.second == "1"; });
  return agree ? std::move(result) : nullptr;
}

bool Neighbours::shares(int source, size_t channel) const {
  const int64_t *notes = notesIn(notesOf(source));
  return notes[notes[channel]] != 0;
}

bool Neighbours::allShare(size_t channel) const {
  return shares(own, channel) &&
         std::all_of(views.begin(), views.end(), [&](const auto &view) { return shares(view.first, channel); });
}

MemoryView Neighbours::sourceOf(int rank, size_t channel, size_t move, ElementType type) const {
  const std::byte *segment = notesOf(rank);
  const int64_t *notes = notesIn(segment), *words = notes + notes[notes[channel] + 1 + move];
  MemoryView view;
  // Nobody writes there.
  view.data = words[0] < 0 ? nullptr : const_cast<std::byte *>(segment) + words[0];
  view.type = type;
  int64_t dims = words[1];
  words += 2;
  std::vector<layout::Interval> box;
  for (int64_t dim = 0; dim < dims; ++dim)
    box.push_back({words[2 * dim], words[2 * dim + 1]});
  view.box = layout::Box(std::move(box));
  view.strides.assign(words + 2 * dims, words + 3 * dims);
  return view;
}

ChannelCounts &Neighbours::counts(size_t channel) const {
  return const_cast<ChannelCounts *>(countsIn(segment->notes()))[channel];
}

const ChannelCounts &Neighbours::countsOf(int rank, size_t channel) const { return countsIn(notesOf(rank))[channel]; }
