//===- Npz.cpp - Where arrays lie in archives ---===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Npz.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <limits>
#include <optional>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

using Read = absl::FunctionRef<absl::Status(int64_t offset, std::byte *target, int64_t bytes)>;

/// What records begin with, and how long they are without what follows.
constexpr uint64_t localHeader = 0x04034b50, centralHeader = 0x02014b50, endRecord = 0x06054b50,
                   endRecord64 = 0x06064b50, endLocator64 = 0x07064b50;
constexpr int64_t localBytes = 30, centralBytes = 46, endBytes = 22, endBytes64 = 56, locatorBytes64 = 20,
                  mostComment = 0xffff;
/// Stand for numbers that are elsewhere, with 64 bits.
constexpr uint64_t full16 = 0xffff, full32 = 0xffffffff;

/// The number of so many bytes at `offset`, the least first.
uint64_t numberAt(const std::vector<std::byte> &bytes, int64_t offset, int count) {
  uint64_t number = 0;
  for (int i = count - 1; i >= 0; --i)
    number = number << 8 | std::to_integer<uint64_t>(bytes[offset + i]);
  return number;
}

absl::Status damaged(const char *what) { return absl::OutOfRangeError(absl::StrCat("the archive is damaged: ", what)); }

absl::StatusOr<std::vector<std::byte>> readBytes(Read read, int64_t size, uint64_t offset, uint64_t count) {
  if (offset > static_cast<uint64_t>(size) || count > static_cast<uint64_t>(size) - offset)
    return damaged("it ends too early");
  std::vector<std::byte> bytes(count);
  if (absl::Status status = read(static_cast<int64_t>(offset), bytes.data(), static_cast<int64_t>(count)); !status.ok())
    return status;
  return bytes;
}

/// Where the list of members is.
struct Directory {
  uint64_t offset = 0, bytes = 0, entries = 0;
};

absl::StatusOr<Directory> findDirectory(int64_t size, Read read) {
  int64_t tail = std::min(size, endBytes + mostComment + locatorBytes64);
  absl::StatusOr<std::vector<std::byte>> bytes = readBytes(read, size, size - tail, tail);
  if (!bytes.ok())
    return bytes.status();
  // The last one, of which the comment fills the rest.
  int64_t end = tail - endBytes;
  while (end >= 0 && (numberAt(*bytes, end, 4) != endRecord ||
                      end + endBytes + static_cast<int64_t>(numberAt(*bytes, end + 20, 2)) != tail))
    --end;
  if (end < 0)
    return absl::OutOfRangeError("the file is not a .npz archive, or was cut short");
  Directory result{numberAt(*bytes, end + 16, 4), numberAt(*bytes, end + 12, 4), numberAt(*bytes, end + 10, 2)};
  if (result.offset != full32 && result.bytes != full32 && result.entries != full16)
    return result;
  int64_t locator = end - locatorBytes64;
  if (locator < 0 || numberAt(*bytes, locator, 4) != endLocator64)
    return result; // There are just so many.
  absl::StatusOr<std::vector<std::byte>> record = readBytes(read, size, numberAt(*bytes, locator + 8, 8), endBytes64);
  if (!record.ok())
    return record.status();
  if (numberAt(*record, 0, 4) != endRecord64)
    return damaged("its end is not where it should be");
  return Directory{numberAt(*record, 48, 8), numberAt(*record, 40, 8), numberAt(*record, 32, 8)};
}

/// The numbers of 64 bits that take the place of `full32`, in this order, in the extra fields at `offset`.
absl::Status widen(const std::vector<std::byte> &bytes, int64_t offset, int64_t count,
                   std::initializer_list<uint64_t *> numbers) {
  int64_t end = offset + count;
  for (int64_t field = offset; field + 4 <= end;) {
    int64_t at = field + 4, next = at + static_cast<int64_t>(numberAt(bytes, field + 2, 2));
    if (next > end)
      return damaged("a field of a member is too long");
    if (numberAt(bytes, field, 2) == 1)
      for (uint64_t *number : numbers) {
        if (*number != full32)
          continue;
        if (at + 8 > next)
          return damaged("a number of a member is missing");
        *number = numberAt(bytes, at, 8);
        at += 8;
      }
    field = next;
  }
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<std::vector<NpzMember>> tools::listNpz(int64_t size, Read read) {
  absl::StatusOr<Directory> directory = findDirectory(size, read);
  if (!directory.ok())
    return directory.status();
  absl::StatusOr<std::vector<std::byte>> list = readBytes(read, size, directory->offset, directory->bytes);
  if (!list.ok())
    return list.status();
  std::vector<NpzMember> members;
  int64_t at = 0, end = static_cast<int64_t>(list->size());
  for (uint64_t i = 0; i < directory->entries; ++i) {
    if (at + centralBytes > end || numberAt(*list, at, 4) != centralHeader)
      return damaged("its list of members is too short");
    int64_t name = static_cast<int64_t>(numberAt(*list, at + 28, 2)),
            extra = static_cast<int64_t>(numberAt(*list, at + 30, 2)),
            comment = static_cast<int64_t>(numberAt(*list, at + 32, 2));
    if (at + centralBytes + name + extra + comment > end)
      return damaged("its list of members is too short");
    uint64_t packed = numberAt(*list, at + 20, 4), bytes = numberAt(*list, at + 24, 4),
             local = numberAt(*list, at + 42, 4);
    if (absl::Status status = widen(*list, at + centralBytes + name, extra, {&bytes, &packed, &local}); !status.ok())
      return status;
    NpzMember member;
    absl::string_view text(reinterpret_cast<const char *>(list->data() + at + centralBytes), name);
    member.name = std::string(absl::StripSuffix(text, ".npy"));
    // The first bit of the flags says that it is encrypted.
    member.isStored = numberAt(*list, at + 10, 2) == 0 && (numberAt(*list, at + 8, 2) & 1) == 0;
    // Names and fields there may be others than here.
    absl::StatusOr<std::vector<std::byte>> header = readBytes(read, size, local, localBytes);
    if (!header.ok())
      return header.status();
    uint64_t begin = local + localBytes + numberAt(*header, 26, 2) + numberAt(*header, 28, 2);
    if (numberAt(*header, 0, 4) != localHeader || (member.isStored && bytes != packed) ||
        begin > static_cast<uint64_t>(size) || packed > static_cast<uint64_t>(size) - begin)
      return damaged("a member is not where it should be");
    member.begin = static_cast<int64_t>(begin);
    member.bytes = static_cast<int64_t>(packed);
    members.push_back(std::move(member));
    at += centralBytes + name + extra + comment;
  }
  return members;
}
