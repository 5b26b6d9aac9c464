//===- RendezvousStart.cpp - How processes find each other ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the beginning of a rendezvous: the others find rank 0, which lets them in.
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

void Rendezvous::setUpSocket(int socket) const {
  int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A rank that takes nothing any more must not hold up those that write to it.
  timeval limit{timeout.count() / 1000 + 1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

absl::StatusOr<std::unique_ptr<Rendezvous>> Rendezvous::connect(const LaunchEnvironment &environment,
                                                                std::chrono::milliseconds timeout,
                                                                std::unique_ptr<RendezvousEntrance> entrance) {
  std::unique_ptr<Rendezvous> result(new Rendezvous(environment, timeout));
  if (::pipe2(result->wake, O_CLOEXEC) != 0)
    return absl::UnavailableError(absl::StrCat("no pipe can be made: ", std::strerror(errno)));
  absl::Status status = environment.rank == 0 ? result->receive(std::move(entrance)) : result->reach();
  if (!status.ok())
    return status;
  for (const std::unique_ptr<Peer> &peer : result->peers)
    peer->heard = peer->changed = Clock::now();
  result->lastLook = Clock::now();
  result->thread = std::thread([self = result.get()] { self->run(); });
  return result;
}

absl::Status Rendezvous::receive(std::unique_ptr<RendezvousEntrance> entrance) {
  for (int rank = 0; rank < environment.size; ++rank)
    peers.push_back(std::make_unique<Peer>());
  peers[0]->host = hostName();
  if (environment.size == 1)
    return absl::OkStatus();
  if (!entrance) {
    absl::StatusOr<std::unique_ptr<RendezvousEntrance>> opened = RendezvousEntrance::open(environment.port);
    if (!opened.ok())
      return opened.status();
    entrance = *std::move(opened);
  }
  for (int missing = environment.size - 1; missing > 0;) {
    absl::StatusOr<RendezvousEntrance::Guest> guest = entrance->next(deadline);
    if (!guest.ok())
      break;
    if (std::string problem = whatIsWrong(guest->hello); !problem.empty()) {
      sendMessage(guest->socket, Failure, packFailure(absl::InvalidArgumentError(problem)));
      ::close(guest->socket);
      continue;
    }
    if (!sendMessage(guest->socket, Welcome, peers[0]->host)) {
      ::close(guest->socket); // It will come again.
      continue;
    }
    setUpSocket(guest->socket);
    Peer &peer = *peers[guest->hello.rank];
    // One that waited too long for an answer comes again.
    if (peer.socket >= 0)
      ::close(peer.socket);
    else
      --missing;
    peer.host = guest->hello.host;
    peer.socket = guest->socket;
  }
  std::vector<size_t> absent;
  for (size_t rank = 1; rank < peers.size(); ++rank)
    if (peers[rank]->socket < 0)
      absent.push_back(rank);
  if (absent.empty())
    return absl::OkStatus();
  absl::Status late =
      absl::DeadlineExceededError(absl::StrCat("rank", absent.size() > 1 ? "s " : " ", absl::StrJoin(absent, ", "),
                                               " did not come to rank 0 within ", timeout.count() / 1000.0, " s"));
  tell(late);
  return late;
}

std::string Rendezvous::whatIsWrong(const Hello &hello) const {
  if (hello.job != environment.job)
    return absl::StrCat("rank ", hello.rank, " of job '", hello.job, "' has come to rank 0 of job '", environment.job,
                        "', which uses port ", environment.port,
                        "; give each job a port of its own with DOVETAIL_PORT or --address");
  if (hello.token != environment.token)
    return absl::StrCat("rank ", hello.rank, " has come to rank 0 without the token of its run; give all processes of ",
                        "a run, and no others, the same DOVETAIL_TOKEN");
  if (hello.size != peers.size())
    return absl::StrCat("rank 0 is one of ", peers.size(), " ranks, but rank ", hello.rank, " one of ", hello.size,
                        "; say the same to all processes");
  if (hello.rank == 0 || hello.rank >= peers.size() || isConnected(peers[hello.rank]->socket))
    return absl::StrCat("two processes are rank ", hello.rank, "; give each a rank of its own, from 0 to ",
                        hello.size - 1);
  return "";
}

absl::Status Rendezvous::reach() {
  peers.push_back(std::make_unique<Peer>());
  absl::Status problem;
  do {
    for (absl::string_view address : absl::StrSplit(environment.address, ',')) {
      problem = call(std::string(address));
      if (problem.ok() || absl::IsInvalidArgument(problem))
        return problem;
    }
    // Rank 0 may not have started yet.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (Clock::now() < deadline);
  return absl::DeadlineExceededError(absl::StrCat("rank ", environment.rank, " did not reach rank 0 at ",
                                                  environment.address, ", port ", environment.port, ", within ",
                                                  timeout.count() / 1000.0, " s: ", problem.message()));
}

absl::Status Rendezvous::call(const std::string &address) {
  addrinfo hints = {}, *addresses = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int error = ::getaddrinfo(address.c_str(), std::to_string(environment.port).c_str(), &hints, &addresses))
    return absl::UnavailableError(::gai_strerror(error));
  absl::Cleanup free = [&] { ::freeaddrinfo(addresses); };
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
    else if (!sendMessage(socket, Greeting,
                          pack({environment.token, static_cast<uint64_t>(environment.rank),
                                static_cast<uint64_t>(environment.size), hostName(), environment.job})))
      problem = absl::UnavailableError("the connection ended");
    else
      problem = receiveMessage(socket, type, answer, mostGreetingBytes);
    if (problem.ok() && type == Welcome) {
      setUpSocket(socket);
      peers[0]->socket = socket;
      peers[0]->host = answer;
      return absl::OkStatus();
    }
    ::close(socket);
    if (!problem.ok())
      continue;
    problem =
        type == Failure ? unpackFailure(answer) : absl::UnavailableError("something else than Dovetail answers there");
    if (absl::IsInvalidArgument(problem))
      return problem;
  }
  return problem.ok() ? absl::UnavailableError("no answer") : problem;
}
