//===- ArtifactFile.cpp - Reading and writing the artifact container ------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/ArtifactFormat.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <set>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <xxhash.h>

using namespace dovetail::runtime;

namespace {

using Bytes = absl::Span<const std::byte>;
using Sink = std::function<absl::Status(Bytes)>;

uint64_t alignTo(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

absl::string_view sectionName(SectionKind kind) {
  switch (kind) {
  case SectionKind::Plan:
    return "plan";
  case SectionKind::Code:
    return "code";
  case SectionKind::Weights:
    return "weights";
  case SectionKind::Ptx:
    return "PTX";
  case SectionKind::Cubin:
    return "cubin";
  case SectionKind::Packed:
    return "packed weights";
  }
  return "unknown";
}

/// Calls `sink` with the bytes of a section, gaps between its pieces included.
absl::Status emitSection(const Section &section, const Sink &sink) {
  static constexpr std::byte zeros[pieceAlignment] = {};
  uint64_t position = 0;
  for (Bytes piece : section.pieces) {
    uint64_t begin = alignTo(position, pieceAlignment);
    if (absl::Status status = sink(Bytes(zeros, begin - position)); !status.ok())
      return status;
    if (absl::Status status = sink(piece); !status.ok())
      return status;
    position = begin + piece.size();
  }
  return absl::OkStatus();
}

uint64_t sectionSize(const Section &section) {
  uint64_t size = 0;
  for (Bytes piece : section.pieces)
    size = alignTo(size, pieceAlignment) + piece.size();
  return size;
}

/// XXH3-64 of a stream of spans.
class Checksum {
public:
  Checksum() : state(XXH3_createState()) { reset(); }
  ~Checksum() { XXH3_freeState(state); }
  Checksum(const Checksum &) = delete;
  Checksum &operator=(const Checksum &) = delete;

  void add(Bytes bytes) {
    if (!bytes.empty())
      XXH3_64bits_update(state, bytes.data(), bytes.size());
  }
  uint64_t value() const { return XXH3_64bits_digest(state); }
  /// Begins again.
  void reset() { XXH3_64bits_reset(state); }

private:
  XXH3_state_t *state;
};

size_t numParts(uint64_t bytes) { return (bytes + checkedPartBytes - 1) / checkedPartBytes; }

/// Those of the parts of a section that comes as a stream of spans.
class PartChecksums {
public:
  void add(Bytes bytes) {
    while (!bytes.empty()) {
      Bytes first = bytes.first(std::min(bytes.size(), checkedPartBytes - inPart));
      part.add(first);
      inPart += first.size();
      bytes.remove_prefix(first.size());
      if (inPart == checkedPartBytes)
        endPart();
    }
  }
  const std::vector<uint64_t> &values() {
    if (inPart > 0)
      endPart();
    return parts;
  }

private:
  void endPart() {
    parts.push_back(part.value());
    part.reset();
    inPart = 0;
  }

  Checksum part;
  size_t inPart = 0;
  std::vector<uint64_t> parts;
};

/// `table`: that of the sections, and the checksums of their parts.
uint64_t headerChecksum(ArtifactHeader header, Bytes table) {
  header.checksum = 0;
  Checksum sum;
  sum.add(absl::MakeConstSpan(reinterpret_cast<const std::byte *>(&header), sizeof(header)));
  sum.add(table);
  return sum.value();
}

template <typename T> Bytes bytesOf(const std::vector<T> &values) {
  return {reinterpret_cast<const std::byte *>(values.data()), values.size() * sizeof(T)};
}

absl::Status emitArtifact(absl::Span<const Section> sections, const Sink &sink) {
  std::vector<SectionEntry> table;
  std::vector<uint64_t> sums;
  uint64_t position = sizeof(ArtifactHeader) + sections.size() * sizeof(SectionEntry);
  for (const Section &section : sections)
    position += numParts(sectionSize(section)) * sizeof(uint64_t);
  for (const Section &section : sections) {
    std::optional<uint32_t> arch = archNumber(section.arch);
    if (!arch)
      return absl::InternalError(absl::StrCat("artifacts have no number for architecture '", section.arch, "'"));
    for (const SectionEntry &entry : table)
      if (entry.kind == section.kind && entry.arch == arch)
        return absl::InternalError(absl::StrCat("the artifact has two ", sectionName(section.kind), " sections"));
    PartChecksums parts;
    absl::Status status = emitSection(section, [&](Bytes bytes) {
      parts.add(bytes);
      return absl::OkStatus();
    });
    if (!status.ok())
      return status;
    sums.insert(sums.end(), parts.values().begin(), parts.values().end());
    uint64_t offset = alignTo(position, sectionAlignment);
    table.push_back({section.kind, *arch, offset, sectionSize(section)});
    position = offset + table.back().size;
  }
  std::vector<std::byte> tableBytes;
  for (Bytes bytes : {bytesOf(table), bytesOf(sums)})
    tableBytes.insert(tableBytes.end(), bytes.begin(), bytes.end());
  ArtifactHeader header{};
  std::memcpy(header.magic, artifactMagic, sizeof(artifactMagic));
  header.format = artifactFormat;
  header.oldestReader = oldestReader;
  header.fileSize = position;
  header.sectionCount = sections.size();
  header.checksum = headerChecksum(header, tableBytes);

  if (absl::Status status = sink(absl::MakeConstSpan(reinterpret_cast<const std::byte *>(&header), sizeof(header)));
      !status.ok())
    return status;
  if (absl::Status status = sink(tableBytes); !status.ok())
    return status;
  uint64_t written = sizeof(header) + tableBytes.size();
  static constexpr std::byte zeros[sectionAlignment] = {};
  for (size_t i = 0; i < sections.size(); ++i) {
    if (absl::Status status = sink(Bytes(zeros, table[i].offset - written)); !status.ok())
      return status;
    if (absl::Status status = emitSection(sections[i], sink); !status.ok())
      return status;
    written = table[i].offset + table[i].size;
  }
  return absl::OkStatus();
}

absl::Status writeAll(int file, Bytes bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fileError(errno, "write failed");
    bytes.remove_prefix(count);
  }
  return absl::OkStatus();
}

} // namespace

