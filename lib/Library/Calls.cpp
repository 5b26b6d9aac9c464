//===- Calls.cpp - Library calls of the plan -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which call of the plan an operation is. What it computes in detail is in its accesses.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Library/Calls.h"

using namespace mlir;
using namespace dovetail;

LogicalResult dovetail::createCall(OpBuilder &builder, Operation *op, const CallParts &parts) {
  std::optional<CallForm> form = classify(op);
  if (!form)
    return op->emitOpError("has no library call");
  auto isRead = [&](unsigned number) { return readsOperand(*form, number); };
  if (static_cast<int64_t>(parts.operands.size()) != llvm::count_if(llvm::seq(op->getNumOperands()), isRead))
    return op->emitOpError("has operands that are constants of its group, which its library call reads");
  if (!isSumOfProducts(*form) && !parts.postOps.empty())
    return op->emitOpError("has an epilogue, which only calls of sums of products have");
  Location loc = op->getLoc();
  ArrayRef<Value> operands = parts.operands;
  std::visit(FormVisitor{[&](const calls::ConvolutionForm &) {
                           plan::ConvolutionOp::create(builder, loc, operands[0], operands[1], parts.result,
                                                       parts.postTensors, parts.loops, parts.reads, parts.postOps,
                                                       parts.name, /*memory=*/{}, plan::ConvolutionAlgorithm::Library,
                                                       /*division=*/{});
                         },
                         [&](const ProductCall &) {
                           plan::MatMulOp::create(builder, loc, operands[0], operands[1], parts.result,
                                                  parts.postTensors, parts.loops, parts.reads,
                                                  /*row_dims=*/IntegerAttr(), parts.postOps, parts.name,
                                                  /*memory=*/{}, /*division=*/{});
                         },
                         [&](const PoolCall &pool) {
                           plan::PoolOp::create(builder, loc, operands[0], parts.result, parts.loops, parts.reads,
                                                pool.kind, parts.name, /*memory=*/{}, /*division=*/{});
                         },
                         [&](const AttentionCall &attention) {
                           Value mask = operands.size() > 3 ? operands[3] : Value();
                           plan::AttentionOp::create(
                               builder, loc, operands[0], operands[1], operands[2], mask, parts.result, parts.loops,
                               parts.reads, builder.getF32FloatAttr(attention.scale),
                               builder.getF32FloatAttr(attention.fill),
                               attention.isOfParts ? builder.getUnitAttr() : UnitAttr(), parts.name, /*memory=*/{},
                               /*division=*/{});
                         },
                         [&](const TransformCall &transform) {
                           plan::TransformOp::create(builder, loc, operands[0], parts.result, parts.loops, parts.reads,
                                                     transform.isInverse, parts.name, /*memory=*/{},
                                                     /*division=*/{});
                         }},
             *form);
  return success();
}
