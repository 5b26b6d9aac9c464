//===- Passes.td - Passes over the plan -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_SCHEDULE_PASSES_TD
#define DOVETAIL_SCHEDULE_PASSES_TD

include "dovetail/Cost/PassOptions.td"
include "dovetail/Library/PassOptions.td"

def MergeRows : Pass<"plan-merge-rows", "::mlir::ModuleOp"> {
  let summary = "Make batch dimensions of matrix products rows, where the weights do not depend on them";
  let description = [{
    Sets `row_dims` of each `plan.matmul`: as many batch dimensions as possible become rows, so that one large product
    replaces a batch of small ones. The second operand does not depend on them, and on every rank that computes
    anything, the rows of the first operand and of the output follow each other in memory at one distance. Where ranks
    hold more than they compute, in a halo, fewer dimensions do.

    ```mlir
    plan.matmul %a, %b -> %c loops [197, 1, 384, 192] reads [(d0, d1, d3), (d3, d2)] : !a, !b -> !c
    ```

    becomes

    ```mlir
    plan.matmul %a, %b -> %c loops [197, 1, 384, 192] reads [(d0, d1, d3), (d3, d2)] {row_dims = 2 : i64} : !a, !b -> !c
    ```
  }];
}

def ReplaceSlowCalls : Pass<"plan-replace-slow-calls", "::mlir::ModuleOp"> {
  let summary = "Have the runtime's own kernels do what libraries are slow at";
  let description = [{
    Sets `algorithm` of each convolution for which the library's description says that it is slow (`Library::isSlow`),
    such as one for which oneDNN has its reference implementation only on the processor that the program is for, to
    `gathered`. Comes after `dovetail-to-plan`, for programs that run on CPUs.
  }];
  let options = LibraryOptions<>.options;
}

