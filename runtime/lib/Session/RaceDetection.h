//===- RaceDetection.h - What ThreadSanitizer cannot see --------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tells ThreadSanitizer what generated kernels and libraries, which are not instrumented, write: without it a rank that
// overwrites memory while another still reads it would go unnoticed.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_RACEDETECTION_H
#define DOVETAIL_RUNTIME_SESSION_RACEDETECTION_H

#include "dovetail/runtime/MemoryView.h"

#if defined(__SANITIZE_THREAD__)
#define DOVETAIL_DETECT_RACES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DOVETAIL_DETECT_RACES 1
#endif
#endif

#ifdef DOVETAIL_DETECT_RACES
extern "C" void __tsan_write_range(void *address, unsigned long bytes);
#endif

namespace dovetail::runtime {

#ifdef DOVETAIL_DETECT_RACES
inline constexpr bool detectRaces = true;

/// Stands for writes of the calling thread to `bytes` bytes of memory.
inline void noteWrite(std::byte *address, int64_t bytes) {
  if (bytes > 0)
    __tsan_write_range(address, bytes);
}
#else
inline constexpr bool detectRaces = false;
inline void noteWrite(std::byte *, int64_t) {}
#endif

/// The same for the elements of `box`, and for nothing that lies between them.
inline void noteWrite(const MemoryView &memory, const layout::Box &box) {
  std::vector<BoxPair> pairs;
  BoxPair::append(memory, memory, box, pairs);
  int64_t size = elementSize(memory.type);
  auto note = [&](std::byte *data, const std::byte *, int64_t count, int64_t stride, int64_t) {
    if (stride == size)
      return noteWrite(data, count * size);
    for (int64_t i = 0; i < count; ++i)
      noteWrite(data + i * stride, size);
  };
  for (const BoxPair &pair : pairs)
    pair.forEachRun(memory.data, memory.data, note);
}

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_RACEDETECTION_H
