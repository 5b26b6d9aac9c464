//===- ProgressLine.cpp - Progress of long work ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/ProgressLine.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <unistd.h>

using namespace dovetail::tools;

static int64_t toSeconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

ProgressStyle ProgressStyle::forStandardError() {
  const char *wish = std::getenv("DOVETAIL_PROGRESS");
  bool isShown = !wish || std::string_view(wish) != "never";
  return {STDERR_FILENO, ::isatty(STDERR_FILENO) == 1, isShown};
}

ProgressLine::ProgressLine(ProgressStyle style) : style(style) {}

ProgressLine::~ProgressLine() {
  // The watcher is gone before what it reads.
  watcher = std::jthread();
  clear();
}

void ProgressLine::write(const std::string &text) const {
  // In one piece, so that the lines of processes do not mix. Progress that cannot be written is no error.
  ssize_t count = ::write(style.file, text.data(), text.size());
  static_cast<void>(count);
}

void ProgressLine::wipe() {
  // Carriage return, "erase to the end of the line".
  if (hasLine)
    write("\r\x1b[K");
  hasLine = isRepeated = false;
  written = Clock::now();
}

void ProgressLine::renew(Clock::time_point now) {
  if (style.isTerminal) {
    std::string elapsed = now - begin >= style.slow ? absl::StrCat(", ", toSeconds(now - start), " s elapsed") : "";
    write(absl::StrCat("\r", what, elapsed, " ...\x1b[K"));
    hasLine = true;
  } else {
    write(absl::StrCat("dovetail: ", what, ", ", toSeconds(now - start), " s elapsed\n"));
    isRepeated = true;
  }
  written = now;
}

void ProgressLine::watch(const std::stop_token &stop) {
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    if (!hasStep()) {
      changed.wait(lock, stop, [&] { return hasStep(); });
      continue;
    }
    Clock::time_point due = style.isTerminal ? std::max(begin + style.slow, written + style.renewed)
                                             : written + (isRepeated ? style.interval : style.silent);
    if (Clock::time_point now = Clock::now(); now >= due)
      renew(now);
    else
      changed.wait_until(lock, stop, due, [] { return false; });
  }
}

void ProgressLine::show(const std::string &text, bool isPart) {
  std::scoped_lock lock(mutex);
  bool hadStep = hasStep();
  what = text;
  Clock::time_point now = Clock::now();
  if (!isPart)
    begin = now;
  if (!hasStep())
    return;
  if (style.isTerminal)
    renew(now);
  if (watcher.joinable()) {
    if (!hadStep)
      changed.notify_all();
    return;
  }
  try {
    watcher = std::jthread([this](const std::stop_token &stop) { watch(stop); });
  } catch (const std::system_error &) {
    // No thread can start: steps are shown as they begin, without the time that they take.
  }
}

void ProgressLine::makeWay() {
  std::scoped_lock lock(mutex);
  wipe();
}

void ProgressLine::clear() {
  std::scoped_lock lock(mutex);
  wipe();
  what.clear();
}

void ProgressLine::mute(bool muted) {
  std::scoped_lock lock(mutex);
  if (muted)
    wipe();
  isMuted = muted;
  if (hasStep())
    changed.notify_all();
}
