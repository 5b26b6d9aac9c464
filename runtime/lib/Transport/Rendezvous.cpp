//===- Rendezvous.cpp - Processes that know each other -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rendezvous.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace dovetail::runtime;
using Clock = std::chrono::steady_clock;

namespace {

/// How often ranks say that they live. Rank 0 hears all of them.
std::chrono::milliseconds heartbeatPeriod(int ranks) { return std::chrono::milliseconds(ranks <= 512 ? 200 : 1000); }
/// A process from which nothing has come for so long has stopped, also where ranks may take longer than that.
constexpr std::chrono::milliseconds mostSilence = std::chrono::seconds(7);
/// Where they may not, machines that are busy with something else are given so much.
constexpr std::chrono::milliseconds leastSilence = std::chrono::seconds(2);
/// Within this time it comes to light that a rank is lost.
constexpr auto reasonDelay = std::chrono::seconds(2);

} // namespace

absl::Status Rendezvous::lost(int rank) const {
  return absl::UnavailableError(absl::StrCat("rank ", rank, " on host '", peers[rank]->host,
                                             "' is gone: its process ended or its machine is away"));
}

absl::Status Rendezvous::silent(int rank, std::chrono::milliseconds limit) const {
  return absl::UnavailableError(absl::StrCat("rank ", rank, " on host '", peers[rank]->host, "' has been silent for ",
                                             limit.count() / 1000.0,
                                             " s: its process has stopped or its machine is away"));
}

bool Rendezvous::send(Peer &peer, uint32_t type, const std::string &payload) {
  std::lock_guard lock(peer.sending);
  return peer.socket >= 0 && sendMessage(peer.socket, type, payload);
}

absl::StatusOr<std::string> Rendezvous::takeBlob(int rank) {
  std::unique_lock lock(mutex);
  Peer &peer = *peers[rank];
  changed.wait(lock, [&] { return !peer.blobs.empty() || peer.gone || !error.ok(); });
  if (!error.ok())
    return error;
  if (peer.blobs.empty())
    return absl::UnavailableError(absl::StrCat("rank ", rank, " has ended before the others"));
  std::string blob = std::move(peer.blobs.front());
  peer.blobs.pop_front();
  return blob;
}

absl::StatusOr<std::vector<std::string>> Rendezvous::gather(std::string own) {
  progress.fetch_add(1);
  if (environment.rank != 0) {
    if (!send(*peers[0], Blob, own))
      return reason(lost(0));
    return std::vector<std::string>();
  }
  std::vector<std::string> all(environment.size);
  all[0] = std::move(own);
  for (int rank = 1; rank < environment.size; ++rank) {
    absl::StatusOr<std::string> blob = takeBlob(rank);
    if (!blob.ok())
      return blob.status();
    all[rank] = *std::move(blob);
    taken.fetch_add(1);
  }
  return all;
}

absl::StatusOr<std::vector<std::string>> Rendezvous::allGather(std::string own) {
  absl::StatusOr<std::vector<std::string>> all = gather(std::move(own));
  if (!all.ok())
    return all;
  if (environment.rank == 0) {
    // Most often many ranks in a row give the same: of thousands of ranks each gets a few bytes then.
    std::string packed;
    for (auto first = all->begin(); first != all->end();) {
      auto next = std::find_if(first, all->end(), [&](const std::string &blob) { return blob != *first; });
      append(packed, static_cast<uint64_t>(next - first));
      append(packed, first->size());
      packed += *first;
      first = next;
    }
    for (int rank = 1; rank < environment.size; ++rank)
      if (!send(*peers[rank], Blob, packed))
        return reason(lost(rank));
    return all;
  }
  absl::StatusOr<std::string> packed = takeBlob(0);
  if (!packed.ok())
    return packed.status();
  size_t at = 0;
  for (size_t missing = environment.size; missing > 0;) {
    uint64_t count = take(*packed, at), size = take(*packed, at);
    if (at > packed->size() || size > packed->size() - at || count == 0 || count > missing)
      return absl::UnavailableError("rank 0 sent something else than Dovetail does");
    all->insert(all->end(), count, packed->substr(at, size));
    at += size;
    missing -= count;
  }
  return all;
}

