//===- MessagePlan.h - What ranks send each other ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines where in memory the elements of messages and collectives lie, between ranks that do not see each other's.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGEPLAN_H
#define DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGEPLAN_H

#include "dovetail/runtime/Communicator.h"
#include "dovetail/runtime/Transport.h"

namespace dovetail::runtime {

/// A message with `box` of what is in `memory`, in a format of the same blocks; without data.
MemoryView messageView(const MemoryView &memory, const layout::Box &box, const MemoryFormat &format);

/// Whether `box` lies in `memory` as in a message.
bool isMessage(const MemoryView &memory, const layout::Box &box, const MemoryFormat &format);

/// The collective of a channel's kind on this rank, whose group has something to do.
Collective describeCollective(const ChannelDescription &channel, int rank);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGEPLAN_H
