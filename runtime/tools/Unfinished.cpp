//===- Unfinished.cpp - Files that a run may leave behind ---===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/Unfinished.h"

#include "dovetail/tools/Destination.h"

#include "absl/strings/str_replace.h"

#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstring>
#include <glob.h>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

/// Names of files to remove when the process is asked to end: memory that signal handlers may read, and that is never
/// given back. One that is not in use begins with zero.
struct Entry {
  std::array<char, PATH_MAX> path = {};
  Entry *next = nullptr;
};
std::atomic<Entry *> entries = nullptr;

constexpr int endings[] = {SIGINT, SIGTERM, SIGHUP};

void removeAndEnd(int signal) {
  for (const Entry *entry = entries.load(std::memory_order_acquire); entry; entry = entry->next)
    if (entry->path[0])
      ::unlink(entry->path.data());
  // It was blocked meanwhile, and now does what it does without this.
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

} // namespace

void tools::rememberUnfinished(const std::string &path) {
  for (int signal : endings) {
    struct sigaction now = {};
    ::sigaction(signal, nullptr, &now);
    // Who ignores it, or has something else in mind, goes on to.
    if (now.sa_handler == SIG_DFL)
      ::signal(signal, removeAndEnd);
  }
  if (path.empty() || path.size() >= PATH_MAX)
    return;
  Entry *first = entries.load(), *entry = first;
  while (entry && entry->path[0])
    entry = entry->next;
  bool isNew = !entry;
  if (isNew) {
    entry = new Entry;
    entry->next = first;
  }
  std::memcpy(entry->path.data() + 1, path.data() + 1, path.size());
  std::atomic_signal_fence(std::memory_order_release);
  entry->path[0] = path[0];
  if (isNew)
    entries.store(entry, std::memory_order_release);
}

void tools::forgetUnfinished(const std::string &path) {
  for (Entry *entry = entries.load(); entry; entry = entry->next)
    if (path == entry->path.data())
      entry->path[0] = 0;
}

bool tools::isSuffix(const std::string &text) {
  return text.size() == 17 && text[0] == '.' && text.find_first_not_of("0123456789abcdef", 1) == std::string::npos;
}

std::string tools::makePattern(const std::string &text) {
  std::string pattern;
  for (char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == '\\')
      pattern += '\\';
    pattern += c;
  }
  return absl::StrReplaceAll(pattern, {{stepPlace, "*"}, {namePlace, "*"}});
}

void tools::removeUnfinished(const std::string &path, const std::string &suffix) {
  if (!isSuffix(suffix))
    return;
  glob_t found = {};
  if (::glob((makePattern(path) + suffix).c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i)
      ::unlink(found.gl_pathv[i]);
  ::globfree(&found);
}
