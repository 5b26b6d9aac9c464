//===- Passes.td - Passes that decide for the whole graph -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_PLANNER_PASSES_TD
#define DOVETAIL_PLANNER_PASSES_TD

include "mlir/Pass/PassBase.td"

class ObjectiveOption<string default>
    : Option<"objective", "objective", "::dovetail::Objective", "::dovetail::Objective::" # default,
             "What is to be least", [{llvm::cl::values(
               clEnumValN(::dovetail::Objective::Time, "time", "estimated time of the slowest ranks"),
               clEnumValN(::dovetail::Objective::Bytes, "bytes", "bytes that ranks receive"),
               clEnumValN(::dovetail::Objective::Memory, "memory", "memory of ranks"))}]>;
defvar clusterOption = Option<"cluster", "cluster", "std::string", "\"cpu\"",
                              "The devices of ranks and their links, one that is built in, or a file">;
defvar transportOption = Option<"transport", "transport", "::dovetail::TransportKind",
                                "::dovetail::TransportKind::Threads", "How ranks carry out exchanges", [{
                                  llvm::cl::values(
                                    clEnumValN(::dovetail::TransportKind::Threads, "threads",
                                               "as threads that copy from each other"),
                                    clEnumValN(::dovetail::TransportKind::Streams, "streams",
                                               "as devices, with a library's collectives"))}]>;

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
                 clusterOption, transportOption,
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

def HoistReshards : Pass<"dovetail-hoist-reshards", "::mlir::ModuleOp"> {
  let summary = "Move reshards to where fewer bytes are sent";
  let description = [{
    Where an operation without reductions is cheap to compute and its operands are smaller than its result (broadcasts,
    casts to wider types, ...), ranks exchange its operands in place of its result, and each computes what
    it needs: its loops become those of the reshard, windows that overlap included.

    Of unequal devices, none may then compute for longer than the exchange saves, unless bytes are what is to be least.
  }];
  let options = [ObjectiveOption<"Time">, clusterOption, transportOption];
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
                 clusterOption, transportOption,
                 Option<"always", "always", "bool", "false", "Exchange as seldom as can be, whatever that costs">,
                 Option<"seed", "seed", "uint64_t", "0",
                        "If not 0, what is least does not matter: anything that may be decided is, at random">];
}

def ChooseAlgorithms : Pass<"plan-choose-algorithms", "::mlir::ModuleOp"> {
  let summary = "Choose how convolutions are computed";
  let description = [{
    Convolutions that Winograd's algorithm is for are done by it where that is estimated to take the slowest ranks less
    time than the library's own way: transforms of inputs and results, a quarter of the multiplications, and weights
    that are four times as large. That has to save enough in 32 runs to make up for what these take when a session
    starts. Only those are considered whose weights never change, so that they are transformed once. With `algorithms`, which somebody measured, nothing is estimated. Comes after `dovetail-to-plan`, for programs
    that run on CPUs.
  }];
  let options = [clusterOption,
                 ListOption<"algorithms", "algorithms", "std::string",
                            "`library` or `winograd` for each convolution that has a choice, in the order of programs; "
                            "the last one is for all that follow">];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def DivideCalls : Pass<"plan-divide-calls", "::mlir::ModuleOp"> {
  let summary = "Decide how the threads of a rank divide library calls";
  let description = [{
    Where that is estimated to take less time, gives a call of a program the loop that threads divide, and how many
    iterations a part has at least (`division`). Loops that may be divided are the dimension of the output that is outermost
    in memory, of those in which ranks have more than one element, so that parts are whole pieces of memory, and the rows of
    a product without epilogue; of these, the one with which 2, 4 and 8 threads take least. What runs in the prologue is not divided,
    nor are convolutions by kernels of the runtime's own (`algorithm`), which divide themselves. Comes after `plan-choose-algorithms`.
  }];
  let options = [clusterOption];
}

def SplitLaunches : Pass<"plan-split-launches", "::mlir::ModuleOp"> {
  let summary = "Compute what needs no halo, and what is in none, while ranks exchange halos";
  let description = [{
    A launch or library call that reads values of which an exchange brings a halo into the memory of the rank's own part
    becomes several: an interior one, of the iterations that read nothing but what ranks own, and boundaries of what is
    left, at most two for each dimension that is split. The interior reads the rank's own part, so it need not wait for the
    exchange. Together they go through each iteration of the results once on every rank.

    That is done where it is estimated to let the slowest rank be done earlier, by more than it takes to begin a step: with the exchange, as far as it goes on
    beside steps and is not over by then, and with what the interior and the boundaries take. Of threads only messages
    over links that are not copied over go on so. With `always` it is done wherever there is an interior.

    Then the same is done of what is sent: a launch or library call right before an exchange by messages that brings halos
    of its results within their buffers becomes borders, of which the exchange sends something, before it, and an
    interior behind it. That is done where it is estimated to hide more than what steps behind the exchange do, which do not need
    what it brings. What has become parts already stays as it is: its own interior hides the exchange before it.

    Comes after `plan-choose-exchanges`.

    ```mlir
    plan.exchange %own -> %halo : ...
    plan.launch @blur(%halo) -> (%y) loops [16 by <{"y" : 0, 6, 16}>] : ...
    ```

    becomes

    ```mlir
    plan.exchange %own -> %halo : ...
    plan.launch @blur(%own) -> (%y) loops [16 by <{"y" : (0, 5), (7, 16)}>] : ...
    plan.launch @blur(%halo) -> (%y) loops [16 by <{"y" : (0, 0), (6, 7)}>] : ...
    plan.launch @blur(%halo) -> (%y) loops [16 by <{"y" : (5, 6), (16, 16)}>] : ...
    ```

    and

    ```mlir
    plan.launch @neg(%x) -> (%own) loops [16 by <{"y" : 0, 6, 16}>] : ...
    plan.exchange %own -> %halo : ...
    ```

    becomes

    ```mlir
    plan.launch @neg(%x) -> (%own) loops [16 by <{"y" : (0, 0), (6, 7)}>] : ...
    plan.launch @neg(%x) -> (%own) loops [16 by <{"y" : (5, 6), (16, 16)}>] : ...
    plan.exchange %own -> %halo : ...
    plan.launch @neg(%x) -> (%own) loops [16 by <{"y" : (0, 5), (7, 16)}>] : ...
    ```
  }];
  let options = [clusterOption, transportOption,
                 Option<"always", "always", "bool", "false", "Split all that can be, whatever that costs">];
}

#endif // DOVETAIL_PLANNER_PASSES_TD
