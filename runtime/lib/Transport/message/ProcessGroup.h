//===- ProcessGroup.h - This process as a rank ---------------- -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how this process becomes one rank of a program, connected with the others by a plug-in.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_PROCESSGROUP_H
#define DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_PROCESSGROUP_H

#include "dovetail/runtime/RankGroup.h"
#include "dovetail/runtime/Transport.h"

namespace dovetail::runtime {

/// See `connectRanks`. `transport` is the name of the plug-in.
absl::StatusOr<std::unique_ptr<RankGroup>> connectProcesses(const std::string &transport, const TransportPlugin &plugin,
                                                            const ConnectionRequest &request);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_PROCESSGROUP_H
