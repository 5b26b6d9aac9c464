//===- TensorFile.cpp - Tensors in files -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/TensorFile.h"

#include "Npy.h"
#include "Npz.h"
#include "PlacedFile.h"
#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/tools/Unfinished.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <memory>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::tools;
using runtime::ElementType;

void NamedTensor::allocate() {
  size_t size = numElements() * runtime::elementSize(type);
  bytes.reserve(size);
  // Large pages, as NumPy has, for whole pages that nobody has touched; harmless where it is not supported.
  constexpr uintptr_t page = 4096;
  if (size >= (4 << 20)) {
    uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
    uintptr_t end = (reinterpret_cast<uintptr_t>(bytes.data()) + size) / page * page;
    ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_HUGEPAGE);
  }
  bytes.resize(size);
}

int64_t NamedTensor::numElements() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

runtime::FullTensor NamedTensor::view() {
  // Tensors without elements have no memory, but a null pointer means that data was forgotten.
  static std::byte nothing;
  return {bytes.empty() ? &nothing : bytes.data(), type, shape, {}};
}

namespace {

absl::Status annotate(const absl::Status &status, const std::string &path) {
  return absl::Status(status.code(), absl::StrCat("'", path, "': ", status.message()));
}

absl::StatusOr<std::vector<std::byte>> readFile(const std::string &path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return runtime::fileError(errno, absl::StrCat("cannot open '", path, "'"));
  struct stat info;
  // Pipes end; devices such as /dev/zero need not.
  if (::fstat(file, &info) != 0 || !(S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode))) {
    ::close(file);
    return absl::NotFoundError(absl::StrCat("'", path, "' is not a file"));
  }
  std::vector<std::byte> bytes;
  size_t used = 0;
  for (;;) {
    bytes.resize(used + std::max<size_t>(1 << 16, used == 0 ? info.st_size + 1 : used));
    ssize_t count = ::read(file, bytes.data() + used, bytes.size() - used);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0) {
      absl::Status status = runtime::fileError(errno, absl::StrCat("cannot read '", path, "'"));
      ::close(file);
      return status;
    }
    used += count;
    if (count == 0)
      break;
  }
  ::close(file);
  bytes.resize(used);
  return bytes;
}

/// Writes pieces to a file beside `path` and renames it.
absl::Status writeFile(const std::string &path, absl::Span<const absl::Span<const std::byte>> pieces,
                       bool onDisk = false) {
  if (absl::Status status = runtime::checkReplaceable(path); !status.ok())
    return status;
  std::random_device random;
  std::string temporary =
      absl::StrCat(path, ".new-", absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
  // Before it is there: a signal may come at any time.
  rememberUnfinished(temporary);
  int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) {
    absl::Status status = runtime::fileError(errno, absl::StrCat("cannot write '", path, "'"));
    forgetUnfinished(temporary);
    return status;
  }
  bool ok = true;
  for (absl::Span<const std::byte> piece : pieces)
    while (ok && !piece.empty()) {
      ssize_t count = ::write(file, piece.data(), piece.size());
      if (count < 0 && errno == EINTR)
        continue;
      ok = count >= 0;
      if (ok)
        piece.remove_prefix(count);
    }
  // What cannot be synchronised is no disk.
  if (ok && onDisk)
    ok = ::fsync(file) == 0 || errno == EINVAL;
  ok = ::close(file) == 0 && ok;
  ok = ok && ::rename(temporary.c_str(), path.c_str()) == 0;
  absl::Status status = ok ? absl::OkStatus() : runtime::fileError(errno, absl::StrCat("cannot write '", path, "'"));
  if (!ok)
    ::unlink(temporary.c_str());
  else if (onDisk)
    syncFolder(folderOf(path));
  forgetUnfinished(temporary);
  return status;
}

} // namespace

