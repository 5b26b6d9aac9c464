//===- MemoryFill.h - What memory holds at first ----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets tests find who reads what nobody has written.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_MEMORYFILL_H
#define DOVETAIL_RUNTIME_MEMORYFILL_H

#include <cstddef>

namespace dovetail::runtime {

/// What each byte of a session's memory on the CPU is when it is allocated, from now on, in place of 0: nothing may
/// depend on it. For tests.
void fillMemory(std::byte value);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_MEMORYFILL_H
