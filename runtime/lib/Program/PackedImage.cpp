//===- PackedImage.cpp - Packed weights in artifacts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackedImage.h"

#include "dovetail/runtime/ArtifactFormat.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

using namespace dovetail::runtime;

std::vector<std::byte> PackedImage::serialize() const {
  std::vector<uint64_t> numbers = {entries.size(), static_cast<uint64_t>(threads), machine.size()};
  std::string texts = machine;
  uint64_t begin = (numbers.size() + 3 * entries.size()) * sizeof(uint64_t) + machine.size();
  for (const auto &[key, bytes] : entries)
    begin += key.size();
  std::vector<uint64_t> sizes = {begin};
  for (const auto &[key, bytes] : entries)
    sizes.push_back(bytes.size());
  std::vector<uint64_t> offsets = pieceOffsets(sizes);
  size_t index = 0;
  for (const auto &[key, bytes] : entries) {
    numbers.insert(numbers.end(), {key.size(), offsets[++index], bytes.size()});
    texts += key;
  }
  std::vector<std::byte> result(offsets.back() + sizes.back());
  std::memcpy(result.data(), numbers.data(), numbers.size() * sizeof(uint64_t));
  std::memcpy(result.data() + numbers.size() * sizeof(uint64_t), texts.data(), texts.size());
  index = 0;
  for (const auto &[key, bytes] : entries)
    if (uint64_t offset = offsets[++index]; !bytes.empty())
      std::memcpy(result.data() + offset, bytes.data(), bytes.size());
  return result;
}

absl::StatusOr<PackedImage> PackedImage::parse(absl::Span<const std::byte> bytes,
                                               absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> check) {
  const absl::Status damaged = absl::DataLossError("damaged artifact: the table of packed weights is wrong");
  uint64_t position = 0;
  auto checkNext = [&](uint64_t size) {
    return check(bytes.subspan(position, std::min<uint64_t>(size, bytes.size() - position)));
  };
  auto read = [&](uint64_t &number) {
    if (bytes.size() - position < sizeof(number))
      return false;
    std::memcpy(&number, bytes.data() + position, sizeof(number));
    position += sizeof(number);
    return true;
  };
  if (absl::Status status = checkNext(3 * sizeof(uint64_t)); !status.ok())
    return status;
  uint64_t count, threads, length;
  if (!read(count) || !read(threads) || !read(length) || threads > INT32_MAX ||
      count > bytes.size() / (3 * sizeof(uint64_t)))
    return damaged;
  struct Row {
    uint64_t length, offset, size;
  };
  if (absl::Status status = checkNext(count * sizeof(Row)); !status.ok())
    return status;
  std::vector<Row> rows(count);
  for (Row &row : rows)
    if (!read(row.length) || !read(row.offset) || !read(row.size))
      return damaged;
  auto text = [&](uint64_t size) -> std::string {
    std::string result(reinterpret_cast<const char *>(bytes.data()) + position, size);
    position += size;
    return result;
  };
  PackedImage image;
  image.threads = static_cast<int>(threads);
  if (length > bytes.size() - position)
    return damaged;
  uint64_t texts = length;
  for (const Row &row : rows)
    texts += std::min<uint64_t>(row.length, bytes.size());
  if (absl::Status status = checkNext(texts); !status.ok())
    return status;
  image.machine = text(length);
  for (const Row &row : rows) {
    if (row.length > bytes.size() - position)
      return damaged;
    std::string key = text(row.length);
    if (row.offset % pieceAlignment != 0 || row.offset > bytes.size() || row.size > bytes.size() - row.offset ||
        !image.entries.emplace(std::move(key), bytes.subspan(row.offset, row.size)).second)
      return damaged;
  }
  return image;
}
