//===- MpiLibrary.h - The MPI of a process ---------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how MPI begins and ends in a process, how it is called by one thread at a time, and how what it does is
// waited for without being at the mercy of other ranks.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_MPI_MPILIBRARY_H
#define DOVETAIL_RUNTIME_TRANSPORT_MPI_MPILIBRARY_H

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <string>

namespace dovetail::runtime::mpi {

using Clock = std::chrono::steady_clock;

/// To be held during each call. Programs that this is part of may let their threads call MPI one at a time only
/// (MPI_THREAD_SERIALIZED): they do not call it while a function of the runtime's does.
std::timed_mutex &callMutex();

/// Its name and version.
std::string libraryVersion();

/// A variable by which a launcher says that it has started more than one process, `size`; null: none does.
const char *findLauncher(int &size);
/// The error where MPI does not know of the others then: UNAVAILABLE.
absl::Status otherLauncher(const char *variable, int started);

/// OK, or UNAVAILABLE with what MPI says of `result`, which `function` gave.
absl::Status check(int result, const char *function);

/// Begins MPI, unless the program has; then this process ends it, too, when it exits. What does not begin within
/// `timeout` ends the process. Errors: UNAVAILABLE when MPI lets one thread alone call it, or has ended.
absl::Status begin(std::chrono::milliseconds timeout);
/// The run has failed. When the process exits, it ends all others of its run, and does not wait for them in
/// MPI_Finalize.
void noteFailure();

/// Keeps memory that MPI may still write to, as what was begun has not ended and cannot be called back.
void keepForEver(std::shared_ptr<void> memory);

/// What `isDone` says at last, which it is asked again and again: whether something is done. It calls MPI once. Errors:
/// its own; UNAVAILABLE when `isOver` comes first; DEADLINE_EXCEEDED.
absl::Status waitUntil(const std::atomic<bool> &isOver, absl::FunctionRef<absl::Status(bool &isDone)> ask,
                       Clock::time_point deadline = Clock::time_point::max());

} // namespace dovetail::runtime::mpi

#endif // DOVETAIL_RUNTIME_TRANSPORT_MPI_MPILIBRARY_H
