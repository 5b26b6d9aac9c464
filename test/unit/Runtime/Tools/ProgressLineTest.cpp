//===- ProgressLineTest.cpp - Progress of long work -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/ProgressLine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace dovetail::tools;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

/// A pipe that stands in for standard error.
class Pipe {
public:
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  Pipe(const Pipe &) = delete;
  Pipe &operator=(const Pipe &) = delete;

  ProgressStyle getStyle(bool isTerminal) const {
    ProgressStyle style{ends[1], isTerminal};
    // Longer than a test takes, unless it says otherwise.
    style.slow = style.renewed = style.silent = style.interval = 1h;
    return style;
  }
  /// The text that arrives first, or nothing if none does within `wait`.
  std::string read(std::chrono::milliseconds wait = 20s) const {
    pollfd waiting{ends[0], POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(wait.count())) != 1)
      return "";
    char text[4096];
    ssize_t count = ::read(ends[0], text, sizeof(text));
    return std::string(text, std::max<ssize_t>(count, 0));
  }

private:
  int ends[2] = {-1, -1};
};

TEST(ProgressLine, FileHasLineAfterSilence) {
  Pipe pipe;
  ProgressStyle style = pipe.getStyle(/*isTerminal=*/false);
  style.silent = 1ms;
  ProgressLine line(style);
  line.show("lower");
  EXPECT_EQ(pipe.read(), "dovetail: lower, 0 s elapsed\n");
  // Not before the interval is over.
  EXPECT_EQ(pipe.read(50ms), "");
}

TEST(ProgressLine, FileHasLineInEachInterval) {
  Pipe pipe;
  ProgressStyle style = pipe.getStyle(/*isTerminal=*/false);
  style.silent = style.interval = 1ms;
  ProgressLine line(style);
  line.show("first");
  EXPECT_THAT(pipe.read(), StartsWith("dovetail: first, 0 s elapsed\n"));
  EXPECT_THAT(pipe.read(), StartsWith("dovetail: first, 0 s elapsed\n"));
}

TEST(ProgressLine, FileStaysEmptyWhileThereIsNoSilence) {
  Pipe pipe;
  ProgressLine line(pipe.getStyle(/*isTerminal=*/false));
  line.show("import");
  line.makeWay();
  line.show("lower");
  line.clear();
  EXPECT_EQ(pipe.read(20ms), "");
}

TEST(ProgressLine, FileHasNothingOnceStepIsOver) {
  Pipe pipe;
  ProgressStyle style = pipe.getStyle(/*isTerminal=*/false);
  style.silent = style.interval = 1ms;
  ProgressLine line(style);
  line.show("lower");
  EXPECT_NE(pipe.read(), "");
  line.clear();
  // A line may have been under way.
  pipe.read(20ms);
  EXPECT_EQ(pipe.read(50ms), "");
}

TEST(ProgressLine, TerminalHasElapsedTimeOfSlowStep) {
  Pipe pipe;
  ProgressStyle style = pipe.getStyle(/*isTerminal=*/true);
  style.slow = style.renewed = 200ms;
  {
    ProgressLine line(style);
    line.show("lower (5 of 7)");
    EXPECT_EQ(pipe.read(), "\rlower (5 of 7) ...\x1b[K");
    EXPECT_THAT(pipe.read(), StartsWith("\rlower (5 of 7), 0 s elapsed ...\x1b[K"));
    // A part does not begin anew.
    line.show("lower (5 of 7): simulation", /*isPart=*/true);
    EXPECT_THAT(pipe.read(), HasSubstr("lower (5 of 7): simulation, 0 s elapsed ...\x1b[K"));
  }
  // Wiped out at the end.
  EXPECT_THAT(pipe.read(), HasSubstr("\r\x1b[K"));
}

TEST(ProgressLine, TerminalLineMakesWay) {
  Pipe pipe;
  ProgressStyle style = pipe.getStyle(/*isTerminal=*/true);
  style.slow = 1ms;
  ProgressLine line(style);
  line.show("lower");
  EXPECT_EQ(pipe.read(), "\rlower ...\x1b[K");
  line.makeWay();
  EXPECT_EQ(pipe.read(), "\r\x1b[K");
  // It would come back in an hour.
  EXPECT_EQ(pipe.read(20ms), "");
}

TEST(ProgressLine, MutedShowsNothing) {
  for (bool isTerminal : {false, true}) {
    Pipe pipe;
    ProgressStyle style = pipe.getStyle(isTerminal);
    style.slow = style.renewed = style.silent = style.interval = 1ms;
    ProgressLine line(style);
    line.mute(true);
    line.show("lower");
    EXPECT_EQ(pipe.read(20ms), "");
    line.mute(false);
    line.show("codegen");
    EXPECT_THAT(pipe.read(), HasSubstr("codegen"));
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !__has_feature(address_sanitizer) &&            \
    !__has_feature(thread_sanitizer)
// Sanitizers need more address space than there is.
TEST(ProgressLine, ShowsStepsWithoutThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto show = [] {
    // A thread needs a stack, for which there is no room.
    rlimit limit{1, 1};
    ::setrlimit(RLIMIT_AS, &limit);
    ProgressLine line({STDERR_FILENO, /*isTerminal=*/true});
    line.show("lower");
    line.show("codegen");
    ::_exit(0);
  };
  EXPECT_EXIT(show(), testing::ExitedWithCode(0), "lower ....*codegen ...");
}
#endif

} // namespace
