//===- Rendezvous.h - Processes that know each other -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the ranks of a program that are processes find each other, exchange what they need to know at the start,
// and learn that one of them has failed, hangs or is gone: each has connections with its neighbours in a tree.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_TRANSPORT_RENDEZVOUS_RENDEZVOUS_H
#define DOVETAIL_RUNTIME_LIB_TRANSPORT_RENDEZVOUS_RENDEZVOUS_H

#include "RendezvousEntrance.h"
#include "RendezvousTree.h"

#include "dovetail/runtime/LaunchEnvironment.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace dovetail::runtime {

/// Something to poll for, which is ready from `signal` to `clear`.
class EventFile {
public:
  /// Errors: UNAVAILABLE.
  absl::Status open();
  ~EventFile();
  /// Thread-safe.
  void signal();
  void clear();
  int descriptor() const { return file; }

private:
  int file = -1;
};

/// Ranks leave it together, after they have gathered a last time: through one that has left nothing goes any more, and
/// those below it look after themselves alone.
class Rendezvous {
public:
  /// Returns when all ranks have come. From then on a thread looks after the neighbours. Rank 0 may have
  /// opened its entrance before. Errors: DEADLINE_EXCEEDED, naming those that did not come; INVALID_ARGUMENT when the
  /// others do not take this one for a rank of their run; UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<Rendezvous>> connect(const LaunchEnvironment &environment,
                                                             std::chrono::milliseconds timeout,
                                                             std::unique_ptr<RendezvousEntrance> entrance = nullptr);
  ~Rendezvous();
  Rendezvous(const Rendezvous &) = delete;
  Rendezvous &operator=(const Rendezvous &) = delete;

  /// What each rank gave, by rank; on ranks other than 0 nothing. All ranks call it.
  absl::StatusOr<std::vector<std::string>> gather(std::string own);
  /// What each rank gave, by rank. All ranks call it.
  absl::StatusOr<std::vector<std::string>> allGather(std::string own);
  /// What each rank with the same `key` gave, by rank; with an empty key nothing. All ranks call it, but each hears of
  /// those alone.
  absl::StatusOr<std::map<int, std::string>> gatherAlike(const std::string &key, const std::string &own);

  /// When some rank fails, `onFailure` is called once, on another thread.
  void watch(std::function<void(const absl::Status &)> onFailure);
  /// A busy rank is expected to make progress; at first all are. Thread-safe.
  void setBusy(bool busy);
  /// Says what this rank does now. `step` must stay. Thread-safe.
  void enterStep(const char *step);
  /// Ends the run on all ranks. Thread-safe.
  void fail(const absl::Status &status);
  /// The error that ended the run. Thread-safe.
  absl::Status failure() const;
  /// The error that ended the run, or `status`, an error of what connects this rank with others. When a rank is lost
  /// such errors may come first, and say less. Thread-safe.
  absl::Status reason(const absl::Status &status) const;

