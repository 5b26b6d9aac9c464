//===- FakeDriverStreams.h - Streams of the fake driver ---------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what the files of the fake driver share: its log, the contexts of a thread, and work in streams.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_CUDA_FAKEDRIVERSTREAMS_H
#define DOVETAIL_TEST_CUDA_FAKEDRIVERSTREAMS_H

#include "FakeDriver.h"

#include <functional>
#include <vector>

// Of each library alone: a process may open several drivers.
#pragma GCC visibility push(hidden)
namespace dovetail::test {

extern FakeDriverLog theLog;
extern constinit thread_local bool captures;         ///< Whether a capture of this thread has begun and not ended.
extern thread_local std::vector<CUcontext> contexts; ///< Of the thread, the current one last.

/// Does work, or captures it as a node of a kind.
CUresult perform(CUstream stream, std::function<void()> work, CUgraphNodeType kind = CU_GRAPH_NODE_TYPE_KERNEL);

} // namespace dovetail::test
#pragma GCC visibility pop

#endif // DOVETAIL_TEST_CUDA_FAKEDRIVERSTREAMS_H
