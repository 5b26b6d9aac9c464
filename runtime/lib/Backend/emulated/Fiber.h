//===- Fiber.h - Stacks to switch between -----------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines fibers for the threads of a block. They are left where they stand when a kernel fails: generated code cannot
// be unwound, and owns nothing.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_EMULATED_FIBER_H
#define DOVETAIL_RUNTIME_BACKEND_EMULATED_FIBER_H

#include <boost/context/detail/fcontext.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace dovetail::runtime::emulated {

/// A stack with a guard page below it: whoever needs more crashes instead of overwriting something.
class Fiber {
public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// Runs `body(argument)` on this stack until it calls `suspend` or returns.
  void start(void (*body)(void *argument), void *argument);
  /// Goes on where `suspend` was called.
  void resume();
  /// On this fiber: goes back to whoever started or resumed it.
  void suspend();
  /// Forgets what the fiber was doing.
  void abandon();

private:
  static void enter(boost::context::detail::transfer_t transfer);
  void switchIn();
  void switchOut(bool forGood);

  std::byte *memory = nullptr;
  void (*body)(void *) = nullptr;
  void *argument = nullptr;
  boost::context::detail::fcontext_t inside = nullptr, outside = nullptr;
  /// What sanitizers know of the two stacks.
  [[maybe_unused]] void *innerShadow = nullptr, *outerShadow = nullptr;
  [[maybe_unused]] const void *outerBottom = nullptr;
  [[maybe_unused]] size_t outerSize = 0;
};

} // namespace dovetail::runtime::emulated

#endif // DOVETAIL_RUNTIME_BACKEND_EMULATED_FIBER_H
