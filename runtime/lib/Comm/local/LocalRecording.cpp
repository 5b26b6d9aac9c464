//===- LocalRecording.cpp - One recording of all local ranks --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LocalRecording.h"

using namespace dovetail::runtime;

namespace {

/// One rank among those that record or replay together. What it calls alternates: `spread`, `gather`, `spread` to
/// record, then `gather`, `spread` for each replay. So the rank's own number of meetings says which one of another
/// comes next.
class Member {
public:
  Member(std::shared_ptr<LocalGroup::State> group, int rank, Mover &mover)
      : group(std::move(group)), rank(rank), mover(mover) {}

  bool isFirst() const { return rank == 0; }
  RankState &self() const { return *group->ranks[rank]; }
  LocalGroup::State &state() const { return *group; }
  Mover &getMover() const { return mover; }

  /// Steps of rank 0 from now on come after those that all ranks have issued so far. It is this rank's turn.
  absl::Status gather();
  /// Steps of this rank from now on come after those that rank 0 has issued when its `issue` returns. It is this rank's
  /// turn. When a call has returned, rank 0 does not issue anything for it any more.
  absl::Status spread(absl::FunctionRef<absl::Status()> issue);

private:
  absl::Status meet() {
    absl::Status status = mover.mark(*self().meeting, Lane::Steps);
    if (status.ok())
      ++self().meetings;
    return status;
  }

  std::shared_ptr<LocalGroup::State> group;
  int rank;
  Mover &mover;
};

/// While it lives, it is the rank's turn, but for its waits.
class Turn {
public:
  explicit Turn(const Member &member) : self(member.self()) { self.turn = std::unique_lock(member.state().turns); }
  ~Turn() { self.turn = {}; }

private:
  RankState &self;
};

class LocalRecording : public Move {
public:
  explicit LocalRecording(Member member) : member(std::move(member)) {}
  /// The first rank that goes destroys what all have recorded: without it, there are no more runs.
  ~LocalRecording() override {
    Turn turn(member);
    member.state().recording.reset();
  }

  absl::Status run() override {
    Turn turn(member);
    if (absl::Status status = member.gather(); !status.ok())
      return status;
    return member.spread([&] { return member.state().recording->run(); });
  }

private:
  Member member;
};

} // namespace

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
      status = mover.wait(*other.meeting, Lane::Steps);
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status Member::spread(absl::FunctionRef<absl::Status()> issue) {
  if (isFirst()) {
    // Ranks that have given up may take back what is issued here.
    absl::Status status = group->failure();
    if (status.ok())
      status = issue();
    if (status.ok())
      status = meet();
    for (int peer = 1, size = static_cast<int>(group->ranks.size()); peer < size; ++peer)
      group->notify(peer);
    return status;
  }
  RankState &first = *group->ranks[0];
  auto hasMet = [&] { return first.meetings.load() > self().meetings.load(); };
  absl::Status status = group->wait(rank, 0, hasMet);
  // What was issued just before the end of the run must be waited for, too.
  absl::Status waited = hasMet() ? mover.wait(*first.meeting, Lane::Steps) : absl::OkStatus();
  return status.ok() ? waited : status;
}

absl::StatusOr<std::unique_ptr<Move>> dovetail::runtime::recordTogether(std::shared_ptr<LocalGroup::State> group,
                                                                        int rank, Mover &mover,
                                                                        absl::FunctionRef<absl::Status()> issue) {
  if (!mover.canRecord())
    return nullptr;
  Member member(std::move(group), rank, mover);
  absl::StatusOr<std::unique_ptr<Mark>> meeting = mover.createMark();
  if (!meeting.ok())
    return meeting.status();
  Turn turn(member);
  member.self().meeting = *std::move(meeting);
  bool recording = false;
  absl::Status status = member.spread([&] {
    absl::Status begun = mover.beginRecording();
    recording = begun.ok();
    return begun;
  });
  if (status.ok())
    status = issue();
  if (status.ok())
    status = member.gather();
  std::unique_ptr<Move> &result = member.state().recording;
  if (recording) {
    absl::StatusOr<std::unique_ptr<Move>> recorded = mover.endRecording();
    if (status.ok())
      status = recorded.status();
    if (status.ok())
      result = *std::move(recorded);
  }
  if (status.ok())
    status = member.spread([] { return absl::OkStatus(); });
  if (!status.ok()) {
    result.reset();
    return status;
  }
  return std::make_unique<LocalRecording>(std::move(member));
}
