//===- RendezvousMessages.h - What processes say to each other -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_RENDEZVOUSMESSAGES_H
#define DOVETAIL_RUNTIME_TRANSPORT_RENDEZVOUSMESSAGES_H

#include "absl/status/status.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace dovetail::runtime {

enum MessageType : uint32_t { Hello, Blob, Heartbeat, Failure, Farewell };

/// Until then, for `poll`.
int millisecondsUntil(std::chrono::steady_clock::time_point time);

/// Numbers in payloads.
void append(std::string &text, uint64_t value);
uint64_t take(const std::string &text, size_t &at);

/// False when the connection ended, or takes nothing any more.
bool sendMessage(int socket, uint32_t type, const std::string &payload);
/// Errors: DEADLINE_EXCEEDED when nothing comes for some seconds; UNAVAILABLE.
absl::Status receiveMessage(int socket, uint32_t &type, std::string &payload);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_RENDEZVOUSMESSAGES_H
