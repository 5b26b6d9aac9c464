//===- MessageCommunicator.cpp - Ranks as processes ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MessageCommunicator.h"

#include "MessageChannel.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <limits>
#include <map>
#include <string_view>
#include <thread>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

/// The transports of a rank, which a failure of any rank ends.
class Transports : public std::enable_shared_from_this<Transports> {
public:
  Transport &add(std::unique_ptr<Transport> transport) {
    std::lock_guard lock(mutex);
    all.push_back(std::move(transport));
    if (isOver)
      all.back()->abort();
    return *all.back();
  }
  void end() {
    std::lock_guard lock(mutex);
    if (std::exchange(isOver, true))
      return;
    // One may wait for work in progress, which ends with another one only.
    for (const std::unique_ptr<Transport> &transport : all) {
      ++ending;
      std::thread([self = shared_from_this(), ended = transport.get()] {
        ended->abort();
        std::lock_guard lock(self->mutex);
        --self->ending;
        self->someEnded.notify_all();
      }).detach();
    }
  }
  /// Waits until what `end` began is done: when the process exits, libraries clean up below it. Not for ever, as an end
  /// may wait for what never comes.
  void waitForEnd() {
    std::unique_lock lock(mutex);
    someEnded.wait_for(lock, std::chrono::seconds(5), [&] { return ending == 0; });
  }
  absl::Status check() {
    std::lock_guard lock(mutex);
    for (size_t i = 0; i < all.size() && !isOver; ++i)
      if (absl::Status status = all[i]->check(); !status.ok())
        return status;
    return absl::OkStatus();
  }

  bool holdMemory() {
    std::lock_guard lock(mutex);
    return std::any_of(all.begin(), all.end(), [](const auto &transport) { return transport->holdsMemory(); });
  }

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<Transport>> all;
  bool isOver = false;
  int ending = 0; ///< Threads that end one.
  std::condition_variable someEnded;
};

/// Nobody knows when messages end that are written there.
void keepForEver(std::vector<std::shared_ptr<void>> memory) {
  static std::mutex mutex;
  static auto *kept = new std::vector<std::shared_ptr<void>>;
  std::lock_guard lock(mutex);
  std::move(memory.begin(), memory.end(), std::back_inserter(*kept));
}

class MessageCommunicator : public ProcessCommunicator {
public:
  explicit MessageCommunicator(LaunchEnvironment environment) : environment(std::move(environment)) {}

  ~MessageCommunicator() override {
    {
      std::lock_guard lock(pollMutex);
      stopping = true;
    }
    pollSignal.notify_all();
    if (poller.joinable())
      poller.join();
    // The last word to the others; then nothing calls back any more.
    rendezvous.reset();
    transports->waitForEnd();
    if (transports->holdMemory())
      keepForEver(std::move(openChannels.memory));
  }

  /// Meets the others, and begins to look after them.
  absl::Status begin(uint64_t program, std::chrono::milliseconds timeout, const TransportChoice &transport,
                     std::unique_ptr<RendezvousEntrance> entrance);

  int rank() const override { return environment.rank; }
  int size() const override { return environment.size; }

  absl::StatusOr<std::unique_ptr<Channel>> open(ChannelDescription description) override {
    auto channel = std::make_unique<MessageChannel>(*rendezvous, openChannels, rank(), std::move(description));
    channels.push_back(channel.get());
    return channel;
  }
  void keep(std::shared_ptr<void> kept) override { openChannels.memory.push_back(std::move(kept)); }
  void offer(std::byte *memory, int64_t bytes) override { offers.push_back({memory, bytes}); }
  absl::Status connect() override;
  int64_t messageBytes() const override { return openChannels.stagingBytes; }
  absl::StatusOr<std::unique_ptr<Move>> record(Mover &mover, absl::FunctionRef<absl::Status()> issue) override;
  absl::StatusOr<bool> decide(bool decision) override {
    absl::StatusOr<std::vector<std::string>> given = rendezvous->allGather(decision ? "1" : "0");
    return given.ok() ? absl::StatusOr<bool>(given->front() == "1") : given.status();
  }
  void setBusy(bool busy) override { rendezvous->setBusy(busy); }
  void enterStep(const char *name) override {
    rendezvous->enterStep(name);
    openChannels.progress();
  }
  absl::Status state() const override { return rendezvous->failure(); }
  absl::Status abort(const absl::Status &status) override {
    // When a rank is lost, what connects and computes fails on the others first.
    absl::Status reason = absl::IsUnavailable(status) ? rendezvous->reason(status) : status;
    rendezvous->fail(ofRank(rank(), reason));
    return state();
  }
  absl::StatusOr<std::vector<std::string>> gather(std::string own) override {
    return rendezvous->gather(std::move(own));
  }
  absl::StatusOr<std::vector<std::string>> share(std::string own) override {
    return rendezvous->allGather(std::move(own));
  }
  absl::Status meet() override { return rendezvous->allGather("").status(); }

private:
  absl::Status joinGroup(const TransportChoice &transport, const std::string &name, std::chrono::milliseconds timeout);
  /// Finds out who reads each other's memory in the channels that are open by now.
  absl::Status findNeighbours();
  /// The transport for the collective of a channel; null where messages do the exchange.
  absl::StatusOr<Transport *> groupTransport(const ChannelDescription &channel);
  void poll();

