//===- Cores.cpp - Cores for threads -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cores.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sched.h>
#include <sstream>
#include <thread>

using namespace dovetail::runtime;

std::atomic<int> Cores::running{0};
/// 0: not counted yet.
static std::atomic<int> availableCores{0};

std::vector<int> dovetail::runtime::allowedProcessors() {
  std::vector<int> result;
  // Larger machines need larger sets.
  for (int count = 1024; count <= (1 << 20); count *= 4) {
    cpu_set_t *set = CPU_ALLOC(count);
    size_t bytes = CPU_ALLOC_SIZE(count);
    bool isKnown = set && ::sched_getaffinity(0, bytes, set) == 0;
    for (int i = 0; isKnown && i < count; ++i)
      if (CPU_ISSET_S(i, bytes, set))
        result.push_back(i);
    CPU_FREE(set);
    if (!result.empty())
      return result;
  }
  for (int i = 0, count = std::max(1u, std::thread::hardware_concurrency()); i < count; ++i)
    result.push_back(i);
  return result;
}

std::vector<int> dovetail::runtime::takeTurns(const std::vector<int> &processors, int first, int count) {
  std::vector<int> result;
  for (int thread = first; thread < first + count; ++thread)
    result.push_back(processors[static_cast<size_t>(thread) % processors.size()]);
  return result;
}

void dovetail::runtime::stayOn(int processor) {
  cpu_set_t *set = CPU_ALLOC(processor + 1);
  if (!set)
    return;
  size_t bytes = CPU_ALLOC_SIZE(processor + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(processor, bytes, set);
  ::sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
}

namespace {

std::string contents(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A hierarchy of control groups that limits CPUs: where it is mounted, and which of its groups is seen there.
struct Hierarchy {
  std::string folder, group;
};

/// The first hierarchy of the second version, or of the first with the controller `cpu`.
std::optional<Hierarchy> findHierarchy(const std::string &root, bool isSecond) {
  for (absl::string_view line : absl::StrSplit(contents(root + "/proc/self/mountinfo"), '\n')) {
    // id, parent, device, root, mount point, options, optional fields, "-", type, source, options of the hierarchy.
    std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    std::vector<absl::string_view> first = absl::StrSplit(halves.first, ' ');
    std::vector<absl::string_view> second = absl::StrSplit(halves.second, ' ');
    if (first.size() < 5 || second.size() < 3 || second[0] != (isSecond ? "cgroup2" : "cgroup"))
      continue;
    std::vector<absl::string_view> options = absl::StrSplit(second[2], ',');
    if (isSecond || std::find(options.begin(), options.end(), "cpu") != options.end())
      return Hierarchy{std::string(first[4]), std::string(first[3])};
  }
  return std::nullopt;
}

/// The group of this process in that hierarchy, such as `/a/b`.
std::optional<std::string> findGroup(const std::string &root, bool isSecond) {
  for (absl::string_view line : absl::StrSplit(contents(root + "/proc/self/cgroup"), '\n')) {
    std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() < 3)
      continue;
    std::vector<absl::string_view> controllers = absl::StrSplit(fields[1], ',');
    if (isSecond ? fields[1].empty() : std::find(controllers.begin(), controllers.end(), "cpu") != controllers.end())
      return std::string(fields[2]);
  }
  return std::nullopt;
}

/// Cores' worth of time that a group may take, by itself.
double bandwidth(const std::string &folder, bool isSecond) {
  std::string text = isSecond ? contents(folder + "/cpu.max")
                              : contents(folder + "/cpu.cfs_quota_us") + " " + contents(folder + "/cpu.cfs_period_us");
  std::vector<absl::string_view> words = absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  double quota = 0, period = 0;
  // `max` and -1: there is no limit.
  if (words.size() < 2 || !absl::SimpleAtod(words[0], &quota) || !absl::SimpleAtod(words[1], &period) || quota <= 0 ||
      period <= 0)
    return std::numeric_limits<double>::infinity();
  return quota / period;
}

double bandwidthOfGroups(const std::string &root, bool isSecond) {
  double least = std::numeric_limits<double>::infinity();
  std::optional<Hierarchy> hierarchy = findHierarchy(root, isSecond);
  std::optional<std::string> group = findGroup(root, isSecond);
  if (!hierarchy || !group)
    return least;
  // A container sees part of the hierarchy, and may be told its group as it is called outside or inside.
  if (hierarchy->group != "/" && absl::StartsWith(absl::StrCat(*group, "/"), absl::StrCat(hierarchy->group, "/")))
    group = group->substr(hierarchy->group.size());
  for (std::string path = *group;; path.erase(path.rfind('/'))) {
    while (!path.empty() && path.back() == '/')
      path.pop_back();
    least = std::min(least, bandwidth(root + hierarchy->folder + path, isSecond));
    if (path.rfind('/') == std::string::npos)
      return least;
  }
}

} // namespace

int dovetail::runtime::countCores(const std::string &root) {
  double most = static_cast<double>(allowedProcessors().size());
  for (bool isSecond : {true, false})
    most = std::min(most, bandwidthOfGroups(root, isSecond));
  return std::max(1, static_cast<int>(most));
}

void Cores::count(int processes) { availableCores = std::max(1, countCores() / std::max(1, processes)); }

int Cores::available() {
  int cores = availableCores.load(std::memory_order_relaxed);
  if (cores == 0) {
    count();
    cores = availableCores;
  }
  return cores;
}
