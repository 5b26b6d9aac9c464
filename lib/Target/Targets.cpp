//===- Targets.cpp - What programs are compiled for -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the list of targets.
//
//===----------------------------------------------------------------------===//

#include "CpuTarget.h"
#include "CudaTarget.h"
#include "EmulatedTarget.h"

#include "dovetail/Target/TargetNames.h"
#include "llvm/ADT/StringExtras.h"

using namespace dovetail;

static llvm::ArrayRef<const Target *> getTargets() {
  static const Target *targets[] = {getCpuTarget(), getCudaTarget(), getEmulatedTarget()};
  return targets;
}

llvm::ArrayRef<plan::MathMode> Target::getMathModes() const {
  static constexpr plan::MathMode modes[] = {plan::MathMode::F32};
  return modes;
}

const Target *dovetail::findTarget(llvm::StringRef name) {
  auto found = llvm::find_if(getTargets(), [&](const Target *target) { return target->getName() == name; });
  return found == getTargets().end() ? nullptr : *found;
}

std::string dovetail::listTargets() { return llvm::join(llvm::ArrayRef<const char *>(publicTargets), ", "); }
