//===- RendezvousStart.cpp - How processes find each other ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the beginning of a rendezvous: all ask at rank 0, which lets those in that are right below it, and sends
// the others to these, who do the same.
//
//===----------------------------------------------------------------------===//

#include "Rendezvous.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace dovetail::runtime;

namespace {

/// How long another machine may take to answer at one address of several.
constexpr auto callTimeout = std::chrono::seconds(3);

/// Whether somebody is still at the other end.
bool isConnected(int socket) {
  char byte;
  ssize_t count = socket >= 0 ? ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) : 0;
  return count > 0 || (count < 0 && errno == EAGAIN);
}

} // namespace

Rendezvous::Peer::Peer(Subtree ranks) : ranks(ranks) {
  progress.behind = static_cast<uint64_t>(ranks.size());
  progress.rank = static_cast<uint64_t>(ranks.rank);
  progress.step = "start-up";
}

Rendezvous::Rendezvous(const LaunchEnvironment &environment, std::chrono::milliseconds timeout)
    : environment(environment), host(hostName()), timeout(timeout), deadline(Clock::now() + timeout),
      place(findPlace(environment.rank, environment.size)), came(place.own.size()) {
  if (place.parent >= 0)
    peers.push_back(std::make_unique<Peer>(Subtree{place.parent, place.parent + 1}));
  for (const Subtree &child : place.children)
    peers.push_back(std::make_unique<Peer>(child));
}

absl::StatusOr<std::unique_ptr<Rendezvous>> Rendezvous::connect(const LaunchEnvironment &environment,
                                                                std::chrono::milliseconds timeout,
                                                                std::unique_ptr<RendezvousEntrance> entrance) {
  std::unique_ptr<Rendezvous> result(new Rendezvous(environment, timeout));
  absl::Status status = result->start(std::move(entrance));
  if (status.ok())
    return result;
  // Its end tells the others.
  result->keep(status);
  return status;
}

absl::Status Rendezvous::start(std::unique_ptr<RendezvousEntrance> entrance) {
  for (EventFile *file : {&wake, &news})
    if (absl::Status status = file->open(); !status.ok())
      return status;
  if (!entrance && !place.children.empty()) {
    absl::StatusOr<std::unique_ptr<RendezvousEntrance>> opened =
        RendezvousEntrance::open(parent() ? 0 : environment.port);
    if (!opened.ok())
      return parent() ? absl::Status(opened.status().code(),
                                     absl::StrCat("rank ", environment.rank, ": ", opened.status().message()))
                      : opened.status();
    entrance = *std::move(opened);
  }
  thread = std::thread([this] { run(); });
  Place own{static_cast<uint64_t>(environment.rank), "", 0};
  if (parent() && entrance) {
    own.addresses = RendezvousEntrance::ownAddresses();
    own.port = static_cast<uint64_t>(entrance->port());
  }
  absl::Status status = parent() ? reach(own) : absl::OkStatus();
  if (status.ok() && entrance)
    status = admit(*entrance);
  if (status.ok() && parent())
    status = awaitOthers();
  complete = status.ok();
  for (const std::unique_ptr<Peer> &child : children())
    if (status.ok() && !send(*child, Ready, ""))
      status = reason(lost(*child));
  return status;
}

absl::Status Rendezvous::awaitOthers() {
  if (!send(*parent(), Ready, ""))
    return reason(lost(*parent()));
  std::unique_lock lock(mutex);
  arrival.wait(lock, [&] { return parent()->ready || parent()->gone || !error.ok(); });
  if (parent()->ready)
    return absl::OkStatus();
  if (!error.ok())
    return error;
  return absl::UnavailableError(absl::StrCat("rank ", place.parent, " has ended before the others"));
}