private:
  using Clock = std::chrono::steady_clock;

  /// A neighbour: the rank above this one, or one right below.
  struct Peer {
    explicit Peer(Subtree ranks);

    Subtree ranks;                 ///< Itself and those below it; of the one above, itself alone.
    std::atomic<int> socket = -1;  ///< Whoever connects sets it last; the thread closes it.
    std::string host;              ///< Where it runs.
    Place place;                   ///< Where those below it find it.
    std::mutex sending;            ///< Messages are sent whole.
    Clock::time_point heard;       ///< When anything came from it.
    bool confirmed = false;        ///< It knows of this connection.
    bool ready = false;            ///< All ranks below it have come; of the one above, all. With `mutex`.
    bool gone = false;             ///< It has said good-bye. With `mutex`.
    std::deque<std::string> blobs; ///< What it gave and nobody has taken. With `mutex`.
    Progress progress;             ///< What it and those below it do.
  };
  /// What ranks in a row gave: the same for so many of them each.
  using Runs = std::vector<std::pair<uint64_t, std::string>>;
  /// What ranks with the same key gave.
  using Group = std::map<int, std::string>;

  Rendezvous(const LaunchEnvironment &environment, std::chrono::milliseconds timeout);

  absl::Status start(std::unique_ptr<RendezvousEntrance> entrance);
  /// Lets those below this rank in, or tells them who will.
  absl::Status admit(RendezvousEntrance &entrance);
  void answer(const RendezvousEntrance::Guest &guest);
  /// Why a process that says so of itself is no rank of this run; empty if it is one.
  std::string whatIsWrong(const Hello &hello) const;
  /// Finds the rank above, beginning with rank 0; those below find this one at `own`.
  absl::Status reach(const Place &own);
  /// Asks whom it finds at an address for `place`'s rank: nothing if that is the rank above, which is connected now, or
  /// else who may know. Errors: INVALID_ARGUMENT; all others may pass.
  absl::StatusOr<std::optional<Place>> call(const std::string &address, const Place &place, const Place &own);
  /// Says to the rank above that those below are here, and returns when all are.
  absl::Status awaitOthers();
  void connectPeer(Peer &peer, int socket, std::string host, bool confirmed);
  Peer *parent() const { return place.parent < 0 ? nullptr : peers.front().get(); }
  /// The peers right below.
  std::span<const std::unique_ptr<Peer>> children() const { return std::span(peers).subspan(place.parent < 0 ? 0 : 1); }
  /// The one below which `rank` is, or which it is.
  Peer &childOf(int rank) const;

  bool send(Peer &peer, uint32_t type, const std::string &payload);
  absl::StatusOr<std::string> takeBlob(Peer &peer);
  /// What this rank and those below it gave, which it passes on to the rank above.
  absl::StatusOr<Runs> collect(std::string own);
  static std::string packRuns(const Runs &runs);
  /// Appends what `ranks` gave. Errors: UNAVAILABLE when `packed` is not that.
  static absl::Status addRuns(Runs &runs, const std::string &packed, const Subtree &ranks);
  static std::vector<std::string> expand(const Runs &runs);
  /// The ranks with the same key, from what all gave.
  static absl::StatusOr<std::vector<Group>> findGroups(const Runs &runs);

  void run();
  void readFrom(Peer &peer);
  /// Says that this rank lives and what it does, if it is time to.
  void beat();
  void lookForHangs();
  void lookForSilence();
  /// What this rank and those below it do.
  Progress summarize() const;
  /// That a rank is gone; that it is silent.
  static absl::Status lost(const Peer &peer);
  static absl::Status silent(const Peer &peer, std::chrono::milliseconds limit);
  /// Tells the others of an error, and of that which ended the run, once there is one.
  void tell(const absl::Status &status);
  void announce();
  void keep(const absl::Status &status);
  void handle(Peer &peer, uint32_t type, std::string payload);

  LaunchEnvironment environment;
  std::string host; ///< This machine's name.
  std::chrono::milliseconds timeout;
  Clock::time_point deadline; ///< For start-up.
  TreePlace place;
  std::vector<std::unique_ptr<Peer>> peers; ///< The one above, if there is one, and those below by rank.
  std::vector<bool> came;                   ///< Which of this rank and those below have asked here for their places.
  std::atomic<bool> complete = false;       ///< All ranks have found them.
  EventFile wake;                           ///< The thread has something to do.
  EventFile news;                           ///< For `admit`: a rank is ready, or an error is there.
  std::thread thread;
  std::atomic<bool> stopping = false;

  /// Of the thread.
  Clock::time_point nextBeat, lastLook;
  uint64_t seen = 0;         ///< `Progress::done` of this rank and those below.
  Clock::time_point changed; ///< When that was seen last.

  std::atomic<uint64_t> progress = 0; ///< Counts the same on all ranks.
  std::atomic<uint64_t> taken = 0;    ///< Blobs.
  std::atomic<bool> busy = true;
  std::atomic<const char *> step = "start-up";

  mutable std::mutex mutex;
  mutable std::condition_variable arrival; ///< A blob has come, a rank has gone, or an error is there.
  absl::Status error;                      ///< The first.
  bool announced = false;                  ///< Others know of it.
  std::function<void(const absl::Status &)> onFailure;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_LIB_TRANSPORT_RENDEZVOUS_RENDEZVOUS_H
