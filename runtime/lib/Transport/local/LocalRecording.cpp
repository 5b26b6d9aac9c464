//===- LocalRecording.cpp - One recording of all local ranks --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LocalRecording.h"

#include "absl/cleanup/cleanup.h"

using namespace dovetail::runtime;

namespace {

/// One rank among those that record or replay together.
class Member {
public:
  Member(std::shared_ptr<LocalGroup::State> group, int rank, Mover &mover)
      : group(std::move(group)), rank(rank), mover(mover) {}

  LocalGroup::State &state() const { return *group; }
  bool isFirst() const { return rank == 0; }

  absl::StatusOr<std::unique_ptr<Move>> record(absl::FunctionRef<absl::Status()> issue);
  absl::Status replay();
  /// Destroys the recording, which no rank replays any more. With `recordingMutex`.
  void forget() {
    if (number < group->recordings.size())
      group->recordings[number].reset();
  }

private:
  // Events in streams of steps put ranks in order. Ranks gather and spread in turns: spread, gather, spread to record,
  // after a gather if they have met before, then gather, spread for each replay. So how often the rank has met others
  // says which event of another comes next.
  /// Steps of rank 0 from now on come after those that all ranks have issued so far.
  absl::Status gather();
  /// Steps of this rank from now on come after those that rank 0 has issued so far.
  absl::Status spread();

  RankState &self() const { return *group->ranks[rank]; }
  DeviceStream &steps() const { return mover.getStream(StreamKind::Steps); }
  absl::Status meet() {
    absl::Status status = self().meeting->record(steps());
    if (status.ok())
      ++self().meetings;
    return status;
  }
  bool firstHasMet() const { return group->ranks[0]->meetings.load() > self().meetings.load(); }
  /// The error that ends the run, if there is one. All ranks hear of it before they are let on.
  absl::Status endIfFailed(const absl::Status &status) const;

  std::shared_ptr<LocalGroup::State> group;
  int rank;
  Mover &mover;
  size_t number = 0; ///< Of the recording among those of the group.
};

/// Lets go of the turn, if it is the rank's.
struct TurnScope {
  LocalGroup::State &group;
  int rank;
  ~TurnScope() { group.passTurn(rank); }
};

class LocalRecording : public Move {
public:
  explicit LocalRecording(Member member) : member(std::move(member)) {}
  /// The first rank that goes destroys what all have recorded: without it, there are no more runs.
  ~LocalRecording() override {
    std::lock_guard lock(member.state().recordingMutex);
    member.forget();
  }
  absl::Status run() override { return member.replay(); }

private:
  Member member;
};

} // namespace

absl::Status Member::endIfFailed(const absl::Status &status) const {
  if (status.ok())
    return status;
  group->abort(ofRank(rank, status));
  return group->failure();
}

absl::Status Member::gather() {
  if (!isFirst()) {
    absl::Status status = meet();
    group->notify(0);
    return status;
  }
  for (int peer = 1, size = static_cast<int>(group->ranks.size()); peer < size; ++peer) {
    RankState &other = *group->ranks[peer];
    absl::Status status = group->wait(rank, peer, [&] { return other.meetings.load() >= self().meetings.load(); });
    if (status.ok())
      status = steps().wait(*other.meeting);
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status Member::spread() {
  if (!isFirst()) {
    absl::Status status = group->wait(rank, 0, [&] { return firstHasMet(); });
    return status.ok() ? steps().wait(*group->ranks[0]->meeting) : status;
  }
  absl::Status status = meet();
  for (int peer = 1, size = static_cast<int>(group->ranks.size()); peer < size; ++peer)
    group->notify(peer);
  return status;
}

absl::Status Member::replay() {
  if (absl::Status status = gather(); !status.ok())
    return status;
  if (isFirst()) {
    // Ranks that have given up may take back what this uses. They look whether it was issued with the same lock.
    std::lock_guard lock(group->recordingMutex);
    absl::Status status = group->failure();
    if (status.ok())
      status = group->recordings[number]->run();
    return status.ok() ? spread() : status;
  }
  absl::Status status = spread();
  std::lock_guard lock(group->recordingMutex);
  // What was issued just before the end of the run must be waited for.
  if (!status.ok() && firstHasMet())
    (void)steps().wait(*group->ranks[0]->meeting);
  return status;
}

absl::StatusOr<std::unique_ptr<Move>> Member::record(absl::FunctionRef<absl::Status()> issue) {
  number = self().recordings++;
  if (self().meeting) {
    if (absl::Status status = gather(); !status.ok())
      return endIfFailed(status);
  } else {
    absl::StatusOr<std::unique_ptr<DeviceEvent>> meeting = mover.createEvent();
    if (!meeting.ok())
      return endIfFailed(meeting.status());
    self().meeting = *std::move(meeting);
  }
  TurnScope scope{*group, rank};
  if (absl::Status status = group->takeTurn(rank); !status.ok())
    return status;
  absl::Status status = isFirst() ? mover.beginRecording() : absl::OkStatus();
  bool begun = isFirst() && status.ok();
  // Also if the host's memory is at an end.
  absl::Cleanup end = [&] {
    if (!begun)
      return;
    group->takeLastTurn(rank);
    (void)mover.endRecording();
  };
  if (status.ok())
    status = spread();
  if (status.ok())
    status = issue();
  if (status.ok())
    status = gather();
  if (status = endIfFailed(status); !status.ok())
    return status;
  if (begun) {
    begun = false;
    absl::StatusOr<std::unique_ptr<Move>> recorded = mover.endRecording();
    if (!recorded.ok())
      return endIfFailed(recorded.status());
    std::lock_guard lock(group->recordingMutex);
    group->recordings.resize(number + 1);
    group->recordings[number] = *std::move(recorded);
  }
  // From here on it is destroyed with this.
  auto recording = std::make_unique<LocalRecording>(*this);
  if (status = endIfFailed(spread()); !status.ok())
    return status;
  return recording;
}

absl::StatusOr<std::unique_ptr<Move>> dovetail::runtime::recordTogether(std::shared_ptr<LocalGroup::State> group,
                                                                        int rank, Mover &mover,
                                                                        absl::FunctionRef<absl::Status()> issue) {
  if (!mover.canRecord())
    return nullptr;
  return Member(std::move(group), rank, mover).record(issue);
}
