//===- RendezvousEntrance.cpp - Who comes to a rank ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RendezvousEntrance.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace dovetail::runtime;

namespace {

/// How long a visitor may take to say what it wants.
constexpr auto patience = std::chrono::seconds(5);
/// So many may be at it at once; then the first one has to go.
constexpr size_t mostVisitors = 256;
/// Of one machine.
constexpr size_t mostAddresses = 24;

/// Negative: there is none, and errno says why.
int listenOn(int port) {
  int listener = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, off = 0;
  bool isOpen = false;
  if (listener >= 0) {
    sockaddr_in6 any = {};
    any.sin6_family = AF_INET6;
    any.sin6_addr = in6addr_any;
    any.sin6_port = htons(static_cast<uint16_t>(port));
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    ::setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    isOpen = ::bind(listener, reinterpret_cast<sockaddr *>(&any), sizeof(any)) == 0;
  }
  if (!isOpen && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
    if (listener >= 0)
      ::close(listener);
    sockaddr_in any = {};
    any.sin_family = AF_INET;
    any.sin_port = htons(static_cast<uint16_t>(port));
    listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    isOpen = ::bind(listener, reinterpret_cast<sockaddr *>(&any), sizeof(any)) == 0;
  }
  if (isOpen && ::listen(listener, SOMAXCONN) == 0)
    return listener;
  int problem = errno;
  if (listener >= 0)
    ::close(listener);
  errno = problem;
  return -1;
}

} // namespace

absl::StatusOr<std::unique_ptr<RendezvousEntrance>> RendezvousEntrance::open(int port) {
  int listener = listenOn(port);
  if (listener < 0)
    return absl::UnavailableError(port == 0
                                      ? absl::StrCat("cannot listen on a port: ", std::strerror(errno))
                                      : absl::StrCat("rank 0 cannot listen on port ", port, ": ", std::strerror(errno),
                                                     "; choose another with DOVETAIL_PORT or --address"));
  return std::unique_ptr<RendezvousEntrance>(new RendezvousEntrance(listener));
}

RendezvousEntrance::~RendezvousEntrance() {
  ::close(listener);
  for (const Visitor &visitor : visitors)
    ::close(visitor.socket);
}

int RendezvousEntrance::port() const {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (::getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size) != 0)
    return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 &>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in &>(address).sin_port);
}

void RendezvousEntrance::admit() {
  while (visitors.size() < mostVisitors) {
    int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket >= 0) {
      visitors.push_back({socket, Clock::now(), {}});
      continue;
    }
    if (errno != EMFILE && errno != ENFILE)
      return;
    // One that cannot be let in yet must not keep this thread busy.
    dropFirst();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return;
  }
}

void RendezvousEntrance::dropFirst() {
  if (visitors.empty())
    return;
  ::close(visitors.front().socket);
  visitors.pop_front();
}

bool RendezvousEntrance::readSome(Visitor &visitor) {
  for (;;) {
    uint32_t header[2] = {};
    std::memcpy(header, visitor.bytes.data(), std::min(visitor.bytes.size(), headerBytes));
    size_t wanted = headerBytes;
    if (visitor.bytes.size() >= headerBytes) {
      if (header[0] != Greeting || header[1] > mostGreetingBytes - headerBytes)
        return false;
      wanted += header[1];
    }
    if (visitor.bytes.size() == wanted)
      return true;
    char buffer[mostGreetingBytes];
    ssize_t count = ::recv(visitor.socket, buffer, wanted - visitor.bytes.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return true;
    if (count <= 0)
      return false;
    visitor.bytes.append(buffer, static_cast<size_t>(count));
  }
}

absl::StatusOr<RendezvousEntrance::Guest> RendezvousEntrance::next(Clock::time_point deadline, int interruption) {
  for (;;) {
    for (auto visitor = visitors.begin(); visitor != visitors.end();) {
      if (!readSome(*visitor) || Clock::now() - visitor->since > patience) {
        ::close(visitor->socket); // Somebody else.
        visitor = visitors.erase(visitor);
        continue;
      }
      uint32_t size = 0;
      if (visitor->bytes.size() >= headerBytes)
        std::memcpy(&size, visitor->bytes.data() + sizeof(uint32_t), sizeof(size));
      if (visitor->bytes.size() < headerBytes || visitor->bytes.size() < headerBytes + size) {
        ++visitor;
        continue;
      }
      std::optional<Hello> hello = unpackHello(visitor->bytes.substr(headerBytes));
      int socket = visitor->socket;
      visitor = visitors.erase(visitor);
      if (!hello) {
        ::close(socket);
        continue;
      }
      ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
      return Guest{socket, *std::move(hello)};
    }
    if (Clock::now() >= deadline)
      return absl::DeadlineExceededError("no process has connected");
    std::vector<pollfd> entries{{listener, POLLIN, 0}, {interruption, POLLIN, 0}};
    Clock::time_point until = deadline;
    for (const Visitor &visitor : visitors) {
      entries.push_back({visitor.socket, POLLIN, 0});
      until = std::min(until, visitor.since + patience);
    }
    ::poll(entries.data(), entries.size(), millisecondsUntil(until) + 1);
    if (entries[1].revents)
      return absl::CancelledError("interrupted");
    if (!entries[0].revents)
      continue;
    // Of those that are here and say nothing, the first one makes room.
    bool speaks =
        std::any_of(entries.begin() + 2, entries.end(), [](const pollfd &entry) { return entry.revents != 0; });
    if (visitors.size() >= mostVisitors && !speaks)
      dropFirst();
    admit();
  }
}

std::string RendezvousEntrance::ownAddresses() {
  std::vector<std::string> outside, inside;
  ifaddrs *list = nullptr;
  if (::getifaddrs(&list) != 0)
    list = nullptr;
  for (ifaddrs *entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP))
      continue;
    int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6)
      continue;
    // Others would have to know which interface of theirs such an address is behind.
    if (family == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6 *>(entry->ifa_addr)->sin6_addr))
      continue;
    char text[NI_MAXHOST];
    socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(entry->ifa_addr, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0)
      (entry->ifa_flags & IFF_LOOPBACK ? inside : outside).push_back(text);
  }
  if (list)
    ::freeifaddrs(list);
  outside.push_back(hostName());
  outside.insert(outside.end(), inside.begin(), inside.end());
  // They have to fit into a greeting.
  if (outside.size() > mostAddresses)
    outside.resize(mostAddresses);
  return absl::StrJoin(outside, ",");
}
