//===- BlockRunner.cpp - Blocks of threads on the CPU ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockRunner.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace dovetail::runtime;
using namespace dovetail::runtime::emulated;

namespace {

/// What memory holds that nobody has written: not a number in every floating-point type.
constexpr int poison = 0xff;
/// After the shared memory of a block lie some bytes that nobody may write.
constexpr int64_t canaryBytes = 64, sharedAlignment = 128;
constexpr int canary = 0xc5;

/// How far an access is from a region; 0 when they touch.
int64_t distance(const DeviceRegion &region, uintptr_t address) {
  uintptr_t begin = reinterpret_cast<uintptr_t>(region.data), end = begin + region.bytes;
  return static_cast<int64_t>(address < begin ? begin - address : address >= end ? address - end + 1 : 0);
}

} // namespace

BlockRunner::Order::Order(int64_t count, std::mt19937_64 &random) : count(count), first(random() % count), step(1) {
  // Every step without a common divisor comes past all of them.
  for (int tries = 0; tries < 16; ++tries) {
    int64_t candidate = 1 + static_cast<int64_t>(random() % std::min<int64_t>(count, 1 << 20));
    if (std::gcd(candidate, count) == 1) {
      step = candidate;
      break;
    }
  }
}

int64_t BlockRunner::warpThreads(int64_t warp) const {
  return std::min(warpSize, static_cast<int64_t>(threads.size()) - warp * warpSize);
}

absl::Status BlockRunner::run(DovetailBlockKernel function, const LaunchDescription &description) {
  std::lock_guard lock(mutex);
  kernel = function;
  launch = &description;
  failure.clear();
  lastRegion[0] = lastRegion[1] = {};
  threads.resize(description.threads);
  atShuffle.assign((description.threads + warpSize - 1) / warpSize, 0);
  sharedMemory.resize(description.sharedBytes + canaryBytes + sharedAlignment);
  auto address = reinterpret_cast<uintptr_t>(sharedMemory.data());
  shared = sharedMemory.data() + (sharedAlignment - address % sharedAlignment) % sharedAlignment;

  Order order(description.blocks, random);
  for (int64_t i = 0; i < description.blocks && failure.empty(); ++i)
    runBlock(order.at(i));
  if (failure.empty())
    return absl::OkStatus();
  // The fibers that stand somewhere are given up.
  idle.clear();
  for (const std::unique_ptr<Fiber> &fiber : fibers) {
    fiber->abandon();
    idle.push_back(fiber.get());
  }
  return absl::InternalError(absl::StrCat(description.name, ": ", failure));
}

void BlockRunner::runBlock(int64_t block) {
  std::memset(shared, poison, launch->sharedBytes);
  std::memset(shared + launch->sharedBytes, canary, canaryBytes);
  int64_t index = 0;
  for (Thread &thread : threads) {
    static_cast<DovetailBlockThread &>(thread) = {index++, block,      launch->threads, launch->blocks, shared,
                                                  barrier, shuffleXor, check,           checkShared};
    thread.runner = this;
    thread.fiber = nullptr;
    thread.state = State::Ready;
  }
  begun = done = atBarrier = 0;
  threadFirst = static_cast<int64_t>(random() % threads.size());
  backwards = random() % 2;
  runnable.clear();

  int64_t count = static_cast<int64_t>(threads.size());
  while (failure.empty() && done < count) {
    if (!runnable.empty()) {
      Thread *thread = runnable.back();
      runnable.pop_back();
      thread->state = State::Running;
      current = thread->fiber;
      current->resume();
    } else if (begun < count) {
      if (idle.empty()) {
        fibers.push_back(std::make_unique<Fiber>());
        idle.push_back(fibers.back().get());
      }
      current = idle.back();
      idle.pop_back();
      current->start(runThreads, this);
    } else {
      failure = absl::StrCat("block ", block, ": ", describeDivergence());
    }
  }
  if (failure.empty())
    checkCanary();
}

