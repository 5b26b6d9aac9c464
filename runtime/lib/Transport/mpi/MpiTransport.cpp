//===- MpiTransport.cpp - Messages by MPI --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the transport `mpi`. Messages are requests that are made when a session starts, and started in each run.
// MPI gathers, but does not add: what is combined goes in messages, and is combined by ranks in ascending order of
// ranks, so that results do not depend on the transport.
//
//===----------------------------------------------------------------------===//

#include "MpiTransport.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::mpi;

namespace {

#ifndef DOVETAIL_MPI_MOST_BYTES
/// Of one message of MPI, which counts in numbers of 32 bits. Tests have less.
#define DOVETAIL_MPI_MOST_BYTES (int64_t(1) << 30)
#endif
constexpr int64_t mostBytes = DOVETAIL_MPI_MOST_BYTES;

#ifndef DOVETAIL_MPI_DELAY_US
/// Microseconds that messages take at least, from when they are begun. Tests have more.
#define DOVETAIL_MPI_DELAY_US 0
#endif
constexpr std::chrono::microseconds leastDelay(DOVETAIL_MPI_DELAY_US);

/// What takes a request or more. It is begun, and asked for until it is done.
class Work : public DeviceWork, public HostTask {
public:
  explicit Work(std::shared_ptr<Group> group) : group(std::move(group)) {}
  absl::Status issue(DeviceStream &stream) override { return stream.call(*this); }
  absl::Status begin(DeviceStream &) override {
    earliest = Clock::now() + leastDelay;
    return start();
  }
  absl::StatusOr<bool> proceed(bool waits) override;
  absl::Status perform() override {
    earliest = Clock::now() + leastDelay;
    absl::Status status = start();
    return status.ok() ? proceed(/*waits=*/true).status() : status;
  }

protected:
  virtual absl::Status start() = 0;
  /// With `callMutex` held, once for each call of MPI.
  virtual absl::Status ask(bool &isDone) = 0;

  std::shared_ptr<Group> group;

private:
  Clock::time_point earliest; ///< When it may be done.
};

absl::StatusOr<bool> Work::proceed(bool waits) {
  bool isDone = false;
  auto askInTime = [&](bool &isDone) {
    absl::Status status = ask(isDone);
    isDone = isDone && (leastDelay.count() == 0 || Clock::now() >= earliest);
    return status;
  };
  absl::Status status;
  if (waits) {
    status = waitUntil(group->isOver, askInTime);
    isDone = true;
  } else {
    std::lock_guard lock(callMutex());
    status = askInTime(isDone);
  }
  if (!status.ok())
    return status;
  return isDone;
}

class Exchange : public Work {
public:
  using Work::Work;
  ~Exchange() override;
  absl::Status prepare(const std::vector<Message> &sends, const std::vector<Message> &receives);
  absl::Status start() override;
  absl::Status ask(bool &isDone) override;

private:
  /// With `callMutex` held. Adds a request for each part of `message`.
  absl::Status add(const Message &message, bool isSent);
  /// The error of the request that has one.
  absl::Status explain(int result) const;