  LaunchEnvironment environment;
  std::unique_ptr<Rendezvous> rendezvous;
  std::shared_ptr<Transports> transports = std::make_shared<Transports>();
  Transport *world = nullptr;
  /// By this rank's group, which says what groups the others are divided into: those along the same axes of the mesh.
  std::map<std::vector<int>, Transport *> groups;
  std::vector<MessageChannel *> channels; ///< Until `connect`.
  OpenChannels openChannels;
  std::vector<ByteRange> offers; ///< Until `connect`.
  std::thread poller;
  std::mutex pollMutex;
  std::condition_variable pollSignal;
  bool stopping = false;
};

constexpr auto pollPeriod = std::chrono::milliseconds(100);
/// How many bytes of its memory a process shares with others of its machine at most.
constexpr const char *sharedMemoryVariable = "DOVETAIL_SHARED_MEMORY";

bool mayShareDevice(const TransportChoice &transport) {
  const char *variable = transport.sharingVariable, *value = variable ? std::getenv(variable) : nullptr;
  return !variable || (value && std::string_view(value) == "1");
}

/// Of the name of a device that follows `skipped` bytes and a byte with its length.
size_t deviceLength(const std::string &given, size_t skipped) {
  return given.size() > skipped ? static_cast<unsigned char>(given[skipped]) : 0;
}

/// INVALID_ARGUMENT if two ranks have a device that they may not share. See `deviceLength`.
absl::Status checkDevices(const TransportChoice &transport, const std::vector<std::string> &given, size_t skipped) {
  std::map<std::string, int> owners;
  for (int rank = 0; rank < static_cast<int>(given.size()); ++rank) {
    size_t length = deviceLength(given[rank], skipped);
    if (length == 0)
      continue;
    std::string device = given[rank].substr(skipped + 1, length);
    auto [owner, isNew] = owners.try_emplace(device, rank);
    if (!isNew)
      return absl::InvalidArgumentError(absl::StrCat(
          "ranks ", owner->second, " and ", rank, " have the same device, ", device, ", and ", transport.name,
          " needs one for each rank; start no more processes than devices, choose others "
          "with --device, or set ",
          transport.sharingVariable, "=1 if this version of it has that"));
  }
  return absl::OkStatus();
}

} // namespace

absl::Status MessageCommunicator::begin(uint64_t program, std::chrono::milliseconds timeout,
                                        const TransportChoice &transport,
                                        std::unique_ptr<RendezvousEntrance> entrance) {
  absl::StatusOr<std::unique_ptr<Rendezvous>> met = Rendezvous::connect(environment, timeout, std::move(entrance));
  if (!met.ok())
    return met.status();
  rendezvous = *std::move(met);
  rendezvous->watch([transports = transports](const absl::Status &) { transports->end(); });
  std::string name;
  if (rank() == 0) {
    absl::StatusOr<std::string> made = transport.nameGroup();
    if (!made.ok())
      return abort(made.status());
    name = *std::move(made);
  }
  // After the checksum, rank 0 gives the group's name, and each rank a device that no other may have.
  const std::string checksum = absl::StrCat(absl::Hex(program, absl::kZeroPad16));
  std::string device = mayShareDevice(transport) ? "" : transport.device;
  device.resize(std::min(device.size(), size_t(255)));
  device.insert(0, 1, static_cast<char>(device.size()));
  absl::StatusOr<std::vector<std::string>> given = rendezvous->allGather(absl::StrCat(checksum, device, name));
  if (!given.ok())
    return given.status();
  for (int other = 1; other < size(); ++other)
    if ((*given)[other].substr(0, checksum.size()) != (*given)[0].substr(0, checksum.size()))
      return abort(absl::FailedPreconditionError(
          absl::StrCat("rank ", other, " has another artifact than rank 0; give all ranks the same file")));
  if (absl::Status status = checkDevices(transport, *given, checksum.size()); !status.ok())
    return abort(status);
  size_t nameBegin = checksum.size() + 1 + deviceLength((*given)[0], checksum.size());
  name = nameBegin <= (*given)[0].size() ? (*given)[0].substr(nameBegin) : "";
  if (absl::Status status = joinGroup(transport, name, timeout); !status.ok())
    return abort(status);
  poller = std::thread([this] { poll(); });
  return absl::OkStatus();
}

