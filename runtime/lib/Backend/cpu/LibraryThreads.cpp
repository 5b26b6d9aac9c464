//===- LibraryThreads.cpp - Threads of library calls ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryThreads.h"

#include <dlfcn.h>

void dovetail::runtime::setLibraryThreads(int threads) {
  // oneDNN brings its OpenMP runtime along. The setting belongs to the calling thread.
  static auto *setThreads = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (setThreads)
    setThreads(threads);
}
