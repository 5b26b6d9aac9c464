//===- Passes.td - Passes that decide and carry out shardings -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_SHARDING_PASSES_TD
#define DOVETAIL_SHARDING_PASSES_TD

include "dovetail/Cost/PassOptions.td"

def ChooseShardings : Pass<"dovetail-choose-shardings", "::mlir::ModuleOp"> {
  let summary = "Decide for the whole graph how everything is split";
  let description = [{
    Decides how the loops of every operation and all arguments are split, so that what is estimated, time or bytes, is
    least while all but light operations are divided as evenly as they can be (`ShardingAssignment`), and gives every
    value the sharding that follows. What is stated is kept: loops, `dovetail.shard`, or the sharding in the type; where
    an operation had better compute its result otherwise than it is to be split, a reshard follows it. Where a loop is
    split over which only the operation itself can combine terms, it gives way to simpler operations. What is expected of
    all that, a dictionary of `seconds`, `bytes` that ranks receive, `memory` of
    the rank with most, of which so much for `weights`, and `cost`, which is what the objective says, is written to the
    function as `dovetail.expected`.
  }];
  let options = [ObjectiveOption<"Bytes">,
                 Option<"memory", "memory", "int64_t", "0",
                        "Bytes that each rank has for weights and values, as estimated; 0: as many as it takes">,
                 ListOption<"mostShares", "most-shares", "double",
                            "Of each rank, the share of what is divided that it may have, where memory is unequal; empty if any">,
                 ListOption<"slowness", "slowness", "double",
                            "Of each rank, how many times as long as estimated work takes it, as programs have told; empty if once">,
                 Option<"weightFactor", "weight-factor", "double", "1.0",
                        "How many bytes ranks take for each byte of weights that they have all the time, as libraries pack some">,
                 Option<"gather", "gather", "bool", "true",
                        "Where memory matters, whether ranks may store pieces of weights, which are gathered before each use">,
                 clusterOption, engineOption,
                 Option<"work", "work", "uint64_t", "::dovetail::SearchLimits().work",
                        "How many costs the search looks at, at most">,
                 Option<"explain", "explain", "bool", "false",
                        "Say how the operations that take most time are split, and what would be next best">,
                 Option<"following", "following", "::dovetail::Following", "::dovetail::Following::No",
                        "Instead of all that, follow the inputs, to compare", [{llvm::cl::values(
                          clEnumValN(::dovetail::Following::No, "no", "do not"),
                          clEnumValN(::dovetail::Following::Inputs, "inputs", "leave whole what they do not split"),
                          clEnumValN(::dovetail::Following::Evenly, "evenly", "divide that where it moves nothing"))}]>,
                 Option<"follow", "follow", "double", "0.0",
                        "With objective=time, the share of all time that an operation has to save to be split otherwise than what it reads is stated to be">,
                 Option<"defersDepartures", "defers-departures", "bool", "false",
                        "Write departures from what is stated to functions, as `dovetail.departures`, instead of saying them">,
                 Option<"seed", "seed", "uint64_t", "0",
                        "If not 0, what is least does not matter: anything that may be decided is, at random">];
}

def Partition : Pass<"dovetail-partition", "::mlir::ModuleOp"> {
  let summary = "Make every need explicit as a reshard";
  let description = [{
    An operand that a rank does not hold where the operation's loops need it gets a `dovetail.reshard`; partial values
    are reduced where an operation is not linear in them. Ranks may hold more than they need, but for constants: of these
    each rank keeps its part.
  }];
}

def HoistReshards : Pass<"dovetail-hoist-reshards", "::mlir::ModuleOp"> {
  let summary = "Move reshards to where fewer bytes are sent";
  let description = [{
    Where an operation without reductions is cheap to compute and its operands are smaller than its result (broadcasts,
    casts to wider types, ...), ranks exchange its operands in place of its result, and each computes what
    it needs: its loops become those of the reshard, windows that overlap included.

    Of unequal devices, none may then compute for longer than the exchange saves, unless bytes are what is to be least.
  }];
  let options = [ObjectiveOption<"Time">, clusterOption, engineOption];
}

def WidenHalos : Pass<"dovetail-widen-halos", "::mlir::ModuleOp"> {
  let summary = "Exchange wider halos less often";
  let description = [{
    Where ranks exchange a halo of what an operation computes, they may compute it, too, if they have as much more of
    what the operation reads: its loops are then windows that overlap, and its own halo is as much wider. Decides of all
    operations of a function at once how far that goes, so that several layers may live on one exchange and a value that
    several operations read is brought to all of them in one form. With `objective=time` what is least is the estimated
    time of work and exchanges; with `bytes` it is what ranks receive, while operations stay divided as evenly as
    `dovetail-choose-shardings` has it, or no less evenly than they were; with `memory` nothing is done. Comes after
    `dovetail-partition`.

    Loops that are split over what is combined or accumulated, and results that are partial, stay as they are. So do
    reshards that give ranks no more than a part of their own, and those that a function's results or other reshards
    read.
  }];
  let options = [ObjectiveOption<"Time">,
                 clusterOption, engineOption,
                 Option<"always", "always", "bool", "false", "Exchange as seldom as can be, whatever that costs">,
                 Option<"seed", "seed", "uint64_t", "0",
                        "If not 0, what is least does not matter: anything that may be decided is, at random">];
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
