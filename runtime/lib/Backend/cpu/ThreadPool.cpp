//===- ThreadPool.cpp - Threads of one rank -------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadPool.h"

using namespace dovetail::runtime;

ThreadPool::ThreadPool(int threads) {
  try {
    for (int i = 1; i < threads; ++i)
      workers.emplace_back([this, i] { work(i); });
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  started.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::run(int parts, void (*body)(void *, int), void *context) {
  if (parts > 1) {
    {
      std::lock_guard lock(mutex);
      this->parts = parts;
      this->body = body;
      this->context = context;
      pending = parts - 1;
      ++generation;
    }
    started.notify_all();
  }
  if (parts > 0)
    body(context, 0);
  if (parts > 1) {
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return pending == 0; });
  }
}

void ThreadPool::work(int index) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex);
  for (;;) {
    started.wait(lock, [&] { return stopping || generation != seen; });
    if (stopping)
      return;
    seen = generation;
    if (index >= parts)
      continue;
    auto *job = body;
    void *argument = context;
    lock.unlock();
    job(argument, index);
    lock.lock();
    if (--pending == 0)
      finished.notify_one();
  }
}
