//===- Progress.cpp - Progress of long work on a terminal -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Progress.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Progress.h"

#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

using namespace dovetail;

static bool isEnabled = false;
static bool isShown = false;

void Progress::enable() { isEnabled = llvm::sys::Process::StandardErrIsDisplayed(); }

void Progress::show(const llvm::Twine &what) {
  if (!isEnabled)
    return;
  // Carriage return, text, "erase to the end of the line".
  llvm::errs() << "\r" << what << " ...\x1b[K";
  isShown = true;
}

void Progress::clear() {
  if (!isShown)
    return;
  llvm::errs() << "\r\x1b[K";
  isShown = false;
}
