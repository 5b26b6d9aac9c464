//===- LineBuilder.h - Emitting lines of results -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines LineBuilder, with which an operation whose definition has lines writes the elements of its results.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_LINEBUILDER_H
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_LINEBUILDER_H

#include "dovetail/Dialect/Dovetail/Definition/Definition.h"

namespace dovetail {

/// Where emitted code puts the elements of results: signless scalars at global coordinates that are in the ranges of
/// the loops, as `ElementSource` gives them.
class ElementSink {
public:
  virtual ~ElementSink() = default;

  virtual void write(unsigned result, llvm::ArrayRef<mlir::Value> index, mlir::Value element) = 0;
  /// What was written there last. Results are the operation's memory for what it works out in several steps.
  virtual mlir::Value readBack(unsigned result, llvm::ArrayRef<mlir::Value> index) = 0;
  /// Memory for `size` scalars of `type`, and its scalars: a few KiB at most, as each thread of a device has its own.
  virtual mlir::Value createScratch(mlir::Type type, int64_t size);
  virtual mlir::Value loadScratch(mlir::Value scratch, mlir::Type type, mlir::Value position);
  virtual void storeScratch(mlir::Value scratch, mlir::Value position, mlir::Value scalar);
  /// Whether the first result lies in the memory of operand 0, and so has its elements already.
  virtual bool isInPlace() { return false; }
};

/// With what an operation emits a line: as a body, and with results to write. Short-lived.
class LineBuilder : public BodyBuilder {
public:
  /// `loops`: global coordinates of the loops, null for those of the line and for `inner`: loops along which lines are
  /// neighbours in memory, outermost first, which are gone through together. Derived lines only may have such.
  LineBuilder(ElementBuilder &elements, mlir::Operation *op, const Definition &definition,
              llvm::ArrayRef<mlir::Value> loops, ElementSource &source, ElementSink &sink,
              llvm::ArrayRef<unsigned> inner = {});

  void write(unsigned result, llvm::ArrayRef<mlir::Value> index, mlir::Value element) {
    sink.write(result, index, element);
  }
  mlir::Value readBack(unsigned result, llvm::ArrayRef<mlir::Value> index) { return sink.readBack(result, index); }
  bool isInPlace() { return sink.isInPlace(); }
  llvm::ArrayRef<unsigned> getInnerLoops() const { return inner; }
  ElementSink &getSink() { return sink; }
  /// The coordinates of the loops of the results.
  llvm::ArrayRef<mlir::Value> getResultIndex() const { return getLoops().take_front(getDefinition().resultRank); }

private:
  ElementSink &sink;
  llvm::ArrayRef<unsigned> inner;
};

/// The line of a definition that says how terms accumulate, or where results are written.
void emitDefaultLine(mlir::Operation *op, LineBuilder &line);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_LINEBUILDER_H
