//===- RunLock.cpp - One run at a time for files ---===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunLock.h"

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/tools/Unfinished.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

/// How long a process that was killed may take to end.
constexpr auto patience = std::chrono::seconds(2);

/// Suffix, process and machine of who has written it last.
std::vector<std::string> readHolder(int file) {
  std::array<char, 256> text;
  ssize_t bytes = ::pread(file, text.data(), text.size(), 0);
  std::vector<std::string> words =
      absl::StrSplit(absl::string_view(text.data(), std::max<ssize_t>(0, bytes)), absl::ByAnyChar(" \n"));
  words.resize(3);
  return words;
}

absl::Status isHeld(const std::string &path, const std::vector<std::string> &holder) {
  return absl::AlreadyExistsError(absl::StrCat(
      "another run", holder[1].empty() ? "" : absl::StrCat(" (process ", holder[1], " on host '", holder[2], "')"),
      " holds '", path, "', and writes files of the same names; wait until it has ended, or write to ",
      "another folder"));
}

} // namespace

absl::StatusOr<std::unique_ptr<RunLock>> RunLock::take(const std::string &path, const std::string &suffix) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
      return runtime::fileError(errno, absl::StrCat("cannot write '", path, "'"));
    std::unique_ptr<RunLock> lock(new RunLock(path, file));
    int result = ::flock(file, LOCK_EX | LOCK_NB);
    int error = result == 0 ? 0 : errno;
    bool isOther = error == EWOULDBLOCK || error == EINTR;
    struct stat opened, named;
    if (isOther || ::fstat(file, &opened) != 0 || ::stat(path.c_str(), &named) != 0 || opened.st_ino != named.st_ino ||
        opened.st_dev != named.st_dev) {
      // Held, or given back and removed since it was opened.
      absl::Status held = isHeld(path, readHolder(file));
      lock->file = -1;
      ::close(file);
      if (std::chrono::steady_clock::now() > deadline)
        return held;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    if (error != 0)
      lock->refusal = std::strerror(error);
    lock->leftSuffix = readHolder(file)[0];
    if (!isSuffix(lock->leftSuffix))
      lock->leftSuffix.clear();
    rememberUnfinished(path);
    std::array<char, 256> host = {};
    ::gethostname(host.data(), host.size() - 1);
    std::string text = absl::StrCat(suffix, " ", ::getpid(), " ", host.data(), "\n");
    if (::ftruncate(file, 0) != 0 || ::pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      return runtime::fileError(errno, absl::StrCat("cannot write '", path, "'"));
    return lock;
  }
}

RunLock::~RunLock() {
  if (file < 0)
    return;
  // While it is held, so that it is not that of another run.
  ::unlink(path.c_str());
  forgetUnfinished(path);
  ::close(file);
}
