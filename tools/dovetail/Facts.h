//===- Facts.h - What the compiler consists of ----------------- -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the facts about the compiler that `--version` prints, without the compiler's own headers.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_DOVETAIL_FACTS_H
#define DOVETAIL_TOOLS_DOVETAIL_FACTS_H

#include "dovetail/Target/TargetNames.h"
#include "dovetail/tools/Version.h"

#include <iterator>

namespace dovetail {

inline tools::ProgramFacts compilerFacts() {
  return {.llvm = DOVETAIL_LLVM_VERSION, .targets = {std::begin(publicTargets), std::end(publicTargets)}};
}

} // namespace dovetail

#endif // DOVETAIL_TOOLS_DOVETAIL_FACTS_H
