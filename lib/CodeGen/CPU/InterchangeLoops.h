//===- InterchangeLoops.h - Folds that neighbours go through together -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares interchangeLoops.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_CPU_INTERCHANGELOOPS_H
#define DOVETAIL_LIB_CODEGEN_CPU_INTERCHANGELOOPS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace dovetail {

/// Where neighbours in memory, such as the channels of an image, each fold the same iterations of loops of their own,
/// lets a tile of them go through these loops together, with an accumulator for each in scratch memory: what does not
/// depend on the neighbour, such as where a sample lies and what it weighs, is computed once for all of them, and the
/// loop over them becomes vectors. Each fold takes its terms in the same order. Returns whether it has changed any
/// loops.
bool interchangeLoops(mlir::Operation *code);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_CPU_INTERCHANGELOOPS_H
