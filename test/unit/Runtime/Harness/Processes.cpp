//===- Processes.cpp - Ranks as processes, for tests ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Processes.h"

#include <arpa/inet.h>
#include <cstdio>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::test;

/// Of ports that the system gives nobody who does not ask for them (by default it gives those from 32768 on): one of
/// those might be another's before it is listened on. Processes begin at different ones.
int test::freePort() {
  constexpr int first = 16384, count = 16384;
  static int next = static_cast<int>(::getpid() % 256 * 64);
  for (int attempt = 0; attempt < count; ++attempt) {
    int port = first + next++ % count, socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(port);
    bool isFree = ::bind(socket, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0;
    ::close(socket);
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
