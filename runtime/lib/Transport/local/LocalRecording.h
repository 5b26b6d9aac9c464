//===- LocalRecording.h - One recording of all local ranks ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the ranks of one process record steps together: the events with which their streams wait for each other
// become the order of one recording, which rank 0 makes and does for all. So a replayed run meets on the host before
// and after all of its steps and exchanges, and not for each exchange.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_LOCAL_LOCALRECORDING_H
#define DOVETAIL_RUNTIME_TRANSPORT_LOCAL_LOCALRECORDING_H

#include "LocalState.h"

namespace dovetail::runtime {

/// See `Communicator::record`. Ranks issue what they record in turns, which pass when a rank waits for another.
absl::StatusOr<std::unique_ptr<Move>> recordTogether(std::shared_ptr<LocalGroup::State> group, int rank, Mover &mover,
                                                     absl::FunctionRef<absl::Status()> issue);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_LOCAL_LOCALRECORDING_H
