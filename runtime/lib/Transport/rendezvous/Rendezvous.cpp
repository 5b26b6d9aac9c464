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
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace dovetail::runtime;
using Clock = std::chrono::steady_clock;

namespace {

/// How often ranks say that they live.
constexpr std::chrono::milliseconds heartbeatPeriod(200);
/// A process from which nothing has come for so long has stopped, also where ranks may take longer than that.
constexpr std::chrono::milliseconds mostSilence = std::chrono::seconds(7);
/// Where they may not, machines that are busy with something else are given so much.
constexpr std::chrono::milliseconds leastSilence = std::chrono::seconds(2);
/// Within this time it comes to light that a rank is lost.
constexpr auto reasonDelay = std::chrono::seconds(2);

} // namespace

absl::Status EventFile::open() {
  file = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (file < 0)
    return absl::UnavailableError(absl::StrCat("cannot create a file for events: ", std::strerror(errno)));
  return absl::OkStatus();
}

EventFile::~EventFile() {
  if (file >= 0)
    ::close(file);
}

void EventFile::signal() {
  uint64_t one = 1;
  (void)!::write(file, &one, sizeof(one));
}

void EventFile::clear() {
  uint64_t count;
  (void)!::read(file, &count, sizeof(count));
}

absl::Status Rendezvous::lost(const Peer &peer) {
  return absl::UnavailableError(absl::StrCat("rank ", peer.ranks.rank, " on host '", peer.host,
                                             "' is gone: its process ended or its machine is away"));
}

absl::Status Rendezvous::silent(const Peer &peer, std::chrono::milliseconds limit) {
  return absl::UnavailableError(absl::StrCat("rank ", peer.ranks.rank, " on host '", peer.host,
                                             "' has been silent for ", limit.count() / 1000.0,
                                             " s: its process has stopped or its machine is away"));
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
  arrival.wait_for(lock, reasonDelay, [&] { return !error.ok(); });
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
  arrival.notify_all();
  wake.signal();
  news.signal();
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

void Rendezvous::handle(Peer &peer, uint32_t type, std::string payload) {
  peer.heard = Clock::now();
  peer.confirmed = true;
  if (type == Heartbeat) {
    // Who is above says that it lives, and no more.
    if (std::optional<Progress> found = unpackProgress(payload))
      peer.progress = *std::move(found);
    return;
  }
  if (type == Failure)
    return keep(unpackFailure(payload));
  {
    std::lock_guard lock(mutex);
    if (type == Blob)
      peer.blobs.push_back(std::move(payload));
    else if (type == Ready)
      peer.ready = true;
    else if (type == Farewell)
      peer.gone = true;
  }
  arrival.notify_all();
  news.signal();
}

void Rendezvous::readFrom(Peer &peer) {
  uint32_t type;
  std::string payload;
  absl::Status status = receiveMessage(peer.socket, type, payload, mostMessageBytes, [&] {
    peer.heard = Clock::now();
    beat();
  });
  if (status.ok())
    return handle(peer, type, std::move(payload));
  // One that waited too long to be let in comes again.
  if (!peer.gone && peer.confirmed)
    keep(lost(peer));
  std::lock_guard lock(peer.sending);
  ::close(peer.socket.exchange(-1));
}

void Rendezvous::beat() {
  if (Clock::now() < nextBeat)
    return;
  nextBeat = Clock::now() + heartbeatPeriod;
  for (const std::unique_ptr<Peer> &peer : peers)
    // Whoever is sending something shows that it lives.
    if (std::unique_lock lock(peer->sending, std::try_to_lock); lock && peer->socket >= 0)
      sendMessage(peer->socket, Heartbeat, peer.get() == parent() ? pack(summarize()) : std::string());
}

Progress Rendezvous::summarize() const {
  uint64_t count = progress, blobs = taken;
  Progress all{count + blobs, busy, count, 1, static_cast<uint64_t>(environment.rank), host, step.load()};
  for (const std::unique_ptr<Peer> &peer : children()) {
    if (peer->gone)
      all.done += peer->progress.done;
    else
      all.add(peer->progress);
  }
  return all;
}

void Rendezvous::lookForHangs() {
  Progress all = summarize();
  if (all.done != seen || !complete)
    changed = Clock::now();
  seen = all.done;
  // Whoever is above looks after all.
  if ((parent() && !parent()->gone) || !all.busy || changed >= Clock::now() - timeout)
    return;
  // All wait for the one that is behind, if one is.
  std::string who = all.behind == 1 ? absl::StrCat("rank ", all.rank, " on host '", all.host, "' has made no progress")
                                    : absl::StrCat("none of ", place.own.size(), " ranks has made progress");
  keep(absl::DeadlineExceededError(absl::StrCat(who, " for ", timeout.count() / 1000.0, " s",
                                                all.step.empty() ? "" : absl::StrCat(", in step '", all.step, "'"),
                                                "; if it is only slow, allow more time (--timeout)")));
}

void Rendezvous::lookForSilence() {
  Clock::time_point now = Clock::now();
  // What stopped this process, or kept it busy with messages, says nothing of the others.
  Clock::duration late = now - lastLook - heartbeatPeriod;
  lastLook = now;
  std::chrono::milliseconds limit = std::clamp(timeout, leastSilence, mostSilence);
  for (const std::unique_ptr<Peer> &peer : peers) {
    if (peer->socket < 0 || peer->gone)
      continue;
    if (late > std::chrono::seconds(1))
      peer->heard += late;
    if (now - peer->heard <= limit)
      continue;
    keep(silent(*peer, limit));
    // Whoever is sending something to it gives up.
    ::shutdown(peer->socket, SHUT_RDWR);
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
  lastLook = changed = Clock::now();
  while (true) {
    std::vector<pollfd> entries{{wake.descriptor(), POLLIN, 0}};
    std::vector<Peer *> connected;
    for (const std::unique_ptr<Peer> &peer : peers)
      if (int socket = peer->socket; socket >= 0) {
        entries.push_back({socket, POLLIN, 0});
        connected.push_back(peer.get());
      }
    ::poll(entries.data(), entries.size(), millisecondsUntil(nextBeat) + 1);
    if (entries[0].revents)
      wake.clear();
    for (size_t i = 0; i < connected.size(); ++i) {
      if (entries[i + 1].revents)
        readFrom(*connected[i]);
      // Large messages may take a while.
      beat();
    }
    beat();
    if (Clock::now() - lastLook >= heartbeatPeriod) {
      lookForSilence();
      lookForHangs();
    }
    announce();
    if (stopping) {
      announce(); // An error of the meantime.
      // Whoever was let in after that has not heard of it.
      if (absl::Status status = failure(); !status.ok())
        tell(status);
      for (const std::unique_ptr<Peer> &peer : peers)
        send(*peer, Farewell, "");
      return;
    }
  }
}

Rendezvous::~Rendezvous() {
  stopping = true;
  wake.signal();
  if (thread.joinable())
    thread.join();
  for (const std::unique_ptr<Peer> &peer : peers)
    if (peer->socket >= 0)
      ::close(peer->socket);
}
