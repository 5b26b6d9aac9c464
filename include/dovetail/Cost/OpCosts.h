//===- OpCosts.h - How long operations take ---------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares OpCosts, which estimates from its definition how long an operation takes.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_COST_OPCOSTS_H
#define DOVETAIL_COST_OPCOSTS_H

#include "dovetail/Cost/Cluster.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"

namespace dovetail {

/// The work of one operation, from its definition and its place in the graph.
class OpCosts {
public:
  /// `constants`: what depends on constants alone.
  OpCosts(DefinitionOpInterface op, const OpRelation &relation, const llvm::DenseSet<mlir::Value> &constants);

  /// What a rank does whose pieces of the loops have these sizes.
  StepWork getWork(llvm::ArrayRef<int64_t> sizes) const;
  /// Seconds that all of it takes a device, or pieces of these sizes.
  double getSeconds(const Device &device) const;
  double getSeconds(const Device &device, llvm::ArrayRef<int64_t> sizes) const;
  /// Seconds of the rank that takes longest where the loops are split so.
  double getSeconds(const Cluster &cluster, const layout::Mesh &mesh, llvm::ArrayRef<DimShardingAttr> loops) const;
  /// Bytes of constants that the rank with most needs, and of what it has of the results.
  double getWeightBytes(llvm::ArrayRef<DimShardingAttr> loops) const;
  double getResultBytes(llvm::ArrayRef<DimShardingAttr> loops) const;
  /// The largest share of the iterations that a rank has; of unequal devices, times how much slower than the average
  /// the rank's is.
  double getLargestShare(const Cluster &cluster, const layout::Mesh &mesh, llvm::ArrayRef<DimShardingAttr> loops) const;

  llvm::ArrayRef<int64_t> getExtents() const { return extents; }
  bool isProduct() const { return form.kind == StepWork::Kind::Product; }

  /// Whether a value lies in memory: not where the one that reads it computes it, or is its epilogue.
  static bool isStored(mlir::Value value);

private:
  /// An operand, or the results: loops along which it is read or written.
  struct Tensor {
    double bytes;
    llvm::SmallVector<unsigned> loops;
  };

  double getBytes(const Tensor &tensor, llvm::ArrayRef<int64_t> sizes) const;
  /// Whether it is part of the step of the one that reads its results.
  bool isPartOfReader(llvm::ArrayRef<int64_t> sizes) const;
  /// The share of all iterations.
  double getShare(llvm::ArrayRef<int64_t> sizes) const;
  /// `shape` is that of the first operand.
  void findRoles(const OpRelation &relation, const Definition &definition, llvm::ArrayRef<int64_t> shape);
  void findAlgorithms(const Definition &definition);

  /// Whether `op` folds rows that those who read its results go over again, in the same step if it has all of them.
  static bool isFoldOfRows(DefinitionOpInterface op, const Definition &definition);

  /// What an iteration of what is no product takes, on average.
  void findOperations(DefinitionOpInterface op, const Definition &definition);

  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<bool> isCounted;
  llvm::SmallVector<calls::LoopRole> roles;
  /// Iterations of what is not among the loops, such as taps, and the share of terms that there are.
  double inner = 1, met = 1;
  /// Of a loop of groups, how many iterations make one: the columns of its product.
  double columnsOfGroup = 1;
  double operationsOfIteration = 1;
  StepWork form;
  /// Of a convolution with constant weights, the algorithms that it may be done by.
  llvm::SmallVector<const calls::AlgorithmEntry *, 1> algorithms;
  /// What lies in memory, of what is read and written.
  llvm::SmallVector<Tensor> read, written, weights, results;
  /// It is part of the step of the one that reads it.
  bool isFused = false;
  /// So it is where these loops are whole, which then read what it reads, too.
  llvm::SmallVector<unsigned> rowLoops;
};

} // namespace dovetail

#endif // DOVETAIL_COST_OPCOSTS_H
