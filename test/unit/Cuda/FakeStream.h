//===- FakeStream.h - Work of fake libraries -------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_CUDA_FAKESTREAM_H
#define DOVETAIL_TEST_CUDA_FAKESTREAM_H

#include <cuda.h>
#include <deque>
#include <dlfcn.h>
#include <functional>
#include <mutex>

/// Does `work` in a stream of the fake driver; graphs replay it. False if the driver refuses.
inline bool enqueue(void *stream, std::function<void()> work) {
  static auto launch = [] {
    void *driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<decltype(&::cuLaunchHostFunc)>(driver ? ::dlsym(driver, "cuLaunchHostFunc") : nullptr);
  }();
  static std::mutex mutex;
  static auto *works = new std::deque<std::function<void()>>;
  if (!launch)
    return false;
  std::function<void()> *kept;
  {
    std::lock_guard lock(mutex);
    kept = &works->emplace_back(std::move(work));
  }
  auto call = [](void *function) { (*static_cast<std::function<void()> *>(function))(); };
  return launch(static_cast<CUstream>(stream), call, kept) == CUDA_SUCCESS;
}

#endif // DOVETAIL_TEST_CUDA_FAKESTREAM_H