std::vector<uint64_t> dovetail::runtime::pieceOffsets(absl::Span<const uint64_t> sizes) {
  std::vector<uint64_t> offsets;
  uint64_t position = 0;
  for (uint64_t size : sizes) {
    offsets.push_back(alignTo(position, pieceAlignment));
    position = offsets.back() + size;
  }
  return offsets;
}

absl::Status dovetail::runtime::fileError(int error, absl::string_view what) {
  // Abseil's own codes tell a folder in the way from a missing one, and make a loop of links an unknown error.
  absl::Status status = absl::ErrnoToStatus(error, what);
  return absl::IsNotFound(status) ? status : absl::PermissionDeniedError(status.message());
}

absl::Status dovetail::runtime::checkReplaceable(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return absl::AlreadyExistsError(absl::StrCat("cannot write '", path, "': it exists and is not a regular file"));
  return absl::OkStatus();
}

absl::Status dovetail::runtime::writeArtifact(const std::string &path, absl::Span<const Section> sections) {
  if (absl::Status status = checkReplaceable(path); !status.ok())
    return status;
  std::string temporary = path + ".XXXXXX";
  int file = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0)
    return fileError(errno, absl::StrCat("cannot create a file beside '", path, "'"));
  // mkostemp creates files that only their owner may read; give the usual rights instead.
  mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(file, 0666 & ~mask);

  absl::Status status = emitArtifact(sections, [&](Bytes bytes) { return writeAll(file, bytes); });
  if (::close(file) != 0 && status.ok())
    status = fileError(errno, "close failed");
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = fileError(errno, "rename failed");
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return absl::Status(status.code(), absl::StrCat("cannot write '", path, "': ", status.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::byte>> dovetail::runtime::serializeArtifact(absl::Span<const Section> sections) {
  std::vector<std::byte> result;
  absl::Status status = emitArtifact(sections, [&](Bytes bytes) {
    result.insert(result.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  });
  if (!status.ok())
    return status;
  return result;
}

CheckedSection::CheckedSection(SectionKind kind, Bytes bytes, Bytes sums)
    : kind(kind), bytes(bytes), sums(sums), isRight(new std::atomic<bool>[numParts(bytes.size())]()) {}

absl::Status CheckedSection::check(Bytes range, int threads) const {
  if (range.empty())
    return absl::OkStatus();
  uint64_t begin = range.data() - bytes.data();
  size_t first = begin / checkedPartBytes, end = numParts(begin + range.size());
  std::atomic<size_t> next = first;
  std::atomic<bool> isDamaged = false;
  auto checkNext = [&] {
    for (size_t i; (i = next.fetch_add(1)) < end;) {
      if (isRight[i].load(std::memory_order_relaxed))
        continue;
      Bytes part = bytes.subspan(i * checkedPartBytes, checkedPartBytes);
      uint64_t sum;
      std::memcpy(&sum, sums.data() + i * sizeof(sum), sizeof(sum));
      bool same = XXH3_64bits(part.data(), part.size()) == sum;
      isRight[i].store(same, std::memory_order_relaxed);
      if (!same)
        isDamaged = true;
    }
  };
  std::vector<std::thread> others;
  // To start a thread takes about as long as a tenth of a part.
  try {
    for (int other = 1, count = std::min<int>(threads, static_cast<int>((end - first) / 2)); other < count; ++other)
      others.emplace_back(checkNext);
  } catch (const std::system_error &) {
    // There are no more threads: those that there are check all.
  }
  checkNext();
  for (std::thread &other : others)
    other.join();
  if (isDamaged)
    return absl::DataLossError(
        absl::StrCat("the checksum of the ", sectionName(kind), " section does not match; the file is damaged"));
  return absl::OkStatus();
}

absl::StatusOr<ArtifactSections> dovetail::runtime::parseArtifact(Bytes bytes, int threads) {
  absl::StatusOr<ArtifactHeader> read = readHeader(bytes);
  if (!read.ok())
    return read.status();
  const ArtifactHeader &header = *read;
  Bytes rest = bytes.subspan(sizeof(header));
  if (header.sectionCount > rest.size() / sizeof(SectionEntry))
    return absl::DataLossError("the table of sections does not fit into the file");
  uint64_t tableSize = header.sectionCount * sizeof(SectionEntry), sumsSize = 0;
  for (uint64_t i = 0; i < header.sectionCount; ++i) {
    SectionEntry entry;
    std::memcpy(&entry, rest.data() + i * sizeof(entry), sizeof(entry));
    if (entry.size > bytes.size())
      return absl::DataLossError("the table of sections is wrong; the file is damaged");
    sumsSize += numParts(entry.size) * sizeof(uint64_t);
  }
  if (sumsSize > rest.size() - tableSize)
    return absl::DataLossError("the table of sections does not fit into the file");
  Bytes table = rest.first(tableSize + sumsSize), sums = table.subspan(tableSize);
  if (headerChecksum(header, table) != header.checksum)
    return absl::DataLossError("the checksum of the header does not match; the file is damaged");

  ArtifactSections result;
  result.checksum = header.checksum;
  std::set<std::pair<SectionKind, uint32_t>> seen;
  uint64_t position = sizeof(header) + table.size();
  for (uint64_t i = 0; i < header.sectionCount; ++i) {
    SectionEntry entry;
    std::memcpy(&entry, table.data() + i * sizeof(entry), sizeof(entry));
    bool isKnown = entry.kind >= SectionKind::Plan && entry.kind <= SectionKind::Packed;
    // A newer version may add what older ones need not read.
    if (!isKnown && header.format <= artifactFormat)
      return absl::DataLossError(
          absl::StrCat("unknown section kind ", static_cast<uint32_t>(entry.kind), "; the file is damaged"));
    bool forArch = entry.kind == SectionKind::Ptx || entry.kind == SectionKind::Cubin;
    CodeImage image{entry.kind, archName(entry.arch), {}};
    CheckedSection *lazy = entry.kind == SectionKind::Weights  ? &result.weights
                           : entry.kind == SectionKind::Packed ? &result.packed
                                                               : nullptr;
    Bytes *target = entry.kind == SectionKind::Plan              ? &result.plan
                    : forArch || entry.kind == SectionKind::Code ? &image.bytes
                                                                 : nullptr;
    if (isKnown && (entry.arch != 0) != forArch)
      return absl::DataLossError(
          absl::StrCat("the ", sectionName(entry.kind), " section is for architecture ", entry.arch));
    if (!seen.insert({entry.kind, entry.arch}).second)
      return absl::DataLossError(absl::StrCat("two ", sectionName(entry.kind), " sections"));
    if (entry.offset != alignTo(position, sectionAlignment) || entry.offset > bytes.size() ||
        entry.size > bytes.size() - entry.offset)
      return absl::DataLossError(
          absl::StrCat("the ", sectionName(entry.kind), " section is in a wrong place; the file is damaged"));
    Bytes gap = bytes.subspan(position, entry.offset - position);
    if (std::any_of(gap.begin(), gap.end(), [](std::byte byte) { return byte != std::byte(0); }))
      return absl::DataLossError(absl::StrCat("bytes precede the ", sectionName(entry.kind), " section"));
    position = entry.offset + entry.size;
    CheckedSection section(entry.kind, bytes.subspan(entry.offset, entry.size),
                           sums.first(numParts(entry.size) * sizeof(uint64_t)));
    sums.remove_prefix(numParts(entry.size) * sizeof(uint64_t));
    if (lazy) {
      *lazy = std::move(section);
      continue;
    }
    if (absl::Status status = section.checkAll(threads); !status.ok())
      return status;
    if (!target)
      continue;
    *target = section.getBytes();
    if (target == &image.bytes)
      result.code.push_back(image);
  }
  if (position != bytes.size())
    return absl::DataLossError("bytes follow the last section; the file is damaged");
  if (result.plan.empty())
    return absl::DataLossError("the plan section is missing; the file is damaged");
  return result;
}
