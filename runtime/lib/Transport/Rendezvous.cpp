//===- Rendezvous.cpp - Processes that know each other -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rendezvous.h"

#include "RendezvousMessages.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace dovetail::runtime;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto heartbeatPeriod = std::chrono::milliseconds(200);
/// A process from which nothing has come for so long has stopped.
constexpr auto silence = 10 * heartbeatPeriod;
/// Within this time it comes to light that a rank is lost.
constexpr auto reasonDelay = std::chrono::seconds(2);

absl::Status lost(int rank) {
  return absl::UnavailableError(absl::StrCat("rank ", rank, " is gone: its process ended or its machine is away"));
}

/// The payload of a message that says what went wrong.
std::string packFailure(const absl::Status &status) {
  std::string payload;
  append(payload, static_cast<uint64_t>(status.code()));
  return payload + std::string(status.message());
}

} // namespace

bool Rendezvous::send(Peer &peer, uint32_t type, const std::string &payload) {
  std::lock_guard lock(peer.sending);
  return peer.socket >= 0 && sendMessage(peer.socket, type, payload);
}

void Rendezvous::setUpSocket(int socket) const {
  int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A rank that takes nothing any more must not hold up those that write to it.
  timeval limit{timeout.count() / 1000 + 1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

absl::StatusOr<std::unique_ptr<Rendezvous>> Rendezvous::connect(const LaunchEnvironment &environment,
                                                                std::chrono::milliseconds timeout) {
  std::unique_ptr<Rendezvous> result(new Rendezvous(environment, timeout));
  if (::pipe(result->wake) != 0)
    return absl::UnavailableError(absl::StrCat("no pipe can be made: ", std::strerror(errno)));
  if (absl::Status status = environment.rank == 0 ? result->listen() : result->reach(); !status.ok())
    return status;
  for (const std::unique_ptr<Peer> &peer : result->peers)
    peer->heard = peer->changed = Clock::now();
  result->thread = std::thread([self = result.get()] { self->run(); });
  return result;
}

absl::Status Rendezvous::listen() {
  for (int rank = 0; rank < environment.size; ++rank)
    peers.push_back(std::make_unique<Peer>());
  if (environment.size == 1)
    return absl::OkStatus();
  int listener = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, off = 0;
  sockaddr_in6 any = {};
  any.sin6_family = AF_INET6;
  any.sin6_addr = in6addr_any;
  any.sin6_port = htons(static_cast<uint16_t>(environment.port));
  bool open = false;
  if (listener >= 0) {
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    ::setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    open = ::bind(listener, reinterpret_cast<sockaddr *>(&any), sizeof(any)) == 0;
  }
  if (!open && errno == EAFNOSUPPORT) {
    if (listener >= 0)
      ::close(listener);
    sockaddr_in four = {};
    four.sin_family = AF_INET;
    four.sin_port = any.sin6_port;
    listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    open = ::bind(listener, reinterpret_cast<sockaddr *>(&four), sizeof(four)) == 0;
  }
  if (!open || ::listen(listener, environment.size) != 0) {
    absl::Status status =
        absl::UnavailableError(absl::StrCat("rank 0 cannot listen on port ", environment.port, ": ",
                                            std::strerror(errno), "; choose another with DOVETAIL_PORT or --address"));
    if (listener >= 0)
      ::close(listener);
    return status;
  }
  int missing = environment.size - 1;
  while (missing > 0) {
    pollfd entry{listener, POLLIN, 0};
    int ready = ::poll(&entry, 1, millisecondsUntil(deadline));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      break;
    int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0)
      continue;
    uint32_t type;
    std::string payload;
    size_t at = 0;
    absl::Status status = receiveMessage(socket, type, payload);
    uint64_t rank = take(payload, at), size = take(payload, at);
    std::string job = status.ok() ? payload.substr(std::min(at, payload.size())) : "";
    bool isRank = status.ok() && type == Hello;
    if (std::string problem = isRank ? whatIsWrong(rank, size, job) : "no rank"; !problem.empty()) {
      if (isRank)
        sendMessage(socket, Failure, packFailure(absl::InvalidArgumentError(problem)));
      ::close(socket); // Somebody else.
      continue;
    }
    setUpSocket(socket);
    peers[rank]->socket = socket;
    --missing;
  }
  ::close(listener);
  if (missing == 0)
    return absl::OkStatus();
  std::vector<size_t> absent;
  for (size_t rank = 1; rank < peers.size(); ++rank)
    if (peers[rank]->socket < 0)
      absent.push_back(rank);
  absl::Status late =
      absl::DeadlineExceededError(absl::StrCat("rank", absent.size() > 1 ? "s " : " ", absl::StrJoin(absent, ", "),
                                               " did not come to rank 0 within ", timeout.count() / 1000.0, " s"));
  tell(late);
  return late;
}

std::string Rendezvous::whatIsWrong(uint64_t rank, uint64_t size, const std::string &job) const {
  if (job != environment.job)
    return absl::StrCat("rank ", rank, " of job '", job, "' has come to rank 0 of job '", environment.job,
                        "', which uses port ", environment.port,
                        "; give each job a port of its own with DOVETAIL_PORT or --address");
  if (size != peers.size())
    return absl::StrCat("rank 0 is one of ", peers.size(), " ranks, but rank ", rank, " one of ", size,
                        "; say the same to all processes");
  if (rank == 0 || rank >= peers.size() || peers[rank]->socket >= 0)
    return absl::StrCat("two processes are rank ", rank, "; give each a rank of its own, from 0 to ", size - 1);
  return "";
}

absl::Status Rendezvous::reach() {
  std::string problem = "no answer";
  do {
    addrinfo hints = {}, *addresses = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    std::string port = std::to_string(environment.port);
    int found = ::getaddrinfo(environment.address.c_str(), port.c_str(), &hints, &addresses);
    if (found != 0)
      problem = ::gai_strerror(found);
    int connected = -1;
    for (addrinfo *entry = found == 0 ? addresses : nullptr; entry && connected < 0; entry = entry->ai_next) {
      int socket = ::socket(entry->ai_family, entry->ai_socktype | SOCK_CLOEXEC, entry->ai_protocol);
      if (socket >= 0)
        setUpSocket(socket); // Its limit is that of connecting, too.
      if (socket >= 0 && ::connect(socket, entry->ai_addr, entry->ai_addrlen) == 0) {
        connected = socket;
        break;
      }
      problem = std::strerror(errno);
      if (socket >= 0)
        ::close(socket);
    }
    if (found == 0)
      ::freeaddrinfo(addresses);
    if (connected >= 0) {
      peers.push_back(std::make_unique<Peer>());
      peers[0]->socket = connected;
      std::string hello;
      append(hello, environment.rank);
      append(hello, environment.size);
      hello += environment.job;
      if (sendMessage(connected, Hello, hello))
        return absl::OkStatus();
      ::close(connected);
      peers.clear();
    }
    // Rank 0 may not have started yet.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (Clock::now() < deadline);
  return absl::DeadlineExceededError(absl::StrCat("rank ", environment.rank, " did not reach rank 0 at ",
                                                  environment.address, ", port ", environment.port, ", within ",
                                                  timeout.count() / 1000.0, " s: ", problem));
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
    std::string packed;
    for (const std::string &blob : *all) {
      append(packed, blob.size());
      packed += blob;
    }
    for (int rank = 1; rank < environment.size; ++rank)
      if (!send(*peers[rank], Blob, packed))
        return reason(lost(rank));
    return all;
  }
  absl::StatusOr<std::string> packed = takeBlob(0);
  if (!packed.ok())
    return packed.status();
  all->resize(environment.size);
  size_t at = 0;
  for (std::string &blob : *all) {
    uint64_t size = take(*packed, at);
    if (at > packed->size() || size > packed->size() - at)
      return absl::UnavailableError("rank 0 sent something else than Dovetail does");
    blob = packed->substr(at, size);
    at += size;
  }
  return all;
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
    auto code = static_cast<absl::StatusCode>(take(payload, at));
    keep(absl::Status(code, payload.substr(std::min(at, payload.size()))));
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

void Rendezvous::sendHeartbeats() {
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
  // One that is silent has stopped; otherwise all wait for the one that is behind, if one is.
  auto isSilent = [&](const auto &peer) {
    return peer != peers[0] && !peer->gone && Clock::now() - peer->heard > silence;
  };
  auto silent = std::find_if(peers.begin(), peers.end(), isSilent);
  auto isBehind = [](const auto &a, const auto &b) { return a->progress < b->progress; };
  auto least = std::min_element(peers.begin(), peers.end(), isBehind);
  auto isAsFar = [&](const auto &peer) { return peer->progress == (*least)->progress; };
  bool isAlone = std::count_if(peers.begin(), peers.end(), isAsFar) == 1;
  auto culprit = silent != peers.end() ? silent : least;
  std::string who = silent != peers.end() || isAlone
                        ? absl::StrCat("rank ", culprit - peers.begin(), " has made no progress")
                        : absl::StrCat("none of ", peers.size(), " ranks has made progress");
  const std::string &at = (*culprit)->step;
  keep(absl::DeadlineExceededError(absl::StrCat(
      who, " for ", timeout.count() / 1000.0, " s", at.empty() ? "" : absl::StrCat(", in step '", at, "'"),
      silent != peers.end() ? "; its process has stopped" : "; if it is only slow, allow more time (--timeout)")));
}

/// Rank 0 looks for hangs; others look for rank 0.
void Rendezvous::lookForSilence() {
  if (busy && peers[0]->socket >= 0 && Clock::now() - peers[0]->heard > timeout + 2 * heartbeatPeriod)
    keep(
        absl::DeadlineExceededError(absl::StrCat("rank 0 has not been heard of for ", timeout.count() / 1000.0, " s")));
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
  Clock::time_point next = Clock::now();
  while (true) {
    std::vector<pollfd> entries{{wake[0], POLLIN, 0}};
    std::vector<int> ranks{-1};
    for (size_t rank = 0; rank < peers.size(); ++rank)
      if (peers[rank]->socket >= 0) {
        entries.push_back({peers[rank]->socket, POLLIN, 0});
        ranks.push_back(static_cast<int>(rank));
      }
    ::poll(entries.data(), entries.size(), millisecondsUntil(next));
    if (entries[0].revents) {
      char bytes[64];
      (void)!::read(wake[0], bytes, sizeof(bytes));
    }
    for (size_t i = 1; i < entries.size(); ++i)
      if (entries[i].revents)
        readFrom(ranks[i]);
    if (Clock::now() >= next) {
      next = Clock::now() + heartbeatPeriod;
      sendHeartbeats();
      if (environment.rank == 0)
        lookForHangs();
      else
        lookForSilence();
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