  std::vector<MPI_Request> requests; ///< Receives, then sends.
  std::vector<MPI_Status> statuses;
  std::vector<int> peers; ///< By request.
  size_t numReceives = 0;
  size_t numUnderWay = 0; ///< Of them, from the first.
};

absl::Status Exchange::add(const Message &message, bool isSent) {
  for (int64_t offset = 0; offset < message.bytes; offset += mostBytes) {
    int count = static_cast<int>(std::min(mostBytes, message.bytes - offset));
    MPI_Request request = MPI_REQUEST_NULL;
    // What goes between two ranks arrives in the order in which it was started.
    absl::Status status = isSent ? check(MPI_Send_init(message.data + offset, count, MPI_BYTE, message.peer, /*tag=*/0,
                                                       group->handle, &request),
                                         "MPI_Send_init")
                                 : check(MPI_Recv_init(message.data + offset, count, MPI_BYTE, message.peer, /*tag=*/0,
                                                       group->handle, &request),
                                         "MPI_Recv_init");
    if (!status.ok())
      return status;
    requests.push_back(request);
    peers.push_back(message.peer);
  }
  return absl::OkStatus();
}

absl::Status Exchange::prepare(const std::vector<Message> &sends, const std::vector<Message> &receives) {
  std::lock_guard lock(callMutex());
  absl::Status status;
  for (const Message &message : receives)
    if (status.ok())
      status = add(message, /*isSent=*/false);
  numReceives = requests.size();
  for (const Message &message : sends)
    if (status.ok())
      status = add(message, /*isSent=*/true);
  statuses.resize(requests.size());
  return status;
}

absl::Status Exchange::explain(int result) const {
  if (result == MPI_ERR_IN_STATUS)
    for (size_t i = 0; i < requests.size(); ++i)
      if (int error = statuses[i].MPI_ERROR; error != MPI_SUCCESS && error != MPI_ERR_PENDING) {
        absl::Status status = check(error, i < numReceives ? "receiving" : "sending");
        return absl::Status(status.code(), absl::StrCat("messages ", i < numReceives ? "from" : "to", " rank ",
                                                        peers[i], ": ", status.message()));
      }
  return check(result, "MPI_Testall");
}

absl::Status Exchange::start() {
  std::lock_guard lock(callMutex());
  numUnderWay = 0;
  // One after another: MPI_Startall may take any order.
  for (MPI_Request &request : requests) {
    if (absl::Status status = check(MPI_Start(&request), "MPI_Start"); !status.ok())
      return status;
    ++numUnderWay;
  }
  return absl::OkStatus();
}

absl::Status Exchange::ask(bool &isDone) {
  int flag = 0;
  int result = MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, statuses.data());
  isDone = flag;
  if (result != MPI_SUCCESS)
    return explain(result);
  if (isDone)
    numUnderWay = 0;
  return absl::OkStatus();
}

/// What was given up may end within this time, all of it together.
constexpr auto endTimeout = std::chrono::milliseconds(200);

Exchange::~Exchange() {
  std::lock_guard lock(callMutex());
  int hasEnded = 0;
  if (MPI_Finalized(&hasEnded) != MPI_SUCCESS || hasEnded)
    return;
  // Nothing may arrive in memory that is given back, or be read there. What is sent cannot be called back, and what has
  // begun to arrive ends with its sender only.
  for (size_t i = 0; i < std::min(numUnderWay, numReceives); ++i)
    MPI_Cancel(&requests[i]);
  Clock::time_point deadline = Clock::now() + endTimeout;
  for (size_t i = 0; i < requests.size(); ++i) {
    int isDone = i >= numUnderWay;
    while (!isDone) {
      if (MPI_Test(&requests[i], &isDone, MPI_STATUS_IGNORE) != MPI_SUCCESS || group->isHeld || Clock::now() > deadline)
        break;
    }
    if (!isDone)
      group->isHeld = true;
    else if (requests[i] != MPI_REQUEST_NULL)
      MPI_Request_free(&requests[i]);
  }
}

/// All parts are gathered from all ranks.
class Gather : public Work {
public:
  Gather(std::shared_ptr<Group> group, const Collective &collective) : Work(std::move(group)), what(collective) {}
  ~Gather() override {
    // A collective cannot be called back.
    if (request != MPI_REQUEST_NULL)
      group->isHeld = true;
  }

  absl::Status start() override {
    int bytes = static_cast<int>(what.elements * elementSize(what.type));
    bool isInPlace = what.source == what.target + static_cast<int64_t>(group->rank) * bytes;
    std::lock_guard lock(callMutex());
    // The blocking one could not be given up when another rank is lost.
    int result = MPI_Iallgather(isInPlace ? MPI_IN_PLACE : what.source, bytes, MPI_BYTE, what.target, bytes, MPI_BYTE,
                                group->handle, &request);
    return check(result, "MPI_Iallgather");
  }
  absl::Status ask(bool &isDone) override {
    int flag = 0;
    absl::Status status = check(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), "MPI_Iallgather");
    isDone = flag;
    return status;
  }

