//===- RendezvousGather.cpp - What processes tell each other ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how ranks gather: what ranks give goes up to rank 0, and what all hear comes down from it.
//
//===----------------------------------------------------------------------===//

#include "Rendezvous.h"

#include "absl/strings/str_cat.h"

using namespace dovetail::runtime;

bool Rendezvous::send(Peer &peer, uint32_t type, const std::string &payload) {
  std::lock_guard lock(peer.sending);
  return peer.socket >= 0 && sendMessage(peer.socket, type, payload);
}

absl::StatusOr<std::string> Rendezvous::takeBlob(Peer &peer) {
  std::unique_lock lock(mutex);
  arrival.wait(lock, [&] { return !peer.blobs.empty() || peer.gone || !error.ok(); });
  if (!error.ok())
    return error;
  if (peer.blobs.empty())
    return absl::UnavailableError(absl::StrCat("rank ", peer.ranks.rank, " has ended before the others"));
  std::string blob = std::move(peer.blobs.front());
  peer.blobs.pop_front();
  taken.fetch_add(1);
  return blob;
}

/// What came from a rank cannot be read.
static absl::Status notOurs(int rank) {
  return absl::UnavailableError(absl::StrCat("rank ", rank, " sent a message that Dovetail does not know"));
}

// Most often many ranks in a row give the same: of thousands of ranks each gets a few bytes then.

std::string Rendezvous::packRuns(const Runs &runs) {
  std::string packed;
  for (const auto &[count, blob] : runs) {
    append(packed, count);
    append(packed, blob.size());
    packed += blob;
  }
  return packed;
}

absl::Status Rendezvous::addRuns(Runs &runs, const std::string &packed, const Subtree &ranks) {
  size_t at = 0;
  for (uint64_t missing = ranks.size(); missing > 0;) {
    uint64_t count = take(packed, at), size = take(packed, at);
    if (at > packed.size() || size > packed.size() - at || count == 0 || count > missing)
      return notOurs(ranks.rank);
    std::string blob = packed.substr(at, size);
    if (!runs.empty() && runs.back().second == blob)
      runs.back().first += count;
    else
      runs.push_back({count, std::move(blob)});
    at += size;
    missing -= count;
  }
  return at == packed.size() ? absl::OkStatus() : notOurs(ranks.rank);
}

absl::StatusOr<Rendezvous::Runs> Rendezvous::collect(std::string own) {
  progress.fetch_add(1);
  Runs runs{{1, std::move(own)}};
  for (const std::unique_ptr<Peer> &child : children()) {
    absl::StatusOr<std::string> blob = takeBlob(*child);
    if (!blob.ok())
      return blob.status();
    if (absl::Status status = addRuns(runs, *blob, child->ranks); !status.ok())
      return status;
  }
  if (!parent())
    return runs;
  std::string packed = packRuns(runs);
  if (packed.size() > mostMessageBytes)
    return absl::ResourceExhaustedError(absl::StrCat("ranks ", place.own.rank, " to ", place.own.end - 1, " gather ",
                                                     packed.size(), " bytes at once, more than ", mostMessageBytes));
  if (!send(*parent(), Blob, packed))
    return reason(lost(*parent()));
  return runs;
}

std::vector<std::string> Rendezvous::expand(const Runs &runs) {
  std::vector<std::string> all;
  for (const auto &[count, blob] : runs)
    all.insert(all.end(), count, blob);
  return all;
}

absl::StatusOr<std::vector<std::string>> Rendezvous::gather(std::string own) {
  absl::StatusOr<Runs> runs = collect(std::move(own));
  if (!runs.ok())
    return runs.status();
  return parent() ? std::vector<std::string>() : expand(*runs);
}

absl::StatusOr<std::vector<std::string>> Rendezvous::allGather(std::string own) {
  absl::StatusOr<Runs> runs = collect(std::move(own));
  if (!runs.ok())
    return runs.status();
  std::string packed;
  if (parent()) {
    absl::StatusOr<std::string> blob = takeBlob(*parent());
    if (!blob.ok())
      return blob.status();
    packed = *std::move(blob);
    runs->clear();
    if (absl::Status status = addRuns(*runs, packed, {0, environment.size}); !status.ok())
      return status;
  } else {
    packed = packRuns(*runs);
  }
  for (const std::unique_ptr<Peer> &child : children())
    if (!send(*child, Blob, packed))
      return reason(lost(*child));
  return expand(*runs);
}

/// Groups as messages have them: how many ranks, and for each its number and what it gave.
static std::string packGroups(const std::vector<const std::map<int, std::string> *> &groups) {
  std::string packed;
  for (const std::map<int, std::string> *group : groups) {
    append(packed, group->size());
    for (const auto &[rank, blob] : *group) {
      append(packed, static_cast<uint64_t>(rank));
      append(packed, blob.size());
      packed += blob;
    }
  }
  return packed;
}

/// False: the message is none of ours.
static bool unpackGroups(const std::string &packed, int ranks, std::vector<std::map<int, std::string>> &groups) {
  for (size_t at = 0; at < packed.size();) {
    uint64_t members = take(packed, at);
    if (members == 0 || members > static_cast<uint64_t>(ranks))
      return false;
    std::map<int, std::string> &group = groups.emplace_back();
    for (; members > 0; --members) {
      uint64_t rank = take(packed, at), size = take(packed, at);
      if (at > packed.size() || size > packed.size() - at || rank >= static_cast<uint64_t>(ranks))
        return false;
      group[static_cast<int>(rank)] = packed.substr(at, size);
      at += size;
    }
  }
  return true;
}

absl::StatusOr<std::vector<Rendezvous::Group>> Rendezvous::findGroups(const Runs &runs) {
  std::map<std::string, Group> byKey;
  int rank = 0;
  for (const std::string &given : expand(runs)) {
    size_t at = 0, size = take(given, at);
    if (at > given.size() || size > given.size() - at)
      return notOurs(rank);
    if (size > 0)
      byKey[given.substr(at, size)][rank] = given.substr(at + size);
    ++rank;
  }
  std::vector<Group> groups;
  for (auto &[key, group] : byKey)
    groups.push_back(std::move(group));
  return groups;
}

absl::StatusOr<std::map<int, std::string>> Rendezvous::gatherAlike(const std::string &key, const std::string &own) {
  std::string given;
  append(given, key.size());
  absl::StatusOr<Runs> runs = collect(absl::StrCat(given, key, own));
  if (!runs.ok())
    return runs.status();
  std::vector<Group> groups;
  if (parent()) {
    absl::StatusOr<std::string> packed = takeBlob(*parent());
    if (!packed.ok())
      return packed.status();
    if (!unpackGroups(*packed, environment.size, groups))
      return notOurs(place.parent);
  } else {
    absl::StatusOr<std::vector<Group>> found = findGroups(*runs);
    if (!found.ok())
      return found.status();
    groups = *std::move(found);
  }
  for (const std::unique_ptr<Peer> &child : children()) {
    // Those of which a rank is below it.
    std::vector<const Group *> wanted;
    for (const Group &group : groups)
      if (auto it = group.lower_bound(child->ranks.rank); it != group.end() && child->ranks.contains(it->first))
        wanted.push_back(&group);
    if (!send(*child, Blob, packGroups(wanted)))
      return reason(lost(*child));
  }
  for (Group &group : groups)
    if (group.contains(environment.rank))
      return std::move(group);
  return Group();
}