absl::StatusOr<std::map<int, std::string>> Rendezvous::gatherAlike(const std::string &key, const std::string &own) {
  std::string given;
  append(given, key.size());
  absl::StatusOr<std::vector<std::string>> all = gather(absl::StrCat(given, key, own));
  if (!all.ok())
    return all.status();
  std::map<int, std::string> result;
  if (environment.rank == 0) {
    std::map<std::string, std::vector<std::pair<int, std::string>>> byKey;
    for (int rank = 0; rank < environment.size; ++rank) {
      size_t at = 0, size = take((*all)[rank], at);
      if (at > (*all)[rank].size() || size > (*all)[rank].size() - at)
        return absl::UnavailableError(absl::StrCat("rank ", rank, " sent something else than Dovetail does"));
      byKey[(*all)[rank].substr(at, size)].push_back({rank, (*all)[rank].substr(at + size)});
    }
    for (const auto &[found, members] : byKey) {
      std::string packed;
      for (const auto &[rank, blob] : members) {
        append(packed, static_cast<uint64_t>(rank));
        append(packed, blob.size());
        packed += blob;
      }
      for (const auto &[rank, blob] : members) {
        if (rank != 0 && !send(*peers[rank], Blob, found.empty() ? "" : packed))
          return reason(lost(rank));
        if (found == key && !key.empty())
          result[rank] = blob;
      }
    }
    return result;
  }
  absl::StatusOr<std::string> packed = takeBlob(0);
  if (!packed.ok())
    return packed.status();
  for (size_t at = 0; at < packed->size();) {
    uint64_t rank = take(*packed, at), size = take(*packed, at);
    if (at > packed->size() || size > packed->size() - at || rank >= static_cast<uint64_t>(environment.size))
      return absl::UnavailableError("rank 0 sent something else than Dovetail does");
    result[static_cast<int>(rank)] = packed->substr(at, size);
    at += size;
  }
  return result;
}

void Rendezvous::setBusy(bool value) {
  progress.fetch_add(1);
  busy.store(value);
}

void Rendezvous::enterStep(const char *name) {
  step.store(name, std::memory_order_relaxed);
  progress.fetch_add(1, std::memory_order_relaxed);
}

absl::Status Rendezvous::failure() const {
  std::lock_guard lock(mutex);
  return error;
}

absl::Status Rendezvous::reason(const absl::Status &status) const {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, reasonDelay, [&] { return !error.ok(); });
  return error.ok() ? status : error;
}

/// Remembers the first error.
void Rendezvous::keep(const absl::Status &status) {
  {
    std::lock_guard lock(mutex);
    if (!error.ok() || status.ok())
      return;
    error = status;
  }
  changed.notify_all();
  char byte = 0;
  (void)!::write(wake[1], &byte, 1);
}

void Rendezvous::fail(const absl::Status &status) { keep(status); }

void Rendezvous::watch(std::function<void(const absl::Status &)> function) {
  absl::Status found;
  {
    std::lock_guard lock(mutex);
    onFailure = function;
    found = announced ? error : absl::OkStatus();
  }
  if (!found.ok())
    function(found);
}

void Rendezvous::handle(int rank, uint32_t type, std::string payload) {
  Peer &peer = *peers[rank];
  peer.heard = Clock::now();
  size_t at = 0;
  if (type == Blob) {
    {
      std::lock_guard lock(mutex);
      peer.blobs.push_back(std::move(payload));
    }
    changed.notify_all();
  } else if (type == Heartbeat) {
    uint64_t count = take(payload, at);
    peer.busy = take(payload, at) != 0;
    peer.step = payload.substr(std::min(at, payload.size()));
    if (count != peer.progress)
      peer.changed = Clock::now();
    peer.progress = count;
  } else if (type == Failure) {
    keep(unpackFailure(payload));
  } else if (type == Farewell) {
    {
      std::lock_guard lock(mutex);
      peer.gone = true;
    }
    changed.notify_all();
  }
}

void Rendezvous::readFrom(int rank) {
  uint32_t type;
  std::string payload;
  Peer &peer = *peers[rank];
  absl::Status status = receiveMessage(peer.socket, type, payload);
  if (status.ok())
    return handle(rank, type, std::move(payload));
  {
    std::lock_guard lock(peer.sending);
    ::close(peer.socket);
    peer.socket = -1;
  }
  if (!peer.gone)
    keep(lost(rank));
}

void Rendezvous::beat() {
  if (Clock::now() < nextBeat)
    return;
  nextBeat = Clock::now() + heartbeatPeriod(environment.size);
  std::string beat;
  append(beat, progress);
  append(beat, busy);
  beat += step.load();
  for (const std::unique_ptr<Peer> &peer : peers)
    // Whoever is sending something shows that it lives.
    if (std::unique_lock lock(peer->sending, std::try_to_lock); lock && peer->socket >= 0)
      sendMessage(peer->socket, Heartbeat, beat);
}

