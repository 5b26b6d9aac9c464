//===- SharedSegment.cpp - Memory that processes share --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedSegment.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace dovetail::runtime;

/// Of the pages that the system may use for large memory; less has usual ones.
static constexpr int64_t largePage = 2 << 20;
/// As sessions ask for large pages.
static constexpr int64_t leastForLargePages = 2 * largePage;

static absl::Status explain(const char *what) {
  std::string message = absl::StrCat(what, ": ", std::strerror(errno));
  return errno == ENOMEM || errno == ENOSPC || errno == EFBIG ? absl::ResourceExhaustedError(message)
                                                              : absl::UnavailableError(message);
}

static int64_t roundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

/// The pages of `owned` with something of `parts`, ascending, without those that are in two.
static std::vector<ByteRange> findPages(ByteRange owned, const std::vector<ByteRange> &parts) {
  int64_t page = owned.bytes >= leastForLargePages ? largePage : ::sysconf(_SC_PAGE_SIZE);
  auto addressOf = [](const std::byte *memory) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory)); };
  int64_t first = addressOf(owned.begin), last = roundUp(first + owned.bytes, ::sysconf(_SC_PAGE_SIZE));
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const ByteRange &part : parts)
    if (part.bytes > 0 && part.begin >= owned.begin && part.begin + part.bytes <= owned.begin + owned.bytes)
      ranges.push_back({std::max(first, addressOf(part.begin) / page * page),
                        std::min(last, roundUp(addressOf(part.begin) + part.bytes, page))});
  std::sort(ranges.begin(), ranges.end());
  std::vector<ByteRange> pages;
  int64_t end = first;
  for (auto [from, to] : ranges) {
    if (!pages.empty() && from <= end)
      pages.back().bytes += std::max<int64_t>(to - end, 0);
    else
      pages.push_back({owned.begin + (from - first), to - from});
    end = std::max(end, to);
  }
  return pages;
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::create(int64_t noteBytes,
                                                                     const std::vector<ByteRange> &owned,
                                                                     const std::vector<ByteRange> &parts,
                                                                     int64_t mostBytes) {
  std::unique_ptr<SharedSegment> result(new SharedSegment);
  result->noteBytes = result->total = roundUp(noteBytes, ::sysconf(_SC_PAGE_SIZE));
  // Where a page is in the file is where it is in memory, as far as large pages are concerned.
  int64_t length = roundUp(result->total, largePage);
  for (const ByteRange &range : owned)
    for (const ByteRange &pages : findPages(range, parts)) {
      auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(pages.begin));
      result->shared.push_back({pages, length + address % largePage});
      result->total += pages.bytes;
      length = roundUp(result->shared.back().offset + pages.bytes, largePage);
    }
  if (result->total > mostBytes)
    return absl::ResourceExhaustedError(
        absl::StrCat(result->total, " bytes would be shared, but the limit is ", mostBytes, " may be"));
  // Longer files would end the process by a signal.
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<uint64_t>(length) > limit.rlim_cur)
    return absl::ResourceExhaustedError("the limit of file sizes is too low (ulimit -f)");
  result->file = ::memfd_create("dovetail-shared", MFD_CLOEXEC);
  if (result->file < 0)
    return explain("no memory can be shared");
  if (::ftruncate(result->file, length) != 0)
    return explain("no memory can be shared");
  if (int error = ::posix_fallocate(result->file, 0, result->noteBytes)) {
    errno = error;
    return explain("memory cannot be reserved");
  }
  void *notes = ::mmap(nullptr, result->noteBytes, PROT_READ | PROT_WRITE, MAP_SHARED, result->file, 0);
  if (notes == MAP_FAILED)
    return explain("memory cannot be mapped");
  result->begin = static_cast<std::byte *>(notes);
  for (const Shared &part : result->shared)
    if (absl::Status status = result->share(part.memory, part.offset); !status.ok())
      return status;
  return result;
}

