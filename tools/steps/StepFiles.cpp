//===- StepFiles.cpp - Files that a run in steps writes ---===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepFiles.h"

#include "dovetail/tools/Unfinished.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <glob.h>
#include <map>
#include <set>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <unordered_set>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

/// What names of files begin with that belong to a run with this output.
std::string baseOf(const std::string &output) {
  std::string folder = output.find('/') == std::string::npos ? "" : folderOf(output);
  std::string name = absl::StrReplaceAll(output.substr(folder.size()), {{stepPlace, ""}, {namePlace, ""}});
  name = std::string(absl::StripSuffix(name, ".npy"));
  name.erase(name.find_last_not_of("-_.") + 1);
  return absl::StrCat(folder, name.empty() ? "run" : name);
}

/// One name for a file, whichever of its names is given.
std::string canonical(const std::string &path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  std::filesystem::path result = std::filesystem::weakly_canonical(absolute, error);
  return (error ? absolute : result).string();
}

/// The same of many files in few folders.
class Names {
public:
  /// But for links, which are names of their own.
  std::string inFolder(const std::string &path) {
    std::string folder = folderOf(path);
    auto [entry, isNew] = folders.try_emplace(folder);
    if (isNew)
      entry->second = canonical(folder + "/.");
    return absl::StrCat(entry->second, "/", path.find('/') == std::string::npos ? path : path.substr(folder.size()));
  }

private:
  std::map<std::string, std::string> folders;
};

} // namespace

std::string StepFiles::nameOf(int64_t step) const {
  if (named == sequences.size())
    return {};
  // Without folder and ending.
  return std::filesystem::path(sequences[named].files()[step]).stem().string();
}

absl::Status StepFiles::place(const std::string &artifact, bool keepsState) {
  for (const Destination &destination : destinations) {
    auto fail = [&](const std::string &what) {
      return absl::InvalidArgumentError(absl::StrCat("--output ", destination.path, ": ", what));
    };
    size_t slash = destination.path.rfind('/');
    if (destination.all)
      return fail("the steps of a run write arrays, no archives; write NAME=FILE.npy for each output");
    if (total > 1 && !hasPlaces(destination.path))
      return fail(absl::StrCat(total, " steps would write to it; put {step} into its name",
                               named < sequences.size() ? ", or {name} for the name of the input's file" : ""));
    if (slash != std::string::npos && hasPlaces(destination.path.substr(0, slash)))
      return fail(
          "{step} and {name} can be part of the name of a file, but not of a folder; move them behind the last '/'");
    if (absl::StrContains(destination.path, namePlace) && named == sequences.size())
      return fail("{name} stands for the name of an input's file of the step, but no input has a file for each step; "
                  "write {step}");
    patterns.push_back({destination.path, destination.output});
  }
  if (keepsState) {
    // Whatever the order in which they are given.
    auto first = std::min_element(destinations.begin(), destinations.end(), [](const auto &a, const auto &b) {
      return std::tie(a.output, a.path) < std::tie(b.output, b.path);
    });
    base = baseOf(first->path) + ".resume";
    for (const runtime::PortInfo &input : plan.inputs)
      if (input.fedBy >= 0 && std::none_of(patterns.begin(), patterns.end(), [&](const Pattern &pattern) {
            return pattern.output == static_cast<size_t>(input.fedBy);
          }))
        patterns.push_back(
            {absl::StrCat(base, ".", input.fedBy, ".", stepPlace, ".npy"), static_cast<size_t>(input.fedBy)});
  }
  return checkPaths(artifact);
}

