//===- SharedSegmentTest.cpp - Memory that processes share ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/message/SharedSegment.h"

#include "Session/Arena.h"

#include <cerrno>
#include <csignal>
#include <gtest/gtest.h>
#include <limits>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dovetail::runtime;

/// As UCX before 1.15 has it, in the place of the C library's: where to is lost.
extern "C" void *mremap(void *, size_t, size_t, int, ...) noexcept {
  errno = EINVAL;
  return MAP_FAILED;
}

namespace {

constexpr int64_t noLimit = std::numeric_limits<int64_t>::max();

/// Memory whose bytes all differ from their neighbours.
Allocation counted(int64_t bytes) {
  Allocation memory = *Allocation::create(bytes);
  for (int64_t i = 0; i < bytes; ++i)
    memory.data()[i] = static_cast<std::byte>(i * 7 + i / 4096);
  return memory;
}

void expectCounted(const std::byte *memory, int64_t first, int64_t bytes) {
  for (int64_t i = 0; i < bytes; ++i)
    ASSERT_EQ(memory[i], static_cast<std::byte>((first + i) * 7 + (first + i) / 4096)) << first + i;
}

TEST(SharedSegment, KeepsAddressesAndContents) {
  // With usual pages, and with large ones at odd places.
  for (int64_t bytes : {int64_t(40'000), int64_t(9'000'001)}) {
    Allocation memory = counted(bytes);
    std::vector<ByteRange> parts = {
        {memory.data() + 5000, 100}, {memory.data() + bytes - 10, 10}, {memory.data() + 5050, 9000}};
    auto segment = SharedSegment::create(100, {{memory.data(), bytes}}, parts, noLimit);
    ASSERT_TRUE(segment.ok()) << segment.status();
    expectCounted(memory.data(), 0, bytes);
    auto view = SharedView::open((*segment)->name());
    ASSERT_TRUE(view.ok()) << view.status();
    (*segment)->close();
    for (const ByteRange &part : parts) {
      int64_t offset = (*segment)->offsetOf(part.begin, part.bytes);
      ASSERT_GE(offset, 0);
      expectCounted((*view)->data() + offset, part.begin - memory.data(), part.bytes);
      part.begin[1] = std::byte{99};
      EXPECT_EQ((*view)->data()[offset + 1], std::byte{99});
    }
    (*segment)->notes()[99] = std::byte{7};
    EXPECT_EQ((*view)->data()[99], std::byte{7});
  }
}

TEST(SharedSegment, RefusesWhatDoesNotFit) {
  Allocation memory = counted(40'000), other = counted(40'000);
  std::vector<ByteRange> owned = {{memory.data(), 40'000}}, parts = {{memory.data(), 40'000}};
  EXPECT_TRUE(absl::IsResourceExhausted(SharedSegment::create(100, owned, parts, 20'000).status()));
  expectCounted(memory.data(), 0, 40'000);
  // Memory of somebody else stays as it is.
  auto segment = SharedSegment::create(100, owned, {{other.data(), 40'000}}, noLimit);
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_EQ((*segment)->offsetOf(other.data(), 1), -1);
  EXPECT_FALSE(SharedView::open("1").ok());
  EXPECT_FALSE(SharedView::open("0/0").ok());
}

TEST(SharedSegment, LimitsOfFilesAreNoSignal) {
  Allocation memory = counted(40'000);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = {30'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  auto segment = SharedSegment::create(100, {{memory.data(), 40'000}}, {{memory.data(), 40'000}}, noLimit);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(segment.status())) << segment.status();
  expectCounted(memory.data(), 0, 40'000);
}

TEST(SharedSegment, OutlivesItsProcess) {
  int names[2];
  ASSERT_EQ(::pipe(names), 0);
  pid_t child = ::fork();
  if (child == 0) {
    Allocation memory = counted(40'000);
    auto segment = SharedSegment::create(100, {{memory.data(), 40'000}}, {{memory.data(), 40'000}}, noLimit);
    std::string name =
        segment.ok() ? (*segment)->name() + "/" + std::to_string((*segment)->offsetOf(memory.data(), 1)) : "";
    (void)!::write(names[1], name.data(), name.size());
    ::close(names[1]);
    ::pause();
  }
  ::close(names[1]);
  char text[64] = {};
  ASSERT_GT(::read(names[0], text, sizeof(text) - 1), 0);
  ::close(names[0]);
  std::string all = text;
  size_t slash = all.rfind('/');
  auto view = SharedView::open(all.substr(0, slash));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_TRUE(view.ok()) << view.status();
  expectCounted((*view)->data() + std::stoll(all.substr(slash + 1)), 0, 40'000);
  EXPECT_FALSE(SharedView::open(all.substr(0, slash)).ok());
}

} // namespace