void BlockRunner::runThreads(void *self) {
  auto *runner = static_cast<BlockRunner *>(self);
  Fiber *fiber = runner->current;
  int64_t count = static_cast<int64_t>(runner->threads.size());
  while (runner->begun < count) {
    int64_t i = runner->begun++;
    int64_t index = (runner->threadFirst + (runner->backwards ? count - i : i)) % count;
    Thread &thread = runner->threads[index];
    thread.state = State::Running;
    runner->kernel(runner->launch->pointers.data(), runner->launch->numbers.data(), &thread);
    thread.state = State::Done;
    ++runner->done;
  }
  runner->idle.push_back(fiber);
}

void BlockRunner::wait(Thread &thread, State state) {
  thread.state = state;
  thread.fiber = current;
  // When this goes on, it was resumed by `runBlock`, which has set `current`.
  current->suspend();
}

void BlockRunner::barrier(DovetailBlockThread *self) {
  auto &thread = static_cast<Thread &>(*self);
  BlockRunner &runner = *thread.runner;
  if (++runner.atBarrier < static_cast<int64_t>(runner.threads.size()))
    return runner.wait(thread, State::AtBarrier);
  // The last one; the others go on in some order.
  runner.atBarrier = 0;
  for (Thread &other : runner.threads)
    if (&other != &thread)
      runner.runnable.push_back(&other);
  if (runner.random() % 2)
    std::reverse(runner.runnable.begin(), runner.runnable.end());
}

uint64_t BlockRunner::shuffleXor(DovetailBlockThread *self, uint64_t value, int32_t mask) {
  auto &thread = static_cast<Thread &>(*self);
  BlockRunner &runner = *thread.runner;
  int64_t warp = thread.threadIndex / warpSize;
  thread.value = value;
  thread.mask = mask;
  if (++runner.atShuffle[warp] < runner.warpThreads(warp)) {
    runner.wait(thread, State::AtShuffle);
    return thread.value;
  }
  runner.completeShuffle(warp);
  runner.stopIfFailed();
  for (int64_t i = 0; i < runner.warpThreads(warp); ++i)
    if (Thread &other = runner.threads[warp * warpSize + i]; &other != &thread)
      runner.runnable.push_back(&other);
  return thread.value;
}

void BlockRunner::completeShuffle(int64_t warp) {
  uint64_t values[warpSize];
  Thread *members = &threads[warp * warpSize];
  int64_t count = warpThreads(warp);
  for (int64_t i = 0; i < count; ++i) {
    int32_t mask = members[i].mask;
    values[i] = members[i].value;
    if (mask != members[0].mask)
      return fail(members[i], absl::StrCat("shuffles with mask ", mask, ", but thread ", members[0].threadIndex,
                                           " of its warp with mask ", members[0].mask));
    // A device would give the thread anything.
    if ((i ^ mask) < 0 || (i ^ mask) >= count)
      return fail(members[i], absl::StrCat("shuffles with thread ", i ^ mask, " of its warp, which has ", count));
  }
  for (int64_t i = 0; i < count; ++i)
    members[i].value = values[i ^ members[i].mask];
  atShuffle[warp] = 0;
}

void BlockRunner::check(DovetailBlockThread *self, const void *address, int64_t bytes, int64_t alignment,
                        int32_t isWrite) {
  auto &thread = static_cast<Thread &>(*self);
  // Most accesses are where the one before was.
  const auto &last = thread.runner->lastRegion[isWrite != 0];
  uint64_t offset = reinterpret_cast<uintptr_t>(address) - last.begin;
  bool isAligned = reinterpret_cast<uintptr_t>(address) % alignment == 0;
  if (isAligned && offset < last.size && bytes >= 0 && static_cast<uint64_t>(bytes) <= last.size - offset)
    return;
  thread.runner->checkAccess(thread, address, bytes, alignment, isWrite != 0);
  thread.runner->stopIfFailed();
}

