//===- Propagator.h - Carrying shardings through one function ---*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what the files of propagation share: what is asked for (PropagationRequests.cpp), the ways to split the
// loops of an operation and what they cost (LoopCandidates.cpp), what users of a value wish (PropagateBackward.cpp),
// and how these come together (PropagateShardings.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SHARDING_PROPAGATOR_H
#define DOVETAIL_LIB_SHARDING_PROPAGATOR_H

#include "dovetail/Sharding/ShardingRequests.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dovetail {

/// A way to split one loop.
struct LoopCandidate {
  unsigned loop;
  DimShardingAttr sharding;

  bool operator==(const LoopCandidate &other) const { return loop == other.loop && sharding == other.sharding; }
};

/// Propagation through one function.
class Propagator {
public:
  Propagator(mlir::func::FuncOp function, MeshOp meshOp)
      : function(function), meshOp(meshOp), mesh(meshOp.getMesh()), meshName(mlir::FlatSymbolRefAttr::get(meshOp)),
        unsplit(DimShardingAttr::getUnsplit(function.getContext())) {}

  llvm::LogicalResult run();

private:
  llvm::LogicalResult readRequests();
  /// Changes the loops of `op` so that its result is split as requested, as far as the operation allows.
  void applyRequest(DefinitionOpInterface op, const OpRelation &relation, LoopShardings &loops);
  /// Makes sure that the function's results have the shardings that were requested for them.
  void meetOutputRequests();
  /// Gives each result the sharding that follows from its operation's operands.
  llvm::LogicalResult forward();
  /// Shardings that users wish for values that depend on arguments without a request only.
  void backward();
  mlir::FailureOr<mlir::Operation *> assign(DefinitionOpInterface op);

  llvm::SmallVector<LoopCandidate> getCandidates(DefinitionOpInterface op, const OpRelation &relation,
                                                 llvm::ArrayRef<mlir::StringAttr> passedAxes);
  LoopShardings chooseLoops(DefinitionOpInterface op, const OpRelation &relation,
                            llvm::ArrayRef<LoopCandidate> candidates);
  int64_t getCost(DefinitionOpInterface op, const OpRelation &relation, llvm::ArrayRef<DimShardingAttr> loops);
  /// Bytes that operands take to where these loops need them.
  int64_t getOperandBytes(DefinitionOpInterface op, const OpRelation &relation, llvm::ArrayRef<DimShardingAttr> loops);
  /// Whether the result of `op`, which has as many partial values as `parts`, can be scattered over dimension `dim` for
  /// those who use it.
  bool canScatter(DefinitionOpInterface op, unsigned dim, int64_t parts);
  /// How `op` looks up where ranks have what is indexed, if to send its result to where it is requested, as for
  /// `requested` loops, moves less than to bring what is indexed there.
  std::optional<LoopShardings> lookUpAtOwners(DefinitionOpInterface op, const OpRelation &relation,
                                              llvm::ArrayRef<LoopCandidate> candidates,
                                              llvm::ArrayRef<DimShardingAttr> requested);
  /// Axes over which a partial operand may stay partial through `op`.
  llvm::SmallVector<mlir::StringAttr> getPassedAxes(DefinitionOpInterface op);
  void setSharding(mlir::Value value, ShardingAttr sharding) {
    value.setType(withSharding(llvm::cast<mlir::RankedTensorType>(value.getType()), sharding));
  }
  ShardingAttr replicated(mlir::Value value) {
    return ShardingAttr::getReplicated(meshName, llvm::cast<mlir::RankedTensorType>(value.getType()).getRank());
  }

  mlir::func::FuncOp function;
  MeshOp meshOp;
  layout::Mesh mesh;
  mlir::FlatSymbolRefAttr meshName;
  DimShardingAttr unsplit;
  /// Those for arguments include what their users wish.
  FunctionRequests requests;
  /// What sends results to where they are requested.
  llvm::DenseMap<mlir::Operation *, ReshardOp> sentResults;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_SHARDING_PROPAGATOR_H
