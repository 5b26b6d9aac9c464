//===- SanitizerDefaults.cpp - AddressSanitizer with an LLVM that is not instrumented -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Linked into every program of an AddressSanitizer build.
//
//===----------------------------------------------------------------------===//

/// Containers and allocators of LLVM's headers poison memory when they are compiled here, and the library, which is
/// not instrumented, uses that memory without unpoisoning it: both kinds of poisoning would give false reports.
extern "C" const char *__asan_default_options() { return "detect_container_overflow=0:allow_user_poisoning=0"; }
