//===- ProgressLine.h - Progress of long work -------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares ProgressLine, which says on standard error what a command is doing.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_PROGRESSLINE_H
#define DOVETAIL_TOOLS_PROGRESSLINE_H

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace dovetail::tools {

/// Where and how often progress is shown.
struct ProgressStyle {
  int file;
  /// Whether the file is a terminal, on which a line can be replaced.
  bool isTerminal;
  /// Whether anything is shown at all.
  bool isShown = true;
  /// On a terminal: a step that takes longer has the elapsed time beside it, which is renewed so often.
  std::chrono::milliseconds slow{2000}, renewed{1000};
  /// Elsewhere: a line is written once nothing was written for this long, and then at most once in an interval.
  std::chrono::milliseconds silent{5000}, interval{10000};

  /// Standard error. The environment variable DOVETAIL_PROGRESS=never turns progress off.
  static ProgressStyle forStandardError();
};

/// Says what a command is doing. On a terminal that is a line, which is replaced, and wiped out at the end. Elsewhere a
/// line is written now and then while nothing else is. Methods may be called by one thread only.
class ProgressLine {
public:
  explicit ProgressLine(ProgressStyle style = ProgressStyle::forStandardError());
  ~ProgressLine();
  ProgressLine(const ProgressLine &) = delete;
  ProgressLine &operator=(const ProgressLine &) = delete;

  /// Shows `what` from now on, until the next call. The step before goes on if `what` is a part of it.
  void show(const std::string &what, bool isPart = false);
  /// Wipes the line out, for other output to take its place. It comes back if the step goes on for long.
  void makeWay();
  /// Wipes the line out for good: the step is over.
  void clear();
  /// Shows nothing any more, or shows progress again: of several processes one speaks.
  void mute(bool isMuted);

private:
  using Clock = std::chrono::steady_clock;

  /// Renews the line until it is asked to stop.
  void watch(const std::stop_token &stop);
  void renew(Clock::time_point now);
  void write(const std::string &text) const;
  void wipe();
  bool hasStep() const { return style.isShown && !isMuted && !what.empty(); }

  std::mutex mutex;
  std::condition_variable_any changed;
  ProgressStyle style;
  std::string what;
  const Clock::time_point start = Clock::now();
  /// When the step began, and when something was written last.
  Clock::time_point begin = start, written = start;
  /// Whether the terminal has a line, and whether a file that is none has had one since something else was written.
  bool hasLine = false, isRepeated = false;
  bool isMuted = false;
  /// Begins with the first step.
  std::jthread watcher;
};

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_PROGRESSLINE_H
