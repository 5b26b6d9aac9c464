//===- RendezvousMessages.cpp - What processes say to each other ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RendezvousMessages.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace dovetail::runtime;
using Clock = std::chrono::steady_clock;

namespace {

/// How long a rank may take between two parts of a message.
constexpr auto patience = std::chrono::seconds(5);
/// Begins greetings. Its last digits are the version of the messages.
constexpr uint64_t magic = 0xD07E'7A11'0000'0003;

void appendText(std::string &text, const std::string &value) {
  append(text, value.size());
  text += value;
}

/// Empty, with `at` behind the end, if there is less.
std::string takeText(const std::string &text, size_t &at) {
  uint64_t size = take(text, at);
  if (at > text.size() || size > text.size() - at) {
    at = text.size() + 1;
    return {};
  }
  at += size;
  return text.substr(at - size, size);
}

void appendPlace(std::string &text, const Place &place) {
  append(text, place.rank);
  appendText(text, place.addresses);
  append(text, place.port);
}

Place takePlace(const std::string &text, size_t &at) {
  Place place;
  place.rank = take(text, at);
  place.addresses = takeText(text, at);
  place.port = take(text, at);
  return place;
}

} // namespace

std::string dovetail::runtime::pack(const Hello &hello) {
  std::string payload;
  append(payload, magic);
  appendText(payload, hello.token);
  append(payload, hello.rank);
  append(payload, hello.size);
  appendText(payload, hello.host);
  appendText(payload, hello.job);
  append(payload, hello.to);
  appendPlace(payload, hello.place);
  return payload;
}

std::optional<Hello> dovetail::runtime::unpackHello(const std::string &payload) {
  size_t at = 0;
  if (take(payload, at) != magic)
    return std::nullopt;
  Hello hello;
  hello.token = takeText(payload, at);
  hello.rank = take(payload, at);
  hello.size = take(payload, at);
  hello.host = takeText(payload, at);
  hello.job = takeText(payload, at);
  hello.to = take(payload, at);
  hello.place = takePlace(payload, at);
  if (at != payload.size())
    return std::nullopt;
  return hello;
}

std::string dovetail::runtime::pack(const Place &place) {
  std::string payload;
  appendPlace(payload, place);
  return payload;
}

std::optional<Place> dovetail::runtime::unpackPlace(const std::string &payload) {
  size_t at = 0;
  Place place = takePlace(payload, at);
  if (at != payload.size())
    return std::nullopt;
  return place;
}

void Progress::add(const Progress &others) {
  done += others.done;
  busy = busy || others.busy;
  if (others.least == least) {
    behind += others.behind;
  } else if (others.least < least) {
    least = others.least;
    behind = others.behind;
    rank = others.rank;
    host = others.host;
    step = others.step;
  }
}

std::string dovetail::runtime::pack(const Progress &progress) {
  std::string payload;
  for (uint64_t value :
       {progress.done, static_cast<uint64_t>(progress.busy), progress.least, progress.behind, progress.rank})
    append(payload, value);
  appendText(payload, progress.host);
  appendText(payload, progress.step);
  return payload;
}

std::optional<Progress> dovetail::runtime::unpackProgress(const std::string &payload) {
  size_t at = 0;
  Progress progress;
  progress.done = take(payload, at);
  progress.busy = take(payload, at) != 0;
  progress.least = take(payload, at);
  progress.behind = take(payload, at);
  progress.rank = take(payload, at);
  progress.host = takeText(payload, at);
  progress.step = takeText(payload, at);
  if (at != payload.size())
    return std::nullopt;
  return progress;
}

std::string dovetail::runtime::hostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0)
    return "unknown";
  return name;
}

int dovetail::runtime::millisecondsUntil(Clock::time_point time) {
  auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(time - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(rest, 0, 1 << 30));
}

void dovetail::runtime::append(std::string &text, uint64_t value) {
  text.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

uint64_t dovetail::runtime::take(const std::string &text, size_t &at) {
  uint64_t value = 0;
  if (at + sizeof(value) <= text.size())
    std::memcpy(&value, text.data() + at, sizeof(value));
  at += sizeof(value);
  return value;
}

std::string dovetail::runtime::packFailure(const absl::Status &status) {
  std::string payload;
  append(payload, static_cast<uint64_t>(status.code()));
  return payload + std::string(status.message());
}

absl::Status dovetail::runtime::unpackFailure(const std::string &payload) {
  size_t at = 0;
  auto code = static_cast<absl::StatusCode>(take(payload, at));
  if (code == absl::StatusCode::kOk)
    return absl::UnavailableError("another rank has failed without a message");
  return absl::Status(code, payload.substr(std::min(at, payload.size())));
}

bool dovetail::runtime::sendMessage(int socket, uint32_t type, const std::string &payload) {
  uint32_t header[2] = {type, static_cast<uint32_t>(payload.size())};
  std::string bytes(reinterpret_cast<const char *>(header), sizeof(header));
  bytes += payload;
  for (size_t sent = 0; sent < bytes.size();) {
    ssize_t count = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

absl::Status dovetail::runtime::receiveMessage(int socket, uint32_t &type, std::string &payload, uint32_t mostBytes,
                                               const std::function<void()> &betweenParts) {
  auto read = [&](char *bytes, size_t size) -> absl::Status {
    for (size_t got = 0; got < size;) {
      pollfd entry{socket, POLLIN, 0};
      int ready = ::poll(&entry, 1, millisecondsUntil(Clock::now() + patience));
      if (ready < 0 && errno == EINTR)
        continue;
      if (ready <= 0)
        return absl::DeadlineExceededError("no answer in time");
      ssize_t count = ::recv(socket, bytes + got, size - got, 0);
      if (count < 0 && errno == EINTR)
        continue;
      if (count <= 0)
        return absl::UnavailableError("the connection ended");
      got += static_cast<size_t>(count);
    }
    return absl::OkStatus();
  };
  uint32_t header[2];
  if (absl::Status status = read(reinterpret_cast<char *>(header), sizeof(header)); !status.ok())
    return status;
  if (header[1] > mostBytes)
    return absl::UnavailableError("another program answers there");
  type = header[0];
  constexpr size_t part = 1 << 20;
  payload.resize(header[1]);
  for (size_t got = 0; got < payload.size(); got += part) {
    if (absl::Status status = read(payload.data() + got, std::min(part, payload.size() - got)); !status.ok())
      return status;
    if (betweenParts)
      betweenParts();
  }
  return absl::OkStatus();
}
