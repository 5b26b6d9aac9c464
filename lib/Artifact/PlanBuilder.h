//===- PlanBuilder.h - From a program to the object form of the schema -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines PlanBuilder. Its steps are in StepBuilder.cpp, all else is in PlanBuilder.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_ARTIFACT_PLANBUILDER_H
#define DOVETAIL_LIB_ARTIFACT_PLANBUILDER_H

#include "PlanEnums.h"
#include "PlanSection.h"

#include "dovetail/Dialect/Dovetail/IR/Feedback.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/Plan.h"
#include "dovetail/runtime/Version.h"
#include "dovetail/runtime/plan_generated.h"
#include "mlir/IR/SymbolTable.h"

namespace dovetail {

/// Walks a program into the object form of the schema.
class PlanBuilder {
public:
  PlanBuilder(plan::ProgramOp program, WeightsBuilder &weights, PlanContents contents)
      : program(program), weights(weights), contents(contents) {}

  llvm::LogicalResult build(artifact::PlanT &plan);

private:
  llvm::LogicalResult addMesh(artifact::PlanT &plan);
  llvm::LogicalResult addBuffer(artifact::PlanT &plan, plan::BufferOp op);
  llvm::LogicalResult addView(artifact::PlanT &plan, plan::ViewOp op);
  /// An output, or a count of those before it.
  using Ports = std::vector<std::unique_ptr<artifact::PortT>>;
  void addInput(artifact::PlanT &plan, plan::InputOp op);
  void addOutput(artifact::PlanT &plan, plan::OutputOp op);
  template <typename PortOp> void addPort(artifact::PlanT &plan, PortOp op, Ports &ports);
  /// The next count of the plan, in tensor `ref`, which bounds dimensions of `ports`.
  artifact::CountT &addCount(artifact::PlanT &plan, llvm::StringRef name, mlir::Value ref, const Ports &ports);
  llvm::LogicalResult addSteps(std::vector<std::unique_ptr<artifact::StepT>> &steps, mlir::Block &block);
  llvm::LogicalResult addStep(artifact::StepT &step, mlir::Operation *op);

  artifact::KernelStepT makeKernel(plan::LaunchOp op, plan::KernelOp kernel);
  artifact::ConvolutionT makeConvolution(plan::ConvolutionOp op);
  artifact::MatMulT makeMatMul(plan::MatMulOp op);
  artifact::AttentionT makeAttention(plan::AttentionOp op);
  artifact::TransformT makeTransform(plan::TransformOp op);
  artifact::PoolT makePool(plan::PoolOp op, artifact::PoolKind kind);
  std::vector<std::unique_ptr<artifact::PostOpT>> makePostOps(mlir::ArrayAttr postOps, mlir::OperandRange tensors);
  std::unique_ptr<artifact::PortT> makePort(llvm::StringRef name, mlir::Value ref);

  std::vector<std::unique_ptr<artifact::LoopT>> makeLoops(mlir::ArrayAttr loops);
  std::unique_ptr<artifact::DimT> makeDim(DimShardingAttr dim);
  std::vector<std::unique_ptr<artifact::DimT>> makeDims(mlir::RankedTensorType type);
  std::vector<uint8_t> makeAxes(llvm::ArrayRef<mlir::StringAttr> axes);
  uint32_t tensorOf(mlir::Value ref) { return tensors.lookup(ref); }

  plan::ProgramOp program;
  mlir::SymbolTableCollection symbols;
  WeightsBuilder &weights;
  PlanContents contents;
  llvm::StringMap<uint8_t> axisNumbers;
  llvm::DenseMap<mlir::Value, uint32_t> buffers, tensors;
  /// For each event, the position of its step in its list.
  llvm::DenseMap<mlir::Value, uint32_t> events;
  /// For each constant buffer of the plan, the piece of the weights that it is.
  std::vector<std::pair<uint32_t, unsigned>> constants;
};

inline std::vector<int64_t> toVector(llvm::ArrayRef<int64_t> values) { return {values.begin(), values.end()}; }

} // namespace dovetail

#endif // DOVETAIL_LIB_ARTIFACT_PLANBUILDER_H
