//===- MessagePlan.h - What ranks send each other -----*- C++ -*- ===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the order of elements in messages between ranks that do not see each other's memory.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_COMM_NCCL_MESSAGEPLAN_H
#define DOVETAIL_RUNTIME_COMM_NCCL_MESSAGEPLAN_H

#include "dovetail/runtime/Communicator.h"

namespace dovetail::runtime::cuda {

/// The order of dimensions, outermost first, in which `box` lies in `memory`: messages have it, so that what is
/// contiguous there is sent as it is.
std::vector<int> messageOrder(const MemoryView &memory, const layout::Box &box);

/// A message with `box` in an order; without data.
MemoryView messageView(ElementType type, const layout::Box &box, const std::vector<int> &order);

/// Whether `box` lies in `memory` as in a message.
bool isMessage(const MemoryView &memory, const layout::Box &box, const std::vector<int> &order);

/// The orders of the messages that a rank sends, as other ranks read them: for each channel and transfer.
std::string packOrders(const std::vector<const ChannelDescription *> &channels);
/// For each channel the orders of what `source` sends to `rank`, in the order of the transfers. Errors: INTERNAL.
absl::StatusOr<std::vector<std::vector<std::vector<int>>>> unpackOrders(const std::string &packed, int rank);

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_COMM_NCCL_MESSAGEPLAN_H
