//===- Npz.cpp - Archives of arrays ---------------------------------------===//
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
#include <zlib.h>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

using Read = NpzRead;

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
    member.method = static_cast<int>(numberAt(*list, at + 10, 2));
    member.isEncrypted = (numberAt(*list, at + 8, 2) & 1) != 0;
    member.checksum = static_cast<uint32_t>(numberAt(*list, at + 16, 4));
    if (bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return damaged("a member is too long");
    member.unpacked = static_cast<int64_t>(bytes);
    // Names and fields there may be others than here.
    absl::StatusOr<std::vector<std::byte>> header = readBytes(read, size, local, localBytes);
    if (!header.ok())
      return header.status();
    uint64_t begin = local + localBytes + numberAt(*header, 26, 2) + numberAt(*header, 28, 2);
    if (numberAt(*header, 0, 4) != localHeader || (member.isStored() && bytes != packed) ||
        begin > static_cast<uint64_t>(size) || packed > static_cast<uint64_t>(size) - begin)
      return damaged("a member is not where it should be");
    member.begin = static_cast<int64_t>(begin);
    member.bytes = static_cast<int64_t>(packed);
    members.push_back(std::move(member));
    at += centralBytes + name + extra + comment;
  }
  return members;
}

/// Inflates what `read` gives. The size that the archive states is a claim: no more is allocated than arrives.
static absl::Status inflateMember(const NpzMember &member, Read read, std::vector<std::byte> &bytes) {
  z_stream stream = {};
  // Without a header of its own.
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return absl::ResourceExhaustedError("there is not enough memory to read the archive");
  absl::Status status;
  std::vector<std::byte> packed;
  int64_t taken = 0, used = 0;
  int code = Z_OK;
  constexpr int64_t piece = 1 << 20;
  while (status.ok() && code == Z_OK) {
    if (stream.avail_in == 0 && taken < member.bytes) {
      packed.resize(std::min(piece, member.bytes - taken));
      status = read(member.begin + taken, packed.data(), static_cast<int64_t>(packed.size()));
      if (!status.ok())
        break;
      taken += static_cast<int64_t>(packed.size());
      stream.next_in = reinterpret_cast<Bytef *>(packed.data());
      stream.avail_in = static_cast<uInt>(packed.size());
    }
    // One byte more than there should be, which must stay empty.
    int64_t room = std::min(std::max(piece, used), member.unpacked + 1 - used);
    if (room <= 0)
      break;
    bytes.resize(used + room);
    room = std::min<int64_t>(room, std::numeric_limits<uInt>::max());
    stream.next_out = reinterpret_cast<Bytef *>(bytes.data() + used);
    stream.avail_out = static_cast<uInt>(room);
    code = ::inflate(&stream, Z_NO_FLUSH);
    used += room - stream.avail_out;
  }
  ::inflateEnd(&stream);
  if (!status.ok())
    return status;
  if (code != Z_STREAM_END || used != member.unpacked)
    return damaged("a member has other bytes than it should have");
  bytes.resize(used);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::byte>> tools::readNpzMember(const NpzMember &member, Read read) {
  if (member.isEncrypted)
    return absl::OutOfRangeError("it is encrypted, and archives of NumPy's are not");
  if (member.method != 0 && member.method != Z_DEFLATED)
    return absl::OutOfRangeError(absl::StrCat("it is compressed by method ", member.method, ", and not by deflate"));
  std::vector<std::byte> bytes;
  absl::Status status;
  if (member.method == 0) {
    bytes.resize(member.bytes);
    status = read(member.begin, bytes.data(), member.bytes);
  } else {
    status = inflateMember(member, read, bytes);
  }
  if (!status.ok())
    return status;
  if (NpzRecords::addChecksum(0, bytes.data(), bytes.size()) != member.checksum)
    return damaged("a member has another checksum than it should have");
  return bytes;
}

uint32_t NpzRecords::addChecksum(uint32_t before, const void *bytes, size_t count) {
  return static_cast<uint32_t>(::crc32_z(before, static_cast<const Bytef *>(bytes), count));
}

/// Adds a number of so many bytes, the least first.
static void add(std::string &text, uint64_t number, int count) {
  for (int i = 0; i < count; ++i, number >>= 8)
    text += static_cast<char>(number & 0xff);
}

/// Versions of readers, the flag that names are UTF-8, and the first day that there is.
static constexpr uint64_t plainVersion = 20, version64 = 45, flagUtf8 = 0x800, firstDate = 0x21;

/// The part that the records of a member in the archive and in the directory have in common.
static std::string describeMember(const std::string &file, uint64_t bytes, uint32_t checksum, size_t extra, bool is64) {
  std::string text;
  add(text, is64 ? version64 : plainVersion, 2);
  add(text, flagUtf8, 2);
  add(text, 0, 2);
  add(text, 0, 2);
  add(text, firstDate, 2);
  add(text, checksum, 4);
  for (int i = 0; i < 2; ++i)
    add(text, std::min(bytes, full32), 4);
  add(text, file.size(), 2);
  add(text, extra, 2);
  return text;
}

std::string NpzRecords::beginMember(const std::string &file, uint64_t bytes, uint32_t checksum) {
  bool isLong = bytes >= full32, isFar = offset >= full32;
  std::string sizes, places;
  if (isLong)
    for (int i = 0; i < 2; ++i)
      add(sizes, bytes, 8);
  places = sizes;
  if (isFar)
    add(places, offset, 8);
  for (std::string *numbers : {&sizes, &places})
    if (!numbers->empty()) {
      std::string field;
      add(field, 1, 2);
      add(field, numbers->size(), 2);
      *numbers = field + *numbers;
    }
  std::string record;
  add(record, localHeader, 4);
  record += describeMember(file, bytes, checksum, sizes.size(), isLong) + file + sizes;
  add(directory, centralHeader, 4);
  add(directory, isLong || isFar ? version64 : plainVersion, 2);
  directory += describeMember(file, bytes, checksum, places.size(), isLong || isFar);
  // A comment, a disk, attributes: none.
  add(directory, 0, 2 + 2 + 2);
  add(directory, 0, 4);
  add(directory, std::min(offset, full32), 4);
  directory += file + places;
  offset += record.size() + bytes;
  ++entries;
  return record;
}

std::string NpzRecords::end() const {
  std::string text = directory;
  if (entries >= full16 || offset >= full32 || directory.size() >= full32) {
    uint64_t record = offset + directory.size();
    add(text, endRecord64, 4);
    add(text, endBytes64 - 12, 8);
    for (int i = 0; i < 2; ++i)
      add(text, version64, 2);
    add(text, 0, 8);
    for (uint64_t number : {entries, entries, static_cast<uint64_t>(directory.size()), offset})
      add(text, number, 8);
    add(text, endLocator64, 4);
    add(text, 0, 4);
    add(text, record, 8);
    add(text, 1, 4);
  }
  add(text, endRecord, 4);
  add(text, 0, 4);
  for (int i = 0; i < 2; ++i)
    add(text, std::min(entries, full16), 2);
  add(text, std::min<uint64_t>(directory.size(), full32), 4);
  add(text, std::min(offset, full32), 4);
  add(text, 0, 2);
  return text;
}