void BlockRunner::checkShared(DovetailBlockThread *self, const void *address, int64_t bytes, int32_t isWrite) {
  auto &thread = static_cast<Thread &>(*self);
  BlockRunner &runner = *thread.runner;
  int64_t offset = static_cast<const std::byte *>(address) - runner.shared, size = runner.launch->sharedBytes;
  bool isInside = offset >= 0 && bytes <= size && offset <= size - bytes;
  if (isInside && offset % bytes == 0)
    return;
  runner.fail(thread, absl::StrCat(isWrite ? "writes " : "reads ", bytes, " bytes at offset ", offset, " of the ", size,
                                   " bytes of shared memory",
                                   isInside ? absl::StrCat(", which is not a multiple of ", bytes) : ""));
  runner.stopIfFailed();
}

void BlockRunner::checkAccess(const Thread &thread, const void *address, int64_t bytes, int64_t alignment,
                              bool isWrite) {
  const std::vector<DeviceRegion> &regions = launch->regions;
  auto begin = reinterpret_cast<uintptr_t>(address);
  auto holds = [&](const DeviceRegion &region) {
    auto data = reinterpret_cast<uintptr_t>(region.data);
    return begin >= data && begin - data <= static_cast<uintptr_t>(region.bytes) && bytes >= 0 &&
           bytes <= region.bytes - static_cast<int64_t>(begin - data) && (!isWrite || region.written);
  };
  std::string what = absl::StrCat(isWrite ? "writes " : "reads ", bytes, " bytes at ");
  auto found = std::find_if(regions.begin(), regions.end(), holds);
  if (found != regions.end()) {
    lastRegion[isWrite] = {reinterpret_cast<uintptr_t>(found->data), static_cast<uint64_t>(found->bytes)};
    if (begin % alignment != 0)
      fail(thread, absl::StrCat(what, "offset ", begin - lastRegion[isWrite].begin, " of ", found->name,
                                ", an address that is not a multiple of ", alignment));
    return;
  }
  auto nearest = std::min_element(regions.begin(), regions.end(), [&](const DeviceRegion &a, const DeviceRegion &b) {
    return std::pair(distance(a, begin), isWrite && !a.written) < std::pair(distance(b, begin), isWrite && !b.written);
  });
  if (nearest == regions.end())
    return fail(thread, absl::StrCat(what, "an address, but has no tensors"));
  int64_t offset = static_cast<int64_t>(begin - reinterpret_cast<uintptr_t>(nearest->data));
  absl::StrAppend(&what, "offset ", offset, " of ", nearest->name, ", which has ", nearest->bytes, " bytes");
  if (isWrite && !nearest->written)
    absl::StrAppend(&what, " and may only be read");
  fail(thread, what);
}

void BlockRunner::fail(const Thread &thread, const std::string &what) {
  failure = absl::StrCat("thread ", thread.threadIndex, " of block ", thread.blockIndex, " ", what);
}

std::string BlockRunner::describeDivergence() const {
  auto describe = [](const Thread &thread) {
    return absl::StrCat("thread ", thread.threadIndex,
                        thread.state == State::AtBarrier   ? " waits at a barrier"
                        : thread.state == State::AtShuffle ? " waits at a shuffle"
                                                           : " has ended");
  };
  // Nothing can go on, so some wait, and not all of them for the same.
  auto waiting = std::find_if(threads.begin(), threads.end(), [](const Thread &t) { return t.state != State::Done; });
  auto other = std::find_if(threads.begin(), threads.end(), [&](const Thread &t) { return t.state != waiting->state; });
  if (other == threads.end())
    return describe(*waiting);
  return absl::StrCat("the threads part: ", describe(*waiting), ", but ", describe(*other));
}

void BlockRunner::checkCanary() {
  for (int64_t i = 0; i < canaryBytes; ++i)
    if (shared[launch->sharedBytes + i] != std::byte(canary)) {
      failure = absl::StrCat("block ", threads[0].blockIndex, " writes past its ", launch->sharedBytes,
                             " bytes of shared memory");
      return;
    }
}
