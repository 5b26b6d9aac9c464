//===- Lowering.h - Parts of the lowering to the plan -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how the lowering chooses formats, groups and storage.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CONVERSION_DOVETAILTOPLAN_LOWERING_H
#define DOVETAIL_LIB_CONVERSION_DOVETAILTOPLAN_LOWERING_H

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Layout/Mesh.h"
#include "dovetail/Target/Library.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dovetail {

/// The memory format of each value of a function.
using Formats = llvm::DenseMap<mlir::Value, plan::FormatAttr>;

/// Chooses formats: channels last around operations that prefer it, row-major around those that prefer that, and in
/// between what the operands have. Of what a library does, the library says what it prefers.
Formats assignFormats(mlir::func::FuncOp function, const Libraries &libraries);

/// Operations that become one step: a kernel, or a library call and its epilogue. The last one is the root, whose
/// result is written.
struct Group {
  llvm::SmallVector<mlir::Operation *> ops;
  /// The operation that a library performs; null for a kernel.
  mlir::Operation *call = nullptr;
  /// What the library applies to the call's result, and the tensors that it reads for that.
  llvm::SmallVector<plan::PostOpAttr> postOps;
  llvm::SmallVector<mlir::Value> postTensors;

  mlir::Operation *getRoot() const { return ops.back(); }
};

/// Groups every operation that computes. A group's operations are in program order.
llvm::SmallVector<Group> formGroups(mlir::func::FuncOp function, const Formats &formats, const Libraries &libraries);

/// Extends a group with a call of `library` by the elementwise operations, none of them in `taken`, that the library
/// can apply to its result.
void absorbPostOps(Group &group, const Library &library, const Formats &formats,
                   const llvm::DenseSet<mlir::Operation *> &taken);

/// Which values share memory.
class Storage {
public:
  /// `constantValues`: those that depend on constants alone, which the prologue computes.
  Storage(mlir::func::FuncOp function, const layout::Mesh &mesh, const Formats &formats,
          const llvm::DenseSet<mlir::Value> &constantValues);

  /// The value that stands for the memory of `value`.
  mlir::Value getLeader(mlir::Value value) const;
  /// What each rank holds of the memory of `value`: the hull of the values in it.
  ShardingAttr getHeld(mlir::Value value) const;
  /// True if a reshard needs no step: its result is a part of its operand.
  bool isView(ReshardOp op) const { return views.contains(op); }
  /// True if an operation writes its result over its operand 0.
  bool isInPlace(mlir::Operation *op) const { return inPlace.contains(op); }

private:
  void join(mlir::Value a, mlir::Value b);

  mutable llvm::DenseMap<mlir::Value, mlir::Value> parents;
  llvm::DenseMap<mlir::Value, ShardingAttr> held;
  llvm::DenseSet<mlir::Operation *> views, inPlace;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_CONVERSION_DOVETAILTOPLAN_LOWERING_H
