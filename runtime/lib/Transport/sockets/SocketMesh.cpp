//===- SocketMesh.cpp - Bytes between processes --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SocketMesh.h"

#include "../../Memory/Combine.h"

#include "absl/strings/str_cat.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

using namespace dovetail::runtime;
using namespace dovetail::runtime::sockets;

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto joinTimeout = std::chrono::minutes(1);

/// Of a rank's socket: a name of Linux's that is in no folder, and goes with the process.
std::pair<sockaddr_un, socklen_t> addressOf(const std::string &name, int rank) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::string text = absl::StrCat("dovetail-", name, "-", rank);
  std::memcpy(address.sun_path + 1, text.data(), std::min(text.size(), sizeof(address.sun_path) - 1));
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size())};
}

absl::Status gone(int rank) { return absl::UnavailableError(absl::StrCat("rank ", rank, " has stopped answering")); }

/// One direction of a connection: messages one after another.
struct Line {
  std::vector<Message> messages;
  size_t index = 0;
  int64_t done = 0; ///< Of the message.

  bool isOver() {
    while (index < messages.size() && done == messages[index].bytes) {
      ++index;
      done = 0;
    }
    return index == messages.size();
  }
};

} // namespace

std::string SocketMesh::newName() {
  static std::atomic<int> count = 0;
  return absl::StrCat(::getpid(), "-", ++count, "-", std::random_device()());
}

absl::StatusOr<std::unique_ptr<SocketMesh>> SocketMesh::join(const std::string &name, int rank, int size) {
  std::unique_ptr<SocketMesh> mesh(new SocketMesh(rank, size));
  auto deadline = Clock::now() + joinTimeout;
  int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto [own, ownLength] = addressOf(name, rank);
  if (listener < 0 || ::bind(listener, reinterpret_cast<sockaddr *>(&own), ownLength) != 0 ||
      ::listen(listener, size) != 0)
    return absl::UnavailableError(absl::StrCat("cannot open a socket: ", std::strerror(errno)));
  mesh->sockets[rank] = listener;
  auto late = [](int peer) { return absl::DeadlineExceededError(absl::StrCat("rank ", peer, " did not come")); };
  for (int peer = 0; peer < rank; ++peer) {
    auto [address, length] = addressOf(name, peer);
    int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (::connect(socket, reinterpret_cast<sockaddr *>(&address), length) != 0) {
      if (Clock::now() > deadline) {
        ::close(socket);
        return late(peer);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    mesh->sockets[peer] = socket;
    if (::send(socket, &rank, sizeof(rank), MSG_NOSIGNAL) != sizeof(rank))
      return gone(peer);
  }
  for (int missing = size - 1 - rank; missing > 0; --missing) {
    pollfd entry{listener, POLLIN, 0};
    int peer = -1, socket = -1;
    if (::poll(&entry, 1, std::chrono::milliseconds(joinTimeout).count()) == 1)
      socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0 || ::recv(socket, &peer, sizeof(peer), MSG_WAITALL) != sizeof(peer) || peer <= rank || peer >= size)
      return late(size - 1);
    mesh->sockets[peer] = socket;
  }
  return mesh;
}

SocketMesh::~SocketMesh() {
  for (int socket : sockets)
    if (socket >= 0)
      ::close(socket);
}

void SocketMesh::shutDown() {
  for (int socket : sockets)
    if (socket >= 0)
      ::shutdown(socket, SHUT_RDWR);
}

absl::Status SocketMesh::exchange(absl::Span<const Message> sends, absl::Span<const Message> receives) {
  std::vector<Line> outgoing(size()), incoming(size());
  for (const Message &message : sends)
    outgoing[message.peer].messages.push_back(message);
  for (const Message &message : receives)
    incoming[message.peer].messages.push_back(message);
  for (;;) {
    std::vector<pollfd> entries;
    std::vector<int> ranks;
    for (int peer = 0; peer < size(); ++peer) {
      int events = (outgoing[peer].isOver() ? 0 : POLLOUT) | (incoming[peer].isOver() ? 0 : POLLIN);
      if (!events)
        continue;
      entries.push_back({sockets[peer], static_cast<short>(events), 0});
      ranks.push_back(peer);
    }
    if (entries.empty())
      return absl::OkStatus();
    ::poll(entries.data(), entries.size(), -1);
    for (size_t i = 0; i < entries.size(); ++i) {
      Line &out = outgoing[ranks[i]], &in = incoming[ranks[i]];
      if (entries[i].revents & POLLOUT) {
        const Message &message = out.messages[out.index];
        ssize_t count =
            ::send(entries[i].fd, message.data + out.done, message.bytes - out.done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno != EAGAIN && errno != EINTR)
          return gone(ranks[i]);
        out.done += std::max<ssize_t>(count, 0);
      }
      if (entries[i].revents & (POLLIN | POLLHUP | POLLERR)) {
        if (in.isOver())
          return gone(ranks[i]);
        const Message &message = in.messages[in.index];
        ssize_t count = ::recv(entries[i].fd, message.data + in.done, message.bytes - in.done, MSG_DONTWAIT);
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
          return gone(ranks[i]);
        in.done += std::max<ssize_t>(count, 0);
      }
    }
  }
}

absl::Status SocketMesh::perform(const Collective &collective) {
  int64_t bytes = collective.elements * elementSize(collective.type);
  auto *source = const_cast<std::byte *>(collective.source);
  bool gathers = collective.kind == layout::ExchangeKind::AllGather,
       scatters = collective.kind == layout::ExchangeKind::ReduceScatter;
  // Parts of all ranks; those of reductions are combined afterwards.
  std::vector<std::byte> parts(gathers ? 0 : bytes * size());
  std::vector<Message> sends, receives;
  for (int peer = 0; peer < size(); ++peer) {
    std::byte *given = source + (scatters ? peer * bytes : 0);
    std::byte *got = (gathers ? collective.target : parts.data()) + peer * bytes;
    if (peer != ownRank) {
      sends.push_back({peer, given, bytes});
      receives.push_back({peer, got, bytes});
    } else {
      std::memmove(got, given, bytes);
    }
  }
  absl::Status status = exchange(sends, receives);
  if (!status.ok() || gathers)
    return status;
  Combination combination(collective.reduction, collective.type,
                          {BoxPair(elementSize(collective.type), {{collective.elements, elementSize(collective.type),
                                                                   elementSize(collective.type)}})});
  std::memcpy(collective.target, parts.data() + (size() - 1) * bytes, bytes);
  for (int peer = size() - 2; peer >= 0; --peer)
    combination.run(collective.target, parts.data() + peer * bytes);
  return absl::OkStatus();
}
