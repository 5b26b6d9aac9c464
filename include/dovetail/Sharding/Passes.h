//===- Passes.h - Passes that decide and carry out shardings -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the passes that choose cuts, and those of partition.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_SHARDING_PASSES_H
#define DOVETAIL_SHARDING_PASSES_H

#include "mlir/Pass/Pass.h"

namespace dovetail {

#define GEN_PASS_DECL
#include "dovetail/Sharding/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "dovetail/Sharding/Passes.h.inc"

} // namespace dovetail

#endif // DOVETAIL_SHARDING_PASSES_H