absl::Status SharedSegment::share(ByteRange part, int64_t offset) {
  // Made somewhere else, with a place for large pages, and then mapped again where it belongs.
  void *place = ::mmap(nullptr, part.bytes + largePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED)
    return explain("memory cannot be mapped");
  auto *first = static_cast<std::byte *>(place);
  int64_t ahead = (offset - static_cast<int64_t>(reinterpret_cast<uintptr_t>(first) % largePage)) % largePage;
  ahead = (ahead + largePage) % largePage;
  std::byte *target = first + ahead;
  if (ahead > 0)
    ::munmap(first, ahead);
  if (ahead < largePage)
    ::munmap(target + part.bytes, largePage - ahead);
  absl::Cleanup free = [&] { ::munmap(target, part.bytes); };
  void *mapped = ::mmap(target, part.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, offset);
  if (mapped == MAP_FAILED)
    return explain("memory cannot be mapped");
  if (part.bytes >= largePage)
    ::madvise(target, part.bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
  bool isThere = ::madvise(target, part.bytes, MADV_POPULATE_WRITE) == 0;
  if (!isThere && errno != EINVAL)
    return explain("memory cannot be reserved");
#else
  bool isThere = false;
#endif
  if (int error = isThere ? 0 : ::posix_fallocate(file, offset, part.bytes)) {
    errno = error;
    return explain("memory cannot be reserved");
  }
  std::memcpy(target, part.begin, part.bytes);
  // Not moved there: MPI's libraries put functions of their own in the place of mremap to hear of memory that goes, and
  // some lose its last argument, so that pages get to anywhere (UCX before 1.15).
  if (::mmap(part.begin, part.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, offset) != part.begin) {
    absl::Status status = explain("memory cannot be mapped");
    // A failure may have unmapped what was there.
    void *restored =
        ::mmap(part.begin, part.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (restored != part.begin)
      return absl::InternalError(absl::StrCat("memory was lost as it was to be shared: ", std::strerror(errno)));
    std::memcpy(part.begin, target, part.bytes);
    return status;
  }
  if (part.bytes >= largePage)
    ::madvise(part.begin, part.bytes, MADV_HUGEPAGE);
  // The pages are there; what runs do not wait for is that they are found for the first time.
#ifdef MADV_POPULATE_WRITE
  ::madvise(part.begin, part.bytes, MADV_POPULATE_WRITE);
#endif
  return absl::OkStatus();
}

int64_t SharedSegment::offsetOf(const std::byte *memory, int64_t bytes) const {
  for (const Shared &part : shared)
    if (memory >= part.memory.begin && memory + bytes <= part.memory.begin + part.memory.bytes)
      return part.offset + (memory - part.memory.begin);
  return -1;
}

std::string SharedSegment::name() const { return absl::StrCat(::getpid(), "/", file); }

void SharedSegment::close() {
  if (file >= 0)
    ::close(std::exchange(file, -1));
}

SharedSegment::~SharedSegment() {
  close();
  if (begin)
    ::munmap(begin, noteBytes);
}

absl::StatusOr<std::unique_ptr<SharedView>> SharedView::open(const std::string &name) {
  std::pair<std::string, std::string> parts = absl::StrSplit(name, absl::MaxSplits('/', 1));
  int process = 0, number = 0;
  if (!absl::SimpleAtoi(parts.first, &process) || !absl::SimpleAtoi(parts.second, &number))
    return absl::UnavailableError(absl::StrCat("'", name, "' is not a shared segment"));
  int file = ::open(absl::StrCat("/proc/", process, "/fd/", number).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return explain("the memory of another process cannot be opened");
  absl::Cleanup close = [&] { ::close(file); };
  struct stat info = {};
  if (::fstat(file, &info) != 0)
    return explain("the memory of another process cannot be opened");
  std::unique_ptr<SharedView> result(new SharedView);
  void *mapped = ::mmap(nullptr, info.st_size, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED)
    return explain("the memory of another process cannot be mapped");
  result->begin = static_cast<const std::byte *>(mapped);
  result->bytes = info.st_size;
  // As its owner has asked for them.
  ::madvise(mapped, info.st_size, MADV_HUGEPAGE);
  return result;
}

SharedView::~SharedView() {
  if (begin)
    ::munmap(const_cast<std::byte *>(begin), bytes);
}

std::string dovetail::runtime::sharingPlace() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat processes = {};
  if (boot.empty() || ::stat("/proc/self/ns/pid", &processes) != 0)
    return "";
  return absl::StrCat(boot, "/", processes.st_dev, "/", processes.st_ino, "/", ::geteuid());
}