absl::StatusOr<NamedTensor> tools::readNpy(const std::string &path) {
  absl::StatusOr<std::vector<std::byte>> bytes = readFile(path);
  if (!bytes.ok())
    return bytes.status();
  absl::StatusOr<NamedTensor> tensor = decodeNpy(*bytes);
  return tensor.ok() ? std::move(tensor) : annotate(tensor.status(), path);
}

absl::StatusOr<std::vector<NamedTensor>> tools::readNpz(const std::string &path, const std::string &only) {
  absl::StatusOr<std::shared_ptr<PlacedFile>> file = PlacedFile::open(path);
  if (!file.ok())
    return file.status();
  auto read = [&](int64_t offset, std::byte *target, int64_t bytes) { return (*file)->read(offset, target, bytes); };
  absl::StatusOr<std::vector<NpzMember>> members = listNpz((*file)->size, read);
  if (!members.ok())
    return ofFile(path, members.status());
  std::vector<NamedTensor> tensors;
  for (const NpzMember &member : *members) {
    if (!only.empty() && members->size() > 1 && member.name != only)
      continue;
    absl::StatusOr<std::vector<std::byte>> bytes = readNpzMember(member, read);
    if (!bytes.ok())
      return absl::Status(bytes.status().code(), absl::StrCat("'", path, "': array '", member.name,
                                                              "' is damaged: ", bytes.status().message()));
    absl::StatusOr<NamedTensor> tensor = decodeNpy(*bytes);
    if (!tensor.ok())
      return annotate(tensor.status(), absl::StrCat(path, ":", member.name, ".npy"));
    tensor->name = member.name;
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

absl::Status tools::writeNpy(const std::string &path, const NamedTensor &tensor) {
  std::string header = npyHeader(tensor.type, tensor.shape);
  return writeFile(path, {absl::MakeConstSpan(reinterpret_cast<const std::byte *>(header.data()), header.size()),
                          absl::MakeConstSpan(tensor.bytes)});
}

absl::Status tools::writeText(const std::string &path, const std::string &text, bool onDisk) {
  return writeFile(path, {absl::MakeConstSpan(reinterpret_cast<const std::byte *>(text.data()), text.size())}, onDisk);
}

std::string tools::folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

void tools::syncFolder(const std::string &path) {
  int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return;
  ::fsync(folder);
  ::close(folder);
}

absl::Status tools::checkWritable(const std::string &path) {
  std::string folder = folderOf(path);
  if (::access(folder.c_str(), W_OK) != 0)
    return errno == ENOENT || errno == ENOTDIR
               ? absl::NotFoundError(absl::StrCat("cannot write '", path, "': there is no folder '", folder, "'"))
               : runtime::fileError(errno, absl::StrCat("cannot write '", path, "'"));
  return runtime::checkReplaceable(path);
}

absl::Status tools::writeNpz(const std::string &path, absl::Span<const NamedTensor> tensors) {
  NpzRecords records;
  // Strings that pieces refer to stay where they are.
  std::deque<std::string> texts;
  std::vector<absl::Span<const std::byte>> pieces;
  auto add = [&](std::string text) {
    texts.push_back(std::move(text));
    pieces.push_back(
        absl::MakeConstSpan(reinterpret_cast<const std::byte *>(texts.back().data()), texts.back().size()));
  };
  for (const NamedTensor &tensor : tensors) {
    if (tensor.name.size() > mostNpzName)
      return absl::InvalidArgumentError(absl::StrCat("cannot write '", path, "': an output's name has more than ",
                                                     mostNpzName, " bytes; write the outputs as .npy files"));
    std::string header = npyHeader(tensor.type, tensor.shape);
    uint32_t checksum = NpzRecords::addChecksum(0, header.data(), header.size());
    checksum = NpzRecords::addChecksum(checksum, tensor.bytes.data(), tensor.bytes.size());
    add(records.beginMember(tensor.name + ".npy", header.size() + tensor.bytes.size(), checksum) + header);
    pieces.push_back(tensor.bytes);
  }
  add(records.end());
  return writeFile(path, pieces);
}

namespace {

/// The upper half of a 32-bit number: rounds towards zero.
uint16_t truncateToBrainFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16);
}

} // namespace

