//===- KernelCounter.h - What kernels compute -------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares KernelCounter, which counts from definitions what a generated kernel computes and reads.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_COST_KERNELCOUNTER_H
#define DOVETAIL_LIB_COST_KERNELCOUNTER_H

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "llvm/ADT/SmallBitVector.h"

#include <map>

namespace dovetail {

/// What a kernel does on a rank.
struct KernelCounts {
  /// Scalar operations, of which an addition is one and an exponential as many as it takes the time of.
  double operations = 0;
  /// How many elements of each argument are read, if each is read once for all iterations that find it at one place.
  llvm::SmallVector<double> reads;
};

/// Counts what the kernels of a plan do. A value of the body is computed once for each iteration of the loops that the
/// coordinates depend on at which it is read, as generated code does: what does not depend on an inner loop stands
/// outside of it. What an operation computes for an element is what it emits.
class KernelCounter {
public:
  explicit KernelCounter(plan::KernelOp kernel);

  /// Of a rank that has so many iterations of each loop of the kernel.
  const KernelCounts &get(llvm::ArrayRef<int64_t> iterations);

private:
  /// The loops that a coordinate depends on, and a number that is the same for coordinates that are computed alike.
  struct Coordinate {
    llvm::SmallBitVector loops;
    size_t hash = 0;
  };
  using Coordinates = llvm::SmallVector<Coordinate, 6>;
  /// An operation of the body, and where its elements are asked for.
  struct Part {
    DefinitionOpInterface op;
    Definition definition;
    /// The number, among all loops, of its first loop behind the dimensions of the result.
    unsigned firstInner = 0;
    /// Of each place at which its elements are read, the loops that this depends on.
    llvm::SmallVector<llvm::SmallBitVector, 1> uses;
  };

  void addUse(mlir::Value value, const Coordinates &index);
  void addOperation(mlir::Operation *op);
  /// The coordinates at which a read of an operation takes place that has its own loops at `loops`.
  Coordinates getIndex(const Definition &definition, const Access &access, const Coordinates &loops) const;
  Coordinate getCoordinate(const Definition &definition, const layout::AccessDim &dim, const Coordinates &loops) const;
  /// The weighed operations that give an element, or a line, of `part`.
  double countElement(const Part &part, llvm::ArrayRef<int64_t> iterations) const;

  mutable plan::KernelOp kernel;
  unsigned rank;
  /// All loops: the kernel's, then taps of operations. Extents, or the average of what has several ends.
  std::vector<double> extents;
  std::vector<Part> parts;
  /// Places at which each value of the body is read; by number of the argument for those.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Coordinates, 1>> places;
  std::map<std::vector<int64_t>, KernelCounts> known;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_COST_KERNELCOUNTER_H
