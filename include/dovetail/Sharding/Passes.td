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

def Partition : Pass<"dovetail-partition", "::mlir::ModuleOp"> {
  let summary = "Make every need explicit as a reshard";
  let description = [{
    An operand that a rank does not hold where the operation's loops need it gets a `dovetail.reshard`; partial values
    are reduced where an operation is not linear in them. Ranks may hold more than they need, but for constants: of these
    each rank keeps its part.
  }];
}

def MergeReshards : Pass<"dovetail-merge-reshards", "::mlir::ModuleOp"> {
  let summary = "Share reshards of a value among its users";
  let description = [{
    Of the reshards of one value, those whose result another one covers on every rank are replaced by it, unless a
    function returns them.
  }];
}

def VerifyPartition : Pass<"dovetail-verify-partition", "::mlir::ModuleOp"> {
  let summary = "Check that every need is met on every rank";
  let description = [{
    Fails if an operation needs an element of an operand that some rank does not hold, if it is not said how its loops
    are split, if it is not linear in an operand that is partial, or if a reshard or argument leaves elements to no rank.
    That loops are covered, and reductions exactly once, every operation checks itself.
  }];
}

def WitnessReads : Pass<"dovetail-witness-reads", "::mlir::ModuleOp"> {
  let summary = "Check, by evaluation, that operations read what ranks hold and write what they compute";
  let description = [{
    For tests: a witness that asks no relation. Operations are evaluated on each rank at the corners of what it
    computes and at random places, with elements that nobody knows, and what they read is recorded. Fails if an
    element is not one that the rank holds, if a line writes what the rank does not compute, or leaves some of it out.
    An index that depends on data may be any.
  }];
  let options = [Option<"samples", "samples", "int64_t", "40", "Places of each operation on each rank">,
                 Option<"seed", "seed", "int64_t", "1", "Of the random places">];
}

#endif // DOVETAIL_SHARDING_PASSES_TD