void tools::fillRandom(ElementType type, uint64_t seed, int64_t limit, int64_t first, int64_t count,
                       std::byte *target) {
  // The finaliser of SplitMix64 over numbers that are far apart: each element is made without those before it.
  auto mix = [](uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  };
  uint64_t begin = mix(seed + 0x9e3779b97f4a7c15);
  uint64_t modulus = static_cast<uint64_t>(std::min<int64_t>(limit, 10));
  auto real = [](uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-52 - 1; };
  auto integer = [&](uint64_t bits) { return static_cast<int>((bits >> 8) % modulus); };
  auto fill = [&](auto element, auto make) {
    auto *data = reinterpret_cast<decltype(element) *>(target);
    for (int64_t i = 0; i < count; ++i)
      data[i] =
          static_cast<decltype(element)>(make(mix(begin + static_cast<uint64_t>(first + i + 1) * 0x9e3779b97f4a7c15)));
  };
  switch (type) {
  case ElementType::F32:
    return fill(float(), real);
  case ElementType::F64:
    return fill(double(), real);
  case ElementType::F16:
    return fill(_Float16(), real);
  case ElementType::BF16:
    return fill(uint16_t(), [&](uint64_t bits) { return truncateToBrainFloat(static_cast<float>(real(bits))); });
  case ElementType::Bool:
    return fill(uint8_t(), [](uint64_t bits) { return bits >> 63; });
  case ElementType::I8:
  case ElementType::U8:
    return fill(uint8_t(), integer);
  case ElementType::I16:
  case ElementType::U16:
    return fill(uint16_t(), integer);
  case ElementType::I32:
  case ElementType::U32:
    return fill(uint32_t(), integer);
  case ElementType::I64:
  case ElementType::U64:
    return fill(uint64_t(), integer);
  case ElementType::F8E4M3FN:
  case ElementType::F8E4M3FNUZ:
  case ElementType::F8E5M2:
  case ElementType::F8E5M2FNUZ:
    // Exponents around that of 1, which is close to the middle.
    return fill(uint8_t(), [](uint64_t bits) { return (bits & 0x80) + 0x30 + (bits >> 32) % 16; });
  case ElementType::F8E8M0:
    return fill(uint8_t(), [](uint64_t bits) { return 0x78 + (bits >> 32) % 16; });
  case ElementType::F4E2M1:
  case ElementType::I4:
  case ElementType::U4:
    return fill(uint8_t(), [](uint64_t bits) { return bits >> 60; });
  case ElementType::I2:
  case ElementType::U2:
    return fill(uint8_t(), [](uint64_t bits) { return bits >> 62; });
  }
}

void tools::fillRandom(NamedTensor &tensor, uint64_t seed, int64_t limit) {
  tensor.allocate();
  fillRandom(tensor.type, seed, limit, 0, tensor.numElements(), tensor.bytes.data());
}

void tools::spoil(ElementType type, std::byte *elements, int64_t count) {
  int64_t size = runtime::elementSize(type);
  switch (type) {
  case ElementType::F32:
  case ElementType::F64:
  case ElementType::F16:
  case ElementType::BF16:
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
  case ElementType::F8E8M0:
    // All bits of the exponent, and some of the mantissa.
    std::fill(elements, elements + size * count, std::byte{0xff});
    return;
  case ElementType::F8E4M3FNUZ:
  case ElementType::F8E5M2FNUZ:
    // What would be a negative zero.
    std::fill(elements, elements + size * count, std::byte{0x80});
    return;
  default:
    break;
  }
  for (int64_t i = 0, j = count - 1; i < j; ++i, --j)
    std::swap_ranges(elements + i * size, elements + (i + 1) * size, elements + j * size);
}

NamedTensor tools::makeWrong(const NamedTensor &tensor) {
  NamedTensor wrong = tensor;
  spoil(wrong.type, wrong.bytes.data(), wrong.numElements());
  return wrong;
}