void Rendezvous::connectPeer(Peer &peer, int socket, std::string where, bool confirmed) {
  int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A rank that takes nothing any more must not hold up those that write to it.
  timeval limit{timeout.count() / 1000 + 1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  peer.host = std::move(where);
  peer.heard = Clock::now();
  peer.confirmed = confirmed;
  peer.socket = socket;
  wake.signal();
}

Rendezvous::Peer &Rendezvous::childOf(int rank) const {
  return **std::find_if(children().begin(), children().end(),
                        [&](const std::unique_ptr<Peer> &child) { return child->ranks.contains(rank); });
}

absl::Status Rendezvous::admit(RendezvousEntrance &entrance) {
  for (;;) {
    {
      std::lock_guard lock(mutex);
      if (!error.ok())
        return error;
      if (std::all_of(children().begin(), children().end(), [](const auto &child) { return child->ready; }))
        return absl::OkStatus();
      if (parent() && parent()->gone)
        return absl::UnavailableError(absl::StrCat("rank ", place.parent, " has ended before the others"));
    }
    absl::StatusOr<RendezvousEntrance::Guest> guest = entrance.next(deadline, news.descriptor());
    if (absl::IsDeadlineExceeded(guest.status()))
      break;
    if (guest.ok())
      answer(*guest);
    else
      news.clear();
  }
  std::vector<int> absent;
  for (int rank = place.own.rank + 1; rank < place.own.end; ++rank)
    if (!came[rank - place.own.rank])
      absent.push_back(rank);
  std::vector<std::string> incomplete;
  {
    std::lock_guard lock(mutex);
    for (const std::unique_ptr<Peer> &child : children())
      if (!child->ready)
        incomplete.push_back(child->ranks.size() == 1 ? absl::StrCat(child->ranks.rank)
                                                      : absl::StrCat(child->ranks.rank, " to ", child->ranks.end - 1));
  }
  std::string who = absent.empty() ? absl::StrCat("not all of ranks ", absl::StrJoin(incomplete, ", "),
                                                  " connected to their places below rank ", environment.rank)
                                   : absl::StrCat("rank", absent.size() > 1 ? "s " : " ", absl::StrJoin(absent, ", "),
                                                  " did not connect to rank ", environment.rank);
  return absl::DeadlineExceededError(absl::StrCat(who, " within ", timeout.count() / 1000.0, " s"));
}

void Rendezvous::answer(const RendezvousEntrance::Guest &guest) {
  const Hello &hello = guest.hello;
  auto dismiss = [&](uint32_t type, const std::string &payload) {
    sendMessage(guest.socket, type, payload);
    ::close(guest.socket);
  };
  auto isElsewhere = [&] {
    dismiss(Failure, packFailure(absl::UnavailableError(
                         absl::StrCat("rank ", environment.rank, " answers there, not rank ", hello.to))));
  };
  if (hello.to != static_cast<uint64_t>(environment.rank))
    return isElsewhere();
  if (std::string problem = whatIsWrong(hello); !problem.empty())
    return dismiss(Failure, packFailure(absl::InvalidArgumentError(problem)));
  int rank = static_cast<int>(hello.rank);
  if (!place.own.contains(rank))
    return isElsewhere();
  came[rank - environment.rank] = true;
  Peer &child = childOf(rank);
  if (child.ranks.rank != rank)
    return dismiss(Referral, pack(child.socket >= 0 ? child.place : Place{hello.rank, "", 0}));
  // It waited too long for an answer before, which the thread finds out.
  if (child.socket >= 0)
    return dismiss(Referral, pack(Place{hello.rank, "", 0}));
  if (!sendMessage(guest.socket, Welcome, host)) {
    ::close(guest.socket); // It will come again.
    return;
  }
  child.place = hello.place;
  connectPeer(child, guest.socket, hello.host, /*confirmed=*/false);
}

std::string Rendezvous::whatIsWrong(const Hello &hello) const {
  int own = environment.rank, size = environment.size;
  if (hello.job != environment.job)
    return absl::StrCat("rank ", hello.rank, " of job '", hello.job, "' has connected to rank ", own, " of job '",
                        environment.job, "', which uses port ", environment.port,
                        "; give each job a port of its own with DOVETAIL_PORT or --address");
  if (hello.token != environment.token)
    return absl::StrCat("rank ", hello.rank, " has connected to rank ", own, " without the token of its run; set ",
                        "DOVETAIL_TOKEN to one value for all processes of a run, and to another for other runs");
  if (hello.size != static_cast<uint64_t>(size))
    return absl::StrCat("rank ", own, " is one of ", size, " ranks, but rank ", hello.rank, " one of ", hello.size,
                        "; give all processes the same number");
  if (hello.rank >= hello.size || hello.rank == static_cast<uint64_t>(own) ||
      std::any_of(children().begin(), children().end(), [&](const std::unique_ptr<Peer> &child) {
        std::lock_guard lock(child->sending); // The thread may close it.
        return child->ranks.rank == static_cast<int>(hello.rank) && isConnected(child->socket);
      }))
    return absl::StrCat("two processes are rank ", hello.rank, "; give each a rank of its own, from 0 to ",
                        hello.size - 1);
  return "";
}

absl::Status Rendezvous::reach(const Place &own) {
  const Place root{0, environment.address, static_cast<uint64_t>(environment.port)};
  // With thousands of ranks, those that have to wait must not keep rank 0 busy.
  const auto mostPause = std::chrono::milliseconds(std::max(50, environment.size / 8));
  auto pause = std::chrono::milliseconds(5);
  absl::Status problem;
  bool hasAnswered = false;
  Place asked = root, next = root;
  do {
    asked = next;
    next = root;
    for (absl::string_view address : absl::StrSplit(asked.addresses, ',')) {
      absl::StatusOr<std::optional<Place>> answer = call(std::string(address), asked, own);
      problem = answer.status();
      if (answer.ok() && !*answer)
        return absl::OkStatus();
      if (absl::IsInvalidArgument(problem))
        return problem;
      hasAnswered = answer.ok();
      if (!answer.ok() && Clock::now() < deadline)
        continue;
      if (!answer.ok())
        break;
      if ((*answer)->port != 0 && (*answer)->rank > asked.rank)
        next = **std::move(answer);
      break;
    }
    // Who is to answer may not have started yet.
    if (next.rank == 0) {
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, mostPause);
    }
  } while (Clock::now() < deadline);
  if (hasAnswered)
    return absl::DeadlineExceededError(absl::StrCat("rank ", environment.rank, " reached rank ", asked.rank,
                                                    ", but the ranks between them did not connect within ",
                                                    timeout.count() / 1000.0, " s"));
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", environment.rank, " did not reach rank ", asked.rank, " at ", asked.addresses, ", port ", asked.port,
      ", within ", timeout.count() / 1000.0, " s: ", problem.message(), "; it may have ended"));
}

