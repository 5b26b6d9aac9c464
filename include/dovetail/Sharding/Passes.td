//===- Passes.td - Passes that decide and carry out shardings -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_SHARDING_PASSES_TD
#define DOVETAIL_SHARDING_PASSES_TD

include "mlir/Pass/PassBase.td"

def ChooseCuts : Pass<"dovetail-choose-cuts", "::mlir::ModuleOp"> {
  let summary = "Choose the cut positions that the user left open";
  let description = [{
    For every requested sharding (`dovetail.shard` on arguments) that names axes only, chooses cuts at multiples of the
    stride that the network accumulates from there on, so that strided layers stay aligned, as long as no shard gets
    more than a quarter above its fair share; otherwise at the largest part of that stride that keeps balance.
  }];
}

def PropagateShardings : Pass<"dovetail-propagate", "::mlir::ModuleOp"> {
  let summary = "Carry the requested shardings through the graph";
  let description = [{
    Gives every value a sharding. What is stated comes first: `dovetail.shard` or the sharding in the type. Forward, each operation takes the loop shardings that follow from its operands; where
    operands disagree, the assignment that moves fewest bytes wins. Backward, arguments without a request take what
    their users need. Composite operations are decomposed where a dimension that they reduce is split. Asks operators
    nothing but their relations.
  }];
}

def Partition : Pass<"dovetail-partition", "::mlir::ModuleOp"> {
  let summary = "Make every need explicit as a reshard";
  let description = [{
    An operand that a rank does not hold where it is needed gets a `dovetail.reshard`; partial values are reduced where
    an operation is not linear in them.
  }];
}

def HoistReshards : Pass<"dovetail-hoist-reshards", "::mlir::ModuleOp"> {
  let summary = "Move reshards to where fewer bytes are sent";
  let description = [{
    Where an operation without reductions is cheap to compute and its operands are smaller than its result (broadcasts,
    nearest-neighbour resizes, casts, ...), ranks exchange its operands in place of its result, and each computes what
    it needs.
  }];
}

def MergeReshards : Pass<"dovetail-merge-reshards", "::mlir::ModuleOp"> {
  let summary = "Share reshards of a value among its users";
  let description = [{
    Of the reshards of one value, those whose result another one covers on every rank are replaced by it.
  }];
}

def VerifyPartition : Pass<"dovetail-verify-partition", "::mlir::ModuleOp"> {
  let summary = "Check that every need is met on every rank";
  let description = [{
    Fails if an operation needs an element of an operand that some rank does not hold, if a reduction would count an
    element twice, if a result's pieces leave elements out, or if a reduction's cuts do not cover it exactly once.
  }];
}

#endif // DOVETAIL_SHARDING_PASSES_TD
