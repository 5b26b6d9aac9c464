//===- TensorFile.cpp - Tensors in files -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/TensorFile.h"

#include "Npy.h"
#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/tools/Unfinished.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

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

struct ZipCloser {
  void operator()(zip_t *archive) const { zip_discard(archive); }
};
using ZipArchive = std::unique_ptr<zip_t, ZipCloser>;

absl::StatusOr<ZipArchive> openZip(const std::string &path, int flags) {
  int code = 0;
  zip_t *archive = zip_open(path.c_str(), flags, &code);
  if (archive)
    return ZipArchive(archive);
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string message = zip_error_strerror(&error);
  int system = zip_error_system_type(&error) == ZIP_ET_SYS ? zip_error_code_system(&error) : 0;
  zip_error_fini(&error);
  if (system != 0)
    return runtime::fileError(system, absl::StrCat("cannot open '", path, "'"));
  if (code == ZIP_ER_NOENT)
    return absl::NotFoundError(absl::StrCat("cannot open '", path, "': ", message));
  return absl::OutOfRangeError(absl::StrCat("'", path, "' is not a .npz archive: ", message));
}

/// Writes pieces to a file beside `path` and renames it.
absl::Status writeFile(const std::string &path, std::initializer_list<absl::Span<const std::byte>> pieces,
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
  absl::StatusOr<ZipArchive> archive = openZip(path, ZIP_RDONLY);
  if (!archive.ok())
    return archive.status();
  std::vector<NamedTensor> tensors;
  for (zip_int64_t i = 0, n = zip_get_num_entries(archive->get(), 0); i < n; ++i) {
    zip_stat_t info;
    if (zip_stat_index(archive->get(), i, 0, &info) != 0 || !(info.valid & ZIP_STAT_SIZE) ||
        !(info.valid & ZIP_STAT_NAME))
      return absl::OutOfRangeError(absl::StrCat("'", path, "': entry ", i, " is damaged"));
    std::string name = info.name;
    if (!only.empty() && n > 1 && absl::StripSuffix(name, ".npy") != only)
      continue;
    std::vector<std::byte> bytes;
    zip_file_t *file = zip_fopen_index(archive->get(), i, 0);
    // The size that the archive states is a claim: do not allocate more than arrives.
    bool ok = file != nullptr;
    for (uint64_t used = 0; ok && used < info.size;) {
      bytes.resize(used + std::min<uint64_t>(info.size - used, 1 << 24));
      zip_int64_t count = zip_fread(file, bytes.data() + used, bytes.size() - used);
      ok = count > 0;
      used += ok ? count : 0;
      bytes.resize(used);
    }
    ok = ok && zip_fread(file, &info.valid, 1) == 0;
    if (file)
      ok = zip_fclose(file) == 0 && ok;
    if (!ok)
      return absl::OutOfRangeError(absl::StrCat("'", path, "': array '", name, "' is damaged"));
    absl::StatusOr<NamedTensor> tensor = decodeNpy(bytes);
    if (!tensor.ok())
      return annotate(tensor.status(), absl::StrCat(path, ":", name));
    tensor->name = std::string(absl::StripSuffix(name, ".npy"));
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
  if (absl::Status status = runtime::checkReplaceable(path); !status.ok())
    return status;
  // libzip itself writes to a temporary file first.
  absl::StatusOr<ZipArchive> archive = openZip(path, ZIP_CREATE | ZIP_TRUNCATE);
  if (!archive.ok())
    return archive.status();
  std::vector<std::vector<std::byte>> contents; // Read by libzip when it closes the archive.
  for (const NamedTensor &tensor : tensors) {
    std::string header = npyHeader(tensor.type, tensor.shape);
    const std::byte *begin = reinterpret_cast<const std::byte *>(header.data());
    std::vector<std::byte> &bytes = contents.emplace_back(begin, begin + header.size());
    bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
    zip_source_t *source = zip_source_buffer(archive->get(), bytes.data(), bytes.size(), 0);
    zip_int64_t index =
        source ? zip_file_add(archive->get(), (tensor.name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8) : -1;
    if (index < 0) {
      if (source)
        zip_source_free(source);
      return absl::OutOfRangeError(absl::StrCat("cannot write '", path, "': ", zip_strerror(archive->get())));
    }
    zip_set_file_compression(archive->get(), index, ZIP_CM_STORE, 0);
  }
  zip_t *raw = archive->release();
  if (zip_close(raw) != 0) {
    absl::Status status = absl::PermissionDeniedError(absl::StrCat("cannot write '", path, "': ", zip_strerror(raw)));
    zip_discard(raw);
    return status;
  }
  return absl::OkStatus();
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
