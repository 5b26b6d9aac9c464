//===- Processes.cpp - Ranks as processes, for tests ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Processes.h"

#include <arpa/inet.h>
#include <array>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::test;

/// A socket with the name of a port of TCP, which one process at a time can have; -1 if another process has it.
static int claim(int port) {
  int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // A name that begins with zero is no file, and is free again when the socket is closed.
  int length = std::snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "dovetail-test-port-%d", port);
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (::bind(socket, reinterpret_cast<sockaddr *>(&address), size) == 0)
    return socket;
  ::close(socket);
  return -1;
}

/// Of ports that the system gives nobody who does not ask for them (by default it gives those from 32768 on): one of
/// those might be another's before it is listened on. So might one that another test has found free: ports that were
/// given last are claimed.
int test::freePort() {
  constexpr int first = 16384, count = 16384;
  static int next = static_cast<int>(::getpid() % 256 * 64), turn = 0;
  static std::array<int, 16> claims = [] {
    std::array<int, 16> none;
    none.fill(-1);
    return none;
  }();
  for (int attempt = 0; attempt < count; ++attempt) {
    int port = first + next++ % count, claimed = claim(port);
    if (claimed < 0)
      continue;
    int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(port);
    bool isFree = ::bind(socket, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0;
    ::close(socket);
    int &oldest = claims[turn++ % claims.size()];
    if (oldest >= 0)
      ::close(oldest);
    oldest = claimed;
    if (isFree)
      return port;
  }
  ADD_FAILURE() << "no port is free";
  return first;
}

std::vector<Outcome> test::inProcesses(int size,
                                       const std::function<std::string(const runtime::LaunchEnvironment &)> &body) {
  int port = freePort();
  std::vector<pid_t> children;
  std::vector<int> pipes;
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    std::fflush(nullptr);
    pid_t child = ::fork();
    if (child == 0) {
      std::string text = body({"the test", rank, size, rank, "127.0.0.1", port});
      for (size_t written = 0; written < text.size();) {
        ssize_t count = ::write(ends[1], text.data() + written, text.size() - written);
        if (count <= 0)
          break;
        written += count;
      }
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    ::close(ends[1]);
    children.push_back(child);
    pipes.push_back(ends[0]);
  }
  std::vector<Outcome> outcomes;
  for (int rank = 0; rank < size; ++rank) {
    Outcome &outcome = outcomes.emplace_back();
    char buffer[65536];
    for (ssize_t count; (count = ::read(pipes[rank], buffer, sizeof(buffer))) > 0;)
      outcome.text.append(buffer, count);
    ::close(pipes[rank]);
    int status = 0;
    EXPECT_EQ(::waitpid(children[rank], &status, 0), children[rank]);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  return outcomes;
}
