//===- RendezvousEntrance.h - Who comes to a rank --------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the port of a rank that others connect with. Anybody may come there: nobody is waited for alone, and
// of who has not shown what ranks of this run know, 4 KiB are read at most.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_TRANSPORT_RENDEZVOUS_RENDEZVOUSENTRANCE_H
#define DOVETAIL_RUNTIME_LIB_TRANSPORT_RENDEZVOUS_RENDEZVOUSENTRANCE_H

#include "RendezvousMessages.h"

#include "absl/status/statusor.h"

#include <list>
#include <memory>

namespace dovetail::runtime {

class RendezvousEntrance {
public:
  using Clock = std::chrono::steady_clock;

  /// Listens on `port`, or on one that is free if it is 0. Errors: UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<RendezvousEntrance>> open(int port);
  ~RendezvousEntrance();
  RendezvousEntrance(const RendezvousEntrance &) = delete;
  RendezvousEntrance &operator=(const RendezvousEntrance &) = delete;

  int port() const;

  /// Somebody who has said what a rank says first, whether it is true or not. The socket is the caller's.
  struct Guest {
    int socket;
    Hello hello;
  };
  /// Returns when the next one has come. Errors: DEADLINE_EXCEEDED; CANCELLED when there is something to read from
  /// `interruption`.
  absl::StatusOr<Guest> next(Clock::time_point deadline, int interruption);

  /// The addresses of this machine, with commas in between: those that others reach first.
  static std::string ownAddresses();

private:
  struct Visitor {
    int socket;
    Clock::time_point since;
    std::string bytes; ///< Of its first message.
  };

  explicit RendezvousEntrance(int listener) : listener(listener) {}
  /// Lets in whoever waits, while there is room.
  void admit();
  void dropFirst();
  /// Reads what is there. False: it is not of ours, or gone.
  static bool readSome(Visitor &visitor);

  int listener;
  std::list<Visitor> visitors;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_LIB_TRANSPORT_RENDEZVOUS_RENDEZVOUSENTRANCE_H