private:
  Collective what;
  MPI_Request request = MPI_REQUEST_NULL;
};

/// The same of parts that are too large for it: as messages. The rank's own part may lie elsewhere.
class LargeGather : public Work {
public:
  LargeGather(std::shared_ptr<Group> group, const Collective &collective)
      : Work(group), exchange(group), source(collective.source),
        bytes(collective.elements * elementSize(collective.type)), target(collective.target + group->rank * bytes) {}

  absl::Status prepare(const Collective &collective) {
    std::vector<Message> sends, receives;
    for (int peer = 0; peer < group->size; ++peer)
      if (peer != group->rank) {
        sends.push_back({peer, const_cast<std::byte *>(source), bytes});
        receives.push_back({peer, collective.target + peer * bytes, bytes});
      }
    return exchange.prepare(sends, receives);
  }
  absl::Status start() override {
    if (source != target)
      std::memcpy(target, source, static_cast<size_t>(bytes));
    return exchange.start();
  }
  absl::Status ask(bool &isDone) override { return exchange.ask(isDone); }

private:
  Exchange exchange;
  const std::byte *source;
  int64_t bytes;
  std::byte *target;
};

class MpiTransport : public Transport {
public:
  explicit MpiTransport(std::shared_ptr<Group> group) : group(std::move(group)) {}

  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareExchange(std::vector<Message> sends,
                                                              std::vector<Message> receives) override {
    auto exchange = std::make_unique<Exchange>(group);
    if (absl::Status status = exchange->prepare(sends, receives); !status.ok())
      return status;
    return exchange;
  }

  bool hasReduction(layout::ReductionKind, ElementType) const override { return false; }

  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareCollective(const Collective &collective) override {
    if (collective.kind != layout::ExchangeKind::AllGather)
      return absl::InternalError("transport mpi has no collectives but gathers");
    int64_t bytes = collective.elements * elementSize(collective.type);
    if (bytes <= mostBytes)
      return std::make_unique<Gather>(group, collective);
    auto gather = std::make_unique<LargeGather>(group, collective);
    if (absl::Status status = gather->prepare(collective); !status.ok())
      return status;
    return gather;
  }

  absl::StatusOr<std::unique_ptr<Transport>> split(const std::vector<int> &members) override {
    std::lock_guard lock(callMutex());
    MPI_Group all = MPI_GROUP_NULL, part = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    absl::Cleanup free = [&] {
      for (MPI_Group *each : {&all, &part})
        if (*each != MPI_GROUP_NULL)
          MPI_Group_free(each);
    };
    absl::Status status = mpi::check(MPI_Comm_group(group->handle, &all), "MPI_Comm_group");
    if (status.ok())
      status =
          mpi::check(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &part), "MPI_Group_incl");
    if (status.ok())
      status = mpi::check(MPI_Comm_create_group(group->handle, part, /*tag=*/0, &made), "MPI_Comm_create_group");
    if (!status.ok())
      return status;
    return makeTransport(std::make_shared<Group>(made));
  }

  absl::Status check() override { return absl::OkStatus(); } // MPI says it where it is called.
  void abort() override {
    noteFailure();
    group->isOver = true;
  }
  bool holdsMemory() const override { return group->isHeld; }

private:
  std::shared_ptr<Group> group;
};

} // namespace

Group::Group(MPI_Comm made) : handle(made) {
  MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
  MPI_Comm_rank(handle, &rank);
  MPI_Comm_size(handle, &size);
}

Group::~Group() {
  std::lock_guard lock(callMutex());
  int hasEnded = 0;
  if (!isOver && !isHeld && MPI_Finalized(&hasEnded) == MPI_SUCCESS && !hasEnded)
    MPI_Comm_free(&handle);
}

std::unique_ptr<Transport> mpi::makeTransport(std::shared_ptr<Group> group) {
  return std::make_unique<MpiTransport>(std::move(group));
}
