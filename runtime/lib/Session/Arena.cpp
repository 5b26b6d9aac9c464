//===- Arena.cpp - Memory shared by liveness ------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arena.h"

#include "../Memory/Alignment.h"

#include "dovetail/runtime/MemoryFill.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

using namespace dovetail::runtime;

/// Gives items places in this order, each the tightest gap that it fits into. Returns the size of the arena.
static int64_t placeItems(std::vector<ArenaItem> &items, const std::vector<size_t> &order) {
  int64_t total = 0;
  std::vector<const ArenaItem *> placed; // By offset.
  for (size_t index : order) {
    ArenaItem &item = items[index];
    int64_t size = alignedSize(item.bytes), end = 0, best = -1, bestGap = 0;
    for (const ArenaItem *other : placed) {
      if (other->last < item.first || item.last < other->first)
        continue;
      int64_t gap = other->offset - end;
      if (gap >= size && (best < 0 || gap < bestGap)) {
        best = end;
        bestGap = gap;
      }
      end = std::max(end, other->offset + alignedSize(other->bytes));
    }
    item.offset = best >= 0 ? best : end;
    total = std::max(total, item.offset + size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &item,
                                   [](const ArenaItem *a, const ArenaItem *b) { return a->offset < b->offset; }),
                  &item);
  }
  return total;
}

int64_t dovetail::runtime::arenaBound(const std::vector<ArenaItem> &items) {
  std::vector<std::pair<int64_t, int64_t>> changes; // Where it changes what is needed, and by how much.
  for (const ArenaItem &item : items)
    if (item.bytes > 0) {
      changes.push_back({item.first, alignedSize(item.bytes)});
      changes.push_back({item.last + 1, -alignedSize(item.bytes)});
    }
  std::sort(changes.begin(), changes.end());
  int64_t sum = 0, most = 0;
  for (auto [position, bytes] : changes)
    most = std::max(most, sum += bytes);
  return most;
}

int64_t dovetail::runtime::planArena(std::vector<ArenaItem> &items) {
  int64_t bound = arenaBound(items), best = -1;
  std::vector<ArenaItem> result;
  auto isGood = [&] { return best >= 0 && best - bound <= bound / 100; };
  // What ends up above all others came too late: it comes in half the time in the next attempt.
  auto tryFrom = [&](std::vector<size_t> order) {
    constexpr int attempts = 64;
    for (int attempt = 0; attempt < attempts && !isGood(); ++attempt) {
      int64_t total = placeItems(items, order);
      if (best < 0 || total < best) {
        best = total;
        result = items;
      }
      auto top = std::find_if(order.begin(), order.end(), [&](size_t index) {
        return items[index].offset + alignedSize(items[index].bytes) == total;
      });
      if (top == order.end() || top == order.begin())
        return;
      std::rotate(order.begin() + (top - order.begin()) / 2, top, top + 1);
    }
  };
  auto orderBy = [&](auto &&key) {
    std::vector<size_t> order;
    for (size_t i = 0; i < items.size(); ++i)
      if (items[i].bytes > 0)
        order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(items[a]) > key(items[b]); });
    return order;
  };
  tryFrom(orderBy([](const ArenaItem &item) { return item.bytes; }));
  // Small ones that live long divide the memory of large ones that come after each other.
  if (!isGood())
    tryFrom(orderBy([](const ArenaItem &item) {
      return static_cast<double>(item.bytes) * static_cast<double>(item.last - item.first + 1);
    }));
  if (best >= 0)
    items = std::move(result);
  return std::max<int64_t>(best, 0);
}

/// What `fillMemory` was given last.
static std::atomic<std::byte> memoryFill;

void dovetail::runtime::fillMemory(std::byte value) { memoryFill = value; }

absl::StatusOr<Allocation> Allocation::create(int64_t bytes) {
  Allocation result;
  if (bytes == 0)
    return result;
  // The system promises more than it has; ask for no more than could ever be used.
  int64_t physical = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE);
  void *memory = MAP_FAILED;
  if (bytes <= physical)
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return absl::ResourceExhaustedError(absl::StrCat("needs ", bytes, " bytes of memory, but this machine has ",
                                                     physical, "; split the model over more machines"));
  // Fewer page faults and TLB misses; harmless where it is not supported.
  if (bytes >= (4 << 20))
    ::madvise(memory, bytes, MADV_HUGEPAGE);
  if (std::byte fill = memoryFill; fill != std::byte{0})
    std::memset(memory, static_cast<int>(fill), bytes);
  result.memory = static_cast<std::byte *>(memory);
  result.bytes = bytes;
  return result;
}

void dovetail::runtime::releasePages(std::byte *memory, int64_t bytes) {
  auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGE_SIZE)), address = reinterpret_cast<uintptr_t>(memory);
  uintptr_t begin = (address + page - 1) / page * page, end = (address + bytes) / page * page;
  if (begin < end)
    ::madvise(memory + (begin - address), end - begin, MADV_DONTNEED);
}

Allocation::~Allocation() {
  if (memory)
    ::munmap(memory, bytes);
}

Allocation::Allocation(Allocation &&other) noexcept
    : memory(std::exchange(other.memory, nullptr)), bytes(std::exchange(other.bytes, 0)) {}

Allocation &Allocation::operator=(Allocation &&other) noexcept {
  std::swap(memory, other.memory);
  std::swap(bytes, other.bytes);
  return *this;
}
