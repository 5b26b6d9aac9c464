//===- LibraryThreads.h - Threads of library calls --------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYTHREADS_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYTHREADS_H

namespace dovetail::runtime {

/// Sets how many threads oneDNN uses for primitives that the calling thread creates and runs.
void setLibraryThreads(int threads);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYTHREADS_H
