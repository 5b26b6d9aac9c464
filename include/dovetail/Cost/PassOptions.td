//===- PassOptions.td - Options of passes that weigh costs -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_COST_PASSOPTIONS_TD
#define DOVETAIL_COST_PASSOPTIONS_TD

include "mlir/Pass/PassBase.td"

class ObjectiveOption<string default>
    : Option<"objective", "objective", "::dovetail::Objective", "::dovetail::Objective::" # default,
             "What is to be least", [{llvm::cl::values(
               clEnumValN(::dovetail::Objective::Time, "time", "estimated time of the slowest ranks"),
               clEnumValN(::dovetail::Objective::Bytes, "bytes", "bytes that ranks receive"),
               clEnumValN(::dovetail::Objective::Memory, "memory", "memory of ranks"))}]>;
defvar clusterOption = Option<"cluster", "cluster", "std::string", "\"cpu\"",
                              "The devices of ranks and their links, one that is built in, or a file">;
defvar engineOption = Option<"engine", "engine", "::dovetail::ExchangeEngine",
                                "::dovetail::ExchangeEngine::Threads", "How ranks carry out exchanges", [{
                                  llvm::cl::values(
                                    clEnumValN(::dovetail::ExchangeEngine::Threads, "threads",
                                               "as threads that copy from each other"),
                                    clEnumValN(::dovetail::ExchangeEngine::Streams, "streams",
                                               "as devices, with a library's collectives"))}]>;

#endif // DOVETAIL_COST_PASSOPTIONS_TD
