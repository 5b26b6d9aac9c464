//===- KernelElements.h - Where the operations of a kernel find their operands -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares KernelElements.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_CPU_KERNELELEMENTS_H
#define DOVETAIL_LIB_CODEGEN_CPU_KERNELELEMENTS_H

#include "KernelEmitter.h"

namespace dovetail {

/// Gives an operation of a kernel's body its operands: elements in memory, or computed where they are read.
class KernelElements : public ElementSource {
public:
  KernelElements(KernelEmitter &emitter, mlir::Operation *op) : emitter(emitter), op(op) {}

  mlir::Value read(unsigned operand, llvm::ArrayRef<mlir::Value> index) override;
  std::pair<mlir::Value, mlir::Value> getLoopRange(unsigned loop) override;

private:
  KernelEmitter &emitter;
  mlir::Operation *op;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_CPU_KERNELELEMENTS_H