def ChooseAlgorithms : Pass<"plan-choose-algorithms", "::mlir::ModuleOp"> {
  let summary = "Choose how convolutions are computed";
  let description = [{
    Algorithms of the runtime's own (`dovetail/Calls/ConvolutionAlgorithms.h`) do a convolution that they are for where
    that is estimated to take the slowest ranks less time than the library's own way. Winograd's has transforms of
    inputs and results, a quarter of the multiplications, and weights that are four times as large. It has to save
    enough in 32 runs to make up for the time that these weights take when a session starts. Only convolutions whose
    weights never change are considered, so that weights are transformed once. With `algorithms`, which somebody
    measured, nothing is estimated. Comes after `dovetail-to-plan`, for programs that run on CPUs.
  }];
  let options = [clusterOption,
                 ListOption<"algorithms", "algorithms", "std::string",
                            "`library` or an algorithm for each convolution that has a choice, in the order of programs; "
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

def BoundCalls : Pass<"plan-bound-calls", "::mlir::ModuleOp"> {
  let summary = "Say how much memory library calls take at most";
  let description = [{
    Sets `memory` of each library call as the target's library description says: bounds of packed weights and scratch
    memory on each rank. A session allocates as much, and takes no implementation that needs more. A call of which no
    library says that is an error.
  }];
  // Last, as the pipeline gives the libraries alone.
  let options = LibraryOptions<>.options # [
    Option<"spare", "spare", "int64_t", /*default=*/"0",
           "Bytes of packed weights, and of scratch memory for each thread, that a call may take besides; for tests">
  ];
}

def ChooseExchanges : Pass<"plan-choose-exchanges", "::mlir::ModuleOp"> {
  let summary = "Choose how ranks carry out each exchange: phases, kinds, and the order of elements in messages";
  let description = [{
    Where each rank reduces many bytes to the same box, the exchange becomes two: first each rank of a group gets the
    sum of one part, then all collect the parts. An exchange that is one collective on all ranks, by their boxes and
    the buffers' formats, becomes one. What four ranks or more collect that does not lie so, or in parts of somewhat
    different sizes, they pack, gather and unpack (`packed_gather`); all others are messages. Dimensions in messages have
    the order of the source's buffer.

    ```mlir
    plan.exchange %parts -> %sum : !plan.ref<tensor<400x100xf32, #dovetail.sharding<@mesh, [{}, {} ], partial = sum ["y"]>>>
        -> !plan.ref<tensor<400x100xf32>>
    ```

    becomes, on two ranks,

    ```mlir
    %part = plan.view %buffer_of_sum : !plan.ref<tensor<400x100xf32, #dovetail.sharding<@mesh, [{"y" : 0, 200, 400}, {} ]>>>
    plan.exchange %parts -> %part by reduce_scatter : ...
    plan.exchange %part -> %sum by all_gather : ...
    ```
  }];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def MergeExchanges : Pass<"plan-merge-exchanges", "::mlir::ModuleOp"> {
  let summary = "Make small exchanges that can begin at the same time one";
  let description = [{
    An exchange joins an earlier one where no step between the two has to do with what it moves, and there is no
    step but other exchanges between them, or the same step wrote what both move. So nothing begins later than it
    would, and what ranks need of each other goes in one message. An earlier one waits for a later one if the same
    step is the first to read what either gives. That holds for collectives of few ranks, too, which then are
    messages. Gathers among the same groups of four ranks or more become one gather of packed parts; other
    collectives of many ranks, which take fewer steps than messages, stay alone. Together they bring no rank as much
    as the bytes from which reductions have two phases: what is larger is worth waiting for alone. Of gathers whose
    results the same step reads first it may be a mebibyte.

    ```mlir
    plan.exchange %value -> %values by all_gather : !part -> !all
    plan.exchange %index -> %indices by all_gather : !part -> !all
    ```

    becomes

    ```mlir
    plan.exchange %value, %index -> %values, %indices : !part, !part -> !all, !all
    ```
  }];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

def EndAtCounts : Pass<"plan-end-at-counts", "::mlir::ModuleOp"> {
  let summary = "Let loops end where runs need no more";
  let description = [{
    A dimension that is bounded (`dovetail.counts`) is computed up to its bound, though nobody reads an output beyond its
    count. Of lengths (`plan.input` with `dovetail.count`) it follows how much of each value a run needs, by the accesses
    of all steps, from the outputs backward. Loops of kernels and of library calls get an `end` (`#plan.end`). That of a
    library call has a step: the call is prepared for parts, and some of them are done.

    A count that a run computes ends kernels that make outputs. The kernel that makes the output gets the count as one more argument (`counts`), and the loops of such dimensions
    end there, where each iteration is an element or a line of its own, the count is known before, and nobody else reads
    what the kernel writes.
  }];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
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
  let options = [clusterOption, engineOption,
                 Option<"always", "always", "bool", "false", "Split all that can be, whatever that costs">];
}

def PlaceWaits : Pass<"plan-place-waits", "::mlir::ModuleOp"> {
  let summary = "Let steps wait for the exchanges that they must come after";
  let description = [{
    An exchange may still be under way when later steps run. Before the first step that needs what ranks receive, or
    writes to what takes part in it, a `plan.wait` lets it be complete; and where the step writes to its sources, other
    ranks must have read them. Memory of the arena passes from one buffer to another: before the first step that may be
    given memory of the exchange's buffers, after the last that touches them, the same is waited for. Whoever reads no
    more than the rank's own part of a source, which an exchange of messages in one buffer leaves as it is, does not
    wait. At the end nothing is under way. Waits that are there are placed anew: passes that add steps or buffers come
    before.

    ```mlir
    %0 = plan.exchange %own -> %halo : !own -> !halo
    plan.launch @blur(%own) -> (%y) ...
    plan.launch @blur(%halo) -> (%y) ...
    ```

    becomes

    ```mlir
    %0 = plan.exchange %own -> %halo : !own -> !halo
    plan.launch @blur(%own) -> (%y) ...
    plan.wait complete(%0)
    plan.launch @blur(%halo) -> (%y) ...
    plan.wait read(%0)
    ```
  }];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

#endif // DOVETAIL_SCHEDULE_PASSES_TD