absl::Status MessageCommunicator::joinGroup(const TransportChoice &transport, const std::string &name,
                                            std::chrono::milliseconds timeout) {
  // Plug-ins wait for the others without end: a thread of its own can be left behind.
  struct Attempt {
    std::mutex mutex;
    std::condition_variable done;
    absl::StatusOr<std::unique_ptr<Transport>> result = absl::UnknownError("");
    bool isDone = false;
  };
  auto attempt = std::make_shared<Attempt>();
  std::thread([attempt, name, join = transport.join] {
    absl::StatusOr<std::unique_ptr<Transport>> result = join(name);
    std::lock_guard lock(attempt->mutex);
    attempt->result = std::move(result);
    attempt->isDone = true;
    attempt->done.notify_all();
  }).detach();
  rendezvous->enterStep("start-up");
  auto deadline = std::chrono::steady_clock::now() + timeout;
  std::unique_lock lock(attempt->mutex);
  while (!attempt->isDone) {
    attempt->done.wait_for(lock, pollPeriod);
    if (absl::Status status = state(); !status.ok() && !attempt->isDone)
      return status;
    if (!attempt->isDone && std::chrono::steady_clock::now() > deadline)
      return absl::DeadlineExceededError(absl::StrCat("rank ", rank(), ": ", transport.name, " did not connect ",
                                                      size(), " ranks within ", timeout.count() / 1000.0,
                                                      " s; allow more time (--timeout) or look after the network"));
  }
  if (!attempt->result.ok())
    return attempt->result.status();
  world = &transports->add(*std::move(attempt->result));
  return absl::OkStatus();
}

absl::Status MessageCommunicator::findNeighbours() {
  int64_t mostBytes = std::numeric_limits<int64_t>::max();
  if (const char *value = std::getenv(sharedMemoryVariable);
      value && *value && (!absl::SimpleAtoi(value, &mostBytes) || mostBytes < 0))
    return absl::InvalidArgumentError(
        absl::StrCat(sharedMemoryVariable, " is '", value, "'; it is a number of bytes, 0 for messages only"));
  std::vector<const ChannelDescription *> descriptions;
  for (const MessageChannel *channel : channels)
    descriptions.push_back(&channel->getDescription());
  absl::StatusOr<std::shared_ptr<Neighbours>> neighbours =
      Neighbours::find(*rendezvous, rank(), std::exchange(offers, {}), descriptions, mostBytes);
  if (!neighbours.ok())
    return neighbours.status();
  openChannels.areNear = *neighbours != nullptr;
  for (size_t i = 0; i < channels.size(); ++i)
    channels[i]->setNeighbours(*neighbours, i);
  return absl::OkStatus();
}

absl::Status MessageCommunicator::connect() {
  // Those that come later are for what is sent once.
  if (!offers.empty() && size() > 1)
    if (absl::Status status = findNeighbours(); !status.ok())
      return status;
  for (MessageChannel *channel : channels) {
    absl::StatusOr<Transport *> group =
        channel->isNear() ? absl::StatusOr<Transport *>(nullptr) : groupTransport(channel->getDescription());
    if (!group.ok())
      return group.status();
    absl::Status status = *group ? channel->prepareCollective(**group) : channel->prepareMessages(size(), *world);
    if (!status.ok())
      return status;
  }
  openChannels.underWay.reserve(openChannels.count);
  channels.clear();
  return state();
}

absl::StatusOr<std::unique_ptr<Move>> MessageCommunicator::record(Mover &mover,
                                                                  absl::FunctionRef<absl::Status()> issue) {
  if (!mover.canRecord())
    return nullptr;
  if (absl::Status status = mover.beginRecording(); !status.ok())
    return status;
  // Also if the host's memory is at an end.
  absl::Cleanup end = [&] { (void)mover.endRecording(); };
  if (absl::Status status = issue(); !status.ok())
    return status;
  std::move(end).Cancel();
  return mover.endRecording();
}

absl::StatusOr<Transport *> MessageCommunicator::groupTransport(const ChannelDescription &channel) {
  if (!world->hasCollective(channel.kind, channel.moves[0].reduction, channel.moves[0].source.type))
    return nullptr;
  const std::vector<int> &members = channel.group.members;
  if (static_cast<int>(members.size()) == size())
    return world;
  auto [entry, isNew] = groups.try_emplace(members, nullptr);
  if (isNew) {
    // All ranks come here for the same groups, in the same order.
    absl::StatusOr<std::unique_ptr<Transport>> made = world->split(members);
    if (!made.ok())
      return made.status();
    entry->second = &transports->add(*std::move(made));
  }
  return entry->second;
}

/// Errors of the network come to light here.
void MessageCommunicator::poll() {
  std::unique_lock lock(pollMutex);
  while (!pollSignal.wait_for(lock, pollPeriod, [&] { return stopping; })) {
    absl::Status status = transports->check();
    if (!status.ok()) {
      (void)abort(status);
      return;
    }
  }
}

absl::StatusOr<std::unique_ptr<ProcessCommunicator>>
dovetail::runtime::connectProcess(const LaunchEnvironment &environment, uint64_t program,
                                  std::chrono::milliseconds timeout, const TransportChoice &transport,
                                  std::unique_ptr<RendezvousEntrance> entrance) {
  auto communicator = std::make_unique<MessageCommunicator>(environment);
  absl::Status status = communicator->begin(program, timeout, transport, std::move(entrance));
  if (!status.ok())
    return status;
  return communicator;
}