void Rendezvous::lookForHangs() {
  Peer &own = *peers[0];
  own.busy = busy;
  own.step = step.load();
  uint64_t count = progress, blobs = taken;
  if (count != own.progress || blobs != seenTaken)
    own.changed = Clock::now();
  own.progress = count;
  seenTaken = blobs;
  Clock::time_point limit = Clock::now() - timeout;
  bool hangs = std::any_of(peers.begin(), peers.end(), [&](const auto &peer) { return peer->busy && !peer->gone; }) &&
               std::all_of(peers.begin(), peers.end(), [&](const auto &peer) { return peer->changed < limit; });
  if (!hangs)
    return;
  // All wait for the one that is behind, if one is.
  auto isBehind = [](const auto &a, const auto &b) { return a->progress < b->progress; };
  auto least = std::min_element(peers.begin(), peers.end(), isBehind);
  auto isAsFar = [&](const auto &peer) { return peer->progress == (*least)->progress; };
  bool isAlone = std::count_if(peers.begin(), peers.end(), isAsFar) == 1;
  std::string who =
      isAlone ? absl::StrCat("rank ", least - peers.begin(), " on host '", (*least)->host, "' has made no progress")
              : absl::StrCat("none of ", peers.size(), " ranks has made progress");
  const std::string &at = (*least)->step;
  keep(absl::DeadlineExceededError(absl::StrCat(who, " for ", timeout.count() / 1000.0, " s",
                                                at.empty() ? "" : absl::StrCat(", in step '", at, "'"),
                                                "; if it is only slow, allow more time (--timeout)")));
}

void Rendezvous::lookForSilence() {
  Clock::time_point now = Clock::now();
  // What stopped this process, or kept it busy with messages, says nothing of the others.
  Clock::duration late = now - lastLook - heartbeatPeriod(environment.size);
  lastLook = now;
  std::chrono::milliseconds limit = std::clamp(timeout, leastSilence, mostSilence);
  for (size_t rank = 0; rank < peers.size(); ++rank) {
    Peer &peer = *peers[rank];
    if (late > std::chrono::seconds(1))
      peer.heard += late;
    if (peer.socket < 0 || peer.gone || now - peer.heard <= limit)
      continue;
    keep(silent(static_cast<int>(rank), limit));
    // Whoever is sending something to it gives up.
    ::shutdown(peer.socket, SHUT_RDWR);
  }
}

void Rendezvous::tell(const absl::Status &status) {
  for (const std::unique_ptr<Peer> &peer : peers)
    send(*peer, Failure, packFailure(status));
}

void Rendezvous::announce() {
  std::function<void(const absl::Status &)> function;
  absl::Status found;
  {
    std::lock_guard lock(mutex);
    if (error.ok() || announced)
      return;
    found = error;
  }
  tell(found);
  {
    std::lock_guard lock(mutex);
    announced = true;
    function = onFailure;
  }
  if (function)
    function(found);
}

void Rendezvous::run() {
  while (true) {
    std::vector<pollfd> entries{{wake[0], POLLIN, 0}};
    std::vector<int> ranks{-1};
    for (size_t rank = 0; rank < peers.size(); ++rank)
      if (peers[rank]->socket >= 0) {
        entries.push_back({peers[rank]->socket, POLLIN, 0});
        ranks.push_back(static_cast<int>(rank));
      }
    ::poll(entries.data(), entries.size(), millisecondsUntil(nextBeat) + 1);
    if (entries[0].revents) {
      char bytes[64];
      (void)!::read(wake[0], bytes, sizeof(bytes));
    }
    for (size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].revents)
        readFrom(ranks[i]);
      // Many messages may take a while.
      beat();
    }
    beat();
    if (Clock::now() - lastLook >= heartbeatPeriod(environment.size)) {
      lookForSilence();
      if (environment.rank == 0)
        lookForHangs();
    }
    announce();
    if (stopping) {
      announce(); // An error of the meantime.
      for (const std::unique_ptr<Peer> &peer : peers)
        send(*peer, Farewell, "");
      return;
    }
  }
}

Rendezvous::~Rendezvous() {
  stopping = true;
  if (thread.joinable()) {
    char byte = 0;
    (void)!::write(wake[1], &byte, 1);
    thread.join();
  }
  for (const std::unique_ptr<Peer> &peer : peers)
    if (peer->socket >= 0)
      ::close(peer->socket);
  for (int end : wake)
    if (end >= 0)
      ::close(end);
}
