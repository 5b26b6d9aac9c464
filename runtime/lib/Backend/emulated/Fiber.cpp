//===- Fiber.cpp - Stacks to switch between -------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fiber.h"

#include <new>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DOVETAIL_ASAN_FIBERS 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if __has_feature(thread_sanitizer)
#define DOVETAIL_TSAN_FIBERS 1
#include <sanitizer/tsan_interface.h>
#endif
#endif

using namespace dovetail::runtime::emulated;
namespace context = boost::context::detail;

namespace {

constexpr size_t guardBytes = 4096;
#if defined(DOVETAIL_ASAN_FIBERS) || defined(DOVETAIL_TSAN_FIBERS)
constexpr size_t stackBytes = 256 << 10;
#else
constexpr size_t stackBytes = 64 << 10;
#endif

} // namespace

Fiber::Fiber() {
  void *mapped = ::mmap(nullptr, guardBytes + stackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED || ::mprotect(mapped, guardBytes, PROT_NONE) != 0)
    throw std::bad_alloc();
  memory = static_cast<std::byte *>(mapped);
}

Fiber::~Fiber() {
  abandon();
  ::munmap(memory, guardBytes + stackBytes);
}

void Fiber::start(void (*newBody)(void *), void *newArgument) {
  body = newBody;
  argument = newArgument;
#ifdef DOVETAIL_ASAN_FIBERS
  // What `enter` left when it was left for good.
  __asan_unpoison_memory_region(memory + guardBytes + stackBytes - 4096, 4096);
#endif
  inside = context::make_fcontext(memory + guardBytes + stackBytes, stackBytes, enter);
#ifdef DOVETAIL_TSAN_FIBERS
  if (innerShadow)
    __tsan_destroy_fiber(innerShadow);
  innerShadow = __tsan_create_fiber(0);
#endif
  switchIn();
}

void Fiber::resume() { switchIn(); }

void Fiber::suspend() { switchOut(/*forGood=*/false); }

void Fiber::abandon() {
  inside = nullptr;
#ifdef DOVETAIL_ASAN_FIBERS
  __asan_unpoison_memory_region(memory + guardBytes, stackBytes);
#endif
#ifdef DOVETAIL_TSAN_FIBERS
  if (innerShadow)
    __tsan_destroy_fiber(innerShadow);
#endif
  innerShadow = nullptr;
}

void Fiber::switchIn() {
#ifdef DOVETAIL_ASAN_FIBERS
  __sanitizer_start_switch_fiber(&outerShadow, memory + guardBytes, stackBytes);
#endif
#ifdef DOVETAIL_TSAN_FIBERS
  outerShadow = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(innerShadow, 0);
#endif
  inside = context::jump_fcontext(inside, this).fctx;
#ifdef DOVETAIL_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(outerShadow, nullptr, nullptr);
#endif
}

void Fiber::switchOut(bool forGood) {
  (void)forGood;
#ifdef DOVETAIL_ASAN_FIBERS
  __sanitizer_start_switch_fiber(forGood ? nullptr : &innerShadow, outerBottom, outerSize);
#endif
#ifdef DOVETAIL_TSAN_FIBERS
  __tsan_switch_to_fiber(outerShadow, 0);
#endif
  outside = context::jump_fcontext(outside, nullptr).fctx;
#ifdef DOVETAIL_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(innerShadow, &outerBottom, &outerSize);
#endif
}

void Fiber::enter(context::transfer_t transfer) {
  auto *fiber = static_cast<Fiber *>(transfer.data);
  fiber->outside = transfer.fctx;
#ifdef DOVETAIL_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(nullptr, &fiber->outerBottom, &fiber->outerSize);
#endif
  fiber->body(fiber->argument);
  // The one who started it calls `abandon` or `start` next, never `resume`.
  fiber->switchOut(/*forGood=*/true);
}
