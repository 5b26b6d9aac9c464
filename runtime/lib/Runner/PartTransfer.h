//===- PartTransfer.h - Inputs and outputs in parts -------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a rank takes its part of inputs from whoever has them, and gives its part of outputs, a little at a time.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_RUNNER_PARTTRANSFER_H
#define DOVETAIL_RUNTIME_RUNNER_PARTTRANSFER_H

#include "OutputPieces.h"

#include "dovetail/runtime/ProgramRunner.h"
#include "dovetail/runtime/RankGroup.h"

namespace dovetail::runtime {

/// Carries what the rank has of `port`, input number `index`, whose extents are those of the run. Meanwhile no progress
/// is expected of the rank: how long files take, nobody knows. Errors: those of `parts`, with the rank, and what ended
/// the run on another one.
absl::Status readParts(const PortInfo &port, size_t index, Session &session, Communicator &communicator,
                       PortParts &parts);
/// The same of what the rank has of `port`, output number `index`, as `pieces` say. Where ranks are processes
/// (`areProcesses`), what lies in short pieces is exchanged for slabs first, a round at a time: besides what it has, a
/// rank holds a slab, and messages with what it gives and gets in a round.
absl::Status writeParts(const PortInfo &port, size_t index, const OutputPieces &pieces, bool areProcesses,
                        Session &session, Communicator &communicator, PortParts &parts);

/// Carries `port`, result number `index`, from the processes of all other ranks to that of rank 0, which has `output`,
/// piece by piece.
absl::Status gatherOutput(const PortInfo &port, size_t index, const OutputPieces &pieces, int rank, Session &session,
                          RankGroup &group, const MemoryView &output);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_RUNNER_PARTTRANSFER_H
