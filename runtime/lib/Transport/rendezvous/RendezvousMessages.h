//===- RendezvousMessages.h - What processes say to each other -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_TRANSPORT_RENDEZVOUS_RENDEZVOUSMESSAGES_H
#define DOVETAIL_RUNTIME_LIB_TRANSPORT_RENDEZVOUS_RENDEZVOUSMESSAGES_H

#include "absl/status/status.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace dovetail::runtime {

/// Greetings are answered with a welcome, a referral to somebody else, or a failure. A rank is ready when all ranks
/// below it are; rank 0 says so to all.
enum MessageType : uint32_t { Greeting, Welcome, Referral, Ready, Blob, Heartbeat, Failure, Farewell };

/// Before its payload a message has its type and the payload's size, of 4 bytes each.
inline constexpr size_t headerBytes = 8;
/// No greeting is longer, with its header.
inline constexpr size_t mostGreetingBytes = 4096;

/// Where a rank can be reached.
struct Place {
  uint64_t rank = 0;
  std::string addresses; ///< With commas in between.
  uint64_t port = 0;     ///< 0: it is not known yet.
};

/// What a process says first to another one.
struct Hello {
  std::string token; ///< What all processes of a run know, and nobody else; may be empty.
  uint64_t rank = 0, size = 0;
  std::string host; ///< Where it runs.
  std::string job;
  uint64_t to = 0; ///< The rank that it looks for: an address may be that of another machine, too.
  Place place;     ///< Where those below it find it.
};
std::string pack(const Hello &hello);
/// Nothing, if the payload is no greeting of this version.
std::optional<Hello> unpackHello(const std::string &payload);

/// The payload of a referral.
std::string pack(const Place &place);
/// Nothing, if the payload is none.
std::optional<Place> unpackPlace(const std::string &payload);

/// What some ranks do.
struct Progress {
  uint64_t done = 0;      ///< Grows whenever one of them gets on.
  bool busy = true;       ///< One of them is expected to.
  uint64_t least = 0;     ///< How far those are that are behind; counts the same on all ranks.
  uint64_t behind = 1;    ///< How many these are.
  uint64_t rank = 0;      ///< The first of them,
  std::string host, step; ///< where it runs, and what it does.

  /// That of these and others, whose ranks are larger.
  void add(const Progress &others);
};
std::string pack(const Progress &progress);
/// Nothing, if the payload is none.
std::optional<Progress> unpackProgress(const std::string &payload);

/// The name of this machine.
std::string hostName();

/// Until then, for `poll`.
int millisecondsUntil(std::chrono::steady_clock::time_point time);

/// Numbers in payloads.
void append(std::string &text, uint64_t value);
uint64_t take(const std::string &text, size_t &at);

/// The payload of a message that says what went wrong, and the error that it is, whatever the payload.
std::string packFailure(const absl::Status &status);
absl::Status unpackFailure(const std::string &payload);

/// False when the connection ended, or takes nothing any more.
bool sendMessage(int socket, uint32_t type, const std::string &payload);
/// Larger messages are not ours.
inline constexpr uint32_t mostMessageBytes = 1u << 30;
/// Errors: DEADLINE_EXCEEDED when nothing comes for some seconds; UNAVAILABLE.
/// Between parts of a large message `betweenParts` is called, if it is not null.
absl::Status receiveMessage(int socket, uint32_t &type, std::string &payload, uint32_t mostBytes = mostMessageBytes,
                            const std::function<void()> &betweenParts = nullptr);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_LIB_TRANSPORT_RENDEZVOUS_RENDEZVOUSMESSAGES_H
