//===- Interruption.h - Calls that SIGINT ends early ------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how long calls learn that the user wants them to end. A language such as Python only notes that SIGINT has
// arrived, and acts on it when the call returns.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_INTERRUPTION_H
#define DOVETAIL_RUNTIME_INTERRUPTION_H

namespace dovetail::runtime {

/// Whether calls of the process's main thread end early from now on. They do not at first.
void setInterruptible(bool isInterruptible);

/// A call that may end early: that of the main thread, if this is wanted, and if the process handles SIGINT. Meanwhile
/// SIGINT is noted before it is handled as it would be. Scopes within a scope change nothing.
class InterruptScope {
public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope &) = delete;
  InterruptScope &operator=(const InterruptScope &) = delete;

private:
  bool isOutermost = false;
};

/// Whether the calling thread is in a scope in which SIGINT is noted.
bool isInterruptible();
/// Whether SIGINT has arrived since the calling thread entered its outermost scope. False outside of any.
bool isInterrupted();

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_INTERRUPTION_H
