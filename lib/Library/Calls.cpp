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

#include "dovetail/Dialect/Dovetail/Ops/AttentionOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/SpectralOps.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dovetail;

LogicalResult dovetail::createCall(OpBuilder &builder, Operation *op, const CallParts &parts) {
  Location loc = op->getLoc();
  // Roots of one are the library's own.
  if (parts.operands.size() != (isa<DftOp>(op) ? 1 : op->getNumOperands()))
    return op->emitOpError("has operands that are constants of its group, which its library call reads");
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ConvOp, ConvTransposeOp>([&](auto) {
        plan::ConvolutionOp::create(builder, loc, parts.operands[0], parts.operands[1], parts.result, parts.postTensors,
                                    parts.loops, parts.reads, parts.postOps, parts.name, /*memory=*/{},
                                    plan::ConvolutionAlgorithm::Library, /*division=*/{});
        return success();
      })
      .Case([&](MatMulOp) {
        plan::MatMulOp::create(builder, loc, parts.operands[0], parts.operands[1], parts.result, parts.postTensors,
                               parts.loops, parts.reads, /*row_dims=*/IntegerAttr(), parts.postOps, parts.name,
                               /*memory=*/{}, /*division=*/{});
        return success();
      })
      .Case([&](PoolOp pool) -> LogicalResult {
        if (!parts.postOps.empty())
          return pool.emitOpError("has an epilogue, which no call of a pool has");
        plan::PoolOp::create(builder, loc, parts.operands[0], parts.result, parts.loops, parts.reads,
                             pool.getKindAttr(), parts.name, /*memory=*/{}, /*division=*/{});
        return success();
      })
      .Case([&](AttentionOp attention) -> LogicalResult {
        if (!parts.postOps.empty())
          return attention.emitOpError("has an epilogue, which no call of attention has");
        Value mask = attention.getMask() ? parts.operands[3] : Value();
        UnitAttr isOfParts = attention.getRestarts() ? builder.getUnitAttr() : UnitAttr();
        plan::AttentionOp::create(builder, loc, parts.operands[0], parts.operands[1], parts.operands[2], mask,
                                  parts.result, parts.loops, parts.reads, attention.getScaleAttr(),
                                  attention.getFillAttr(), isOfParts, parts.name, /*memory=*/{}, /*division=*/{});
        return success();
      })
      .Case([&](DftOp dft) -> LogicalResult {
        if (!parts.postOps.empty())
          return dft.emitOpError("has an epilogue, which no call of a transform has");
        if (!dft.isPlain())
          return dft.emitOpError("has no library call; dovetail-expand-transforms makes one of it that has");
        plan::TransformOp::create(builder, loc, parts.operands[0], parts.result, parts.loops, parts.reads,
                                  dft.getInverse(), parts.name, /*memory=*/{}, /*division=*/{});
        return success();
      })
      .Default([](Operation *other) { return other->emitOpError("has no library call"); });
}