absl::StatusOr<std::optional<Place>> Rendezvous::call(const std::string &address, const Place &asked,
                                                      const Place &own) {
  addrinfo hints = {}, *addresses = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int error = ::getaddrinfo(address.c_str(), std::to_string(asked.port).c_str(), &hints, &addresses))
    return absl::UnavailableError(::gai_strerror(error));
  absl::Cleanup free = [&] { ::freeaddrinfo(addresses); };
  const std::string greeting = pack({environment.token, static_cast<uint64_t>(environment.rank),
                                     static_cast<uint64_t>(environment.size), host, environment.job, asked.rank, own});
  absl::Status problem = absl::UnavailableError("no answer");
  for (addrinfo *entry = addresses; entry; entry = entry->ai_next) {
    int socket = ::socket(entry->ai_family, entry->ai_socktype | SOCK_CLOEXEC, entry->ai_protocol);
    if (socket < 0)
      continue;
    // The limit for sending is that for connecting, too.
    timeval limit{std::chrono::seconds(callTimeout).count(), 0};
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    uint32_t type = Failure;
    std::string answer;
    if (::connect(socket, entry->ai_addr, entry->ai_addrlen) != 0)
      problem = absl::UnavailableError(std::strerror(errno));
    else if (!sendMessage(socket, Greeting, greeting))
      problem = absl::UnavailableError("the connection ended");
    else
      problem = receiveMessage(socket, type, answer, mostGreetingBytes);
    if (problem.ok() && type == Welcome) {
      connectPeer(*parent(), socket, answer, /*confirmed=*/true);
      return std::nullopt;
    }
    ::close(socket);
    if (!problem.ok())
      continue;
    if (std::optional<Place> place = unpackPlace(answer); type == Referral && place)
      return place;
    problem = type == Failure ? unpackFailure(answer) : absl::UnavailableError("another program answers there");
    if (absl::IsInvalidArgument(problem))
      return problem;
  }
  return problem;
}
