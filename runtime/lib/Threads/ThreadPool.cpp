//===- ThreadPool.cpp - Threads of one rank -------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadPool.h"

#include <algorithm>
#include <limits>
#include <system_error>

using namespace dovetail::runtime;

/// The number of a job after which there are no others.
static constexpr uint64_t lastJob = std::numeric_limits<uint64_t>::max();

ThreadPool::ThreadPool(int threads, std::function<void(int worker)> begin)
    : parts(new Part[threads]), workers(new Worker[threads]), begin(std::move(begin)) {
  try {
    for (; numThreads < threads; ++numThreads)
      workers[numThreads].thread = std::thread([this, index = numThreads] { work(index); });
  } catch (const std::system_error &) {
    // The session asks for `size` and says what is missing.
  }
}

ThreadPool::~ThreadPool() {
  job.store(lastJob);
  for (int i = 1; i < numThreads; ++i) {
    workers[i].waiter.notify();
    workers[i].thread.join();
  }
}

void ThreadPool::wakeNext(int index) {
  int end = std::min(count.load(std::memory_order_relaxed), 2 * index + 3);
  for (int next = 2 * index + 1; next < end; ++next)
    workers[next].waiter.notify();
}

void ThreadPool::takeParts(uint64_t number, int first) {
  for (int i = 0; i < numThreads; ++i) {
    int part = first + i < numThreads ? first + i : first + i - numThreads;
    // A worker that is late may look for parts of a job that is over: no part has that number any more.
    uint64_t open = 2 * number;
    if (!parts[part].state.compare_exchange_strong(open, open + 1, std::memory_order_acquire,
                                                   std::memory_order_relaxed))
      continue;
    body(context, part);
    // The caller's thread may sleep, and the pool still be there: it is destroyed after its workers.
    if (pending.fetch_sub(1) == 1)
      workers[0].waiter.notify();
  }
}

void ThreadPool::run(int numParts, Body body, void *context) {
  if (numParts <= 1) {
    if (numParts == 1)
      body(context, 0);
    return;
  }
  this->body = body;
  this->context = context;
  count.store(numParts, std::memory_order_relaxed);
  pending.store(numParts, std::memory_order_relaxed);
  uint64_t number = job.load(std::memory_order_relaxed) + 1;
  for (int part = 0; part < numParts; ++part)
    parts[part].state.store(2 * number, std::memory_order_release);
  job.store(number);
  wakeNext(0);
  takeParts(number, 0);
  workers[0].waiter.wait([&] { return pending.load() == 0; });
}

void ThreadPool::work(int index) {
  if (begin)
    begin(index);
  uint64_t seen = 0;
  for (;;) {
    workers[index].waiter.wait([&] { return job.load() != seen; });
    seen = job.load();
    if (seen == lastJob)
      return;
    wakeNext(index);
    takeParts(seen, index);
  }
}