absl::Status StepFiles::checkPaths(const std::string &artifact) const {
  Names names;
  // Calls `body` for each file that is read, then for each that is written.
  auto forEachFile = [&](absl::FunctionRef<absl::Status(const std::string &path, std::string name, bool isRead)> body) {
    auto read = [&](const std::string &path) {
      struct stat info;
      if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode))
        (void)body(path, canonical(path), /*isRead=*/true);
      (void)body(path, names.inFolder(path), /*isRead=*/true);
    };
    read(artifact);
    for (const InputSequence &sequence : sequences)
      std::for_each(sequence.files().begin(), sequence.files().end(), read);
    absl::Status status;
    for (int64_t step = 0; step < total && status.ok(); ++step)
      for (const OutputFiles::File &file : of(step))
        if (status.ok())
          status = body(file.path, names.inFolder(file.path), /*isRead=*/false);
    return status;
  };
  // Names of very many steps take too much memory, but few have a number in common.
  std::vector<size_t> numbers;
  (void)forEachFile([&](const std::string &, std::string name, bool) {
    numbers.push_back(std::hash<std::string>()(name));
    return absl::OkStatus();
  });
  std::sort(numbers.begin(), numbers.end());
  std::unordered_set<size_t> common;
  for (size_t i = 1; i < numbers.size(); ++i)
    if (numbers[i] == numbers[i - 1])
      common.insert(numbers[i]);
  if (common.empty())
    return absl::OkStatus();
  std::unordered_set<std::string> read, written;
  return forEachFile([&](const std::string &path, std::string name, bool isRead) -> absl::Status {
    if (!common.contains(std::hash<std::string>()(name)))
      return absl::OkStatus();
    const char *what = read.contains(name) ? "an input" : written.contains(name) ? "another output" : nullptr;
    (isRead ? read : written).insert(std::move(name));
    if (isRead || !what)
      return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' would be written over ", what, "; give it another name"));
  });
}

std::vector<OutputFiles::File> StepFiles::of(int64_t step) const {
  std::vector<OutputFiles::File> files;
  std::string name = nameOf(step);
  for (const Pattern &pattern : patterns)
    files.push_back({fillPlaces(pattern.path, step, name), pattern.output});
  return files;
}

std::vector<RunManifest::State> StepFiles::stateAfter(int64_t step) const {
  std::vector<RunManifest::State> state;
  for (size_t i = 0; i < plan.inputs.size() && step >= 0; ++i)
    for (size_t j = 0; j < patterns.size(); ++j)
      if (plan.inputs[i].fedBy == static_cast<int32_t>(patterns[j].output)) {
        state.push_back({i, fillPlaces(patterns[j].path, step, nameOf(step)), j >= destinations.size()});
        break;
      }
  return state;
}

absl::Status StepFiles::lock(const std::string &suffix) {
  std::set<std::string> taken;
  Names names;
  for (const Destination &destination : destinations) {
    std::string path = baseOf(destination.path) + ".lock";
    // One file may be named in several ways.
    if (!taken.insert(names.inFolder(path)).second)
      continue;
    absl::StatusOr<std::unique_ptr<RunLock>> lock = RunLock::take(path, suffix);
    if (!lock.ok())
      return lock.status();
    if (!(*lock)->getRefusal().empty() && locks.empty())
      std::fprintf(stderr,
                   "dovetail: remark: '%s' cannot be locked (%s); let no other run write files of these names\n",
                   path.c_str(), (*lock)->getRefusal().c_str());
    for (const Pattern &pattern : patterns)
      removeUnfinished(pattern.path, (*lock)->getLeftSuffix());
    locks.push_back(*std::move(lock));
  }
  return absl::OkStatus();
}

void StepFiles::clean(const RunManifest::Left &left, int64_t done) const {
  for (const std::string &output : left.outputs) {
    removeUnfinished(output, left.suffix);
    // An output that this run does not have: nobody else would remove it.
    std::string path = baseOf(output) + ".lock";
    if (std::any_of(destinations.begin(), destinations.end(),
                    [&](const Destination &destination) { return baseOf(destination.path) == baseOf(output); }) ||
        ::access(path.c_str(), F_OK) != 0)
      continue;
    // It is gone when it is given back.
    (void)RunLock::take(path, left.suffix);
  }
  std::string states = absl::StrCat(base, ".", stepPlace, ".npy");
  removeUnfinished(states, left.suffix);
  std::set<std::string> needed;
  for (const RunManifest::State &state : stateAfter(done - 1))
    needed.insert(state.path);
  glob_t found = {};
  if (::glob((makePattern(base) + ".[0-9]*.[0-9]*.npy").c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i)
      if (!needed.contains(found.gl_pathv[i]))
        ::unlink(found.gl_pathv[i]);
  ::globfree(&found);
}
