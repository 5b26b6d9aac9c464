//===- RunManifest.cpp - How far a run of many steps has come -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunManifest.h"

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/tools/Unfinished.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <glob.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::tools;
using nlohmann::json;

namespace {

/// Incremented when what an older version wrote would be misread.
constexpr int manifestVersion = 1;

/// What tells a file from another one that takes its place: its size, and when it was written.
std::string identify(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return "none";
  return absl::StrCat(info.st_size, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
}

constexpr uint64_t hashBegin = 0xcbf29ce484222325;

/// FNV-1a, with an end to each text.
void extend(uint64_t &hash, const std::string &text) {
  for (unsigned char byte : text) {
    hash ^= byte;
    hash *= 0x100000001b3;
  }
  hash *= 0x100000001b3;
}

} // namespace

uint64_t tools::hashTexts(const std::vector<std::string> &texts) {
  uint64_t hash = hashBegin;
  for (const std::string &text : texts)
    extend(hash, text);
  return hash;
}

RunManifest::RunManifest(std::string path, std::string artifact, const runtime::Program &program,
                         const std::vector<std::string> &specs, const std::vector<std::string> &outputs,
                         const std::vector<InputSequence> &inputs)
    : path(std::move(path)), artifact(std::move(artifact)), plan(program.getPlan()), inputs(inputs),
      digests(inputs.size()) {
  content = std::make_unique<json>(json{{"dovetail_run", manifestVersion},
                                        {"program", absl::StrCat(absl::Hex(program.getChecksum(), absl::kZeroPad16))},
                                        {"inputs", specs},
                                        {"outputs", outputs}});
}

RunManifest::~RunManifest() = default;

absl::Status RunManifest::misfit(const std::string &what) const {
  return absl::InvalidArgumentError(absl::StrCat("--resume: '", path, "' is of another run: ", what,
                                                 "; leave out --resume to begin with the first step"));
}

std::string RunManifest::digest(size_t input, int64_t done) {
  Digest &known = digests[input];
  const std::vector<std::string> &files = inputs[input].files();
  // One file is the same in all steps.
  int64_t count = inputs[input].hasFiles() ? std::min<int64_t>(done, files.size()) : files.size();
  if (known.steps > count || known.steps == 0)
    known = {hashBegin, 0};
  for (; known.steps < count; ++known.steps) {
    extend(known.value, files[known.steps]);
    extend(known.value, identify(files[known.steps]));
  }
  return absl::StrCat(count, " ", absl::Hex(known.value, absl::kZeroPad16));
}

absl::StatusOr<std::optional<RunManifest::Left>> RunManifest::read() {
  errno = 0;
  std::ifstream file(path);
  if (!file) {
    if (errno == ENOENT)
      return std::nullopt;
    return runtime::fileError(errno, absl::StrCat("cannot open '", path, "'"));
  }
  std::ostringstream text;
  text << file.rdbuf();
  left = std::make_unique<json>(json::parse(text.str(), nullptr, /*allow_exceptions=*/false));
  Left result;
  try {
    if (int version = left->at("dovetail_run").get<int>(); version != manifestVersion)
      return absl::OutOfRangeError(absl::StrCat(
          "'", path, "' was written by another version of Dovetail: it has format ", version,
          ", and this version reads format ", manifestVersion, "; remove it, or resume the run with that version"));
    result.done = left->at("done").get<int64_t>();
    result.suffix = left->at("suffix").get<std::string>();
    // NAME=FILE.npy.
    for (const json &entry : left->at("outputs"))
      result.outputs.push_back(entry.get<std::string>().substr(entry.get<std::string>().rfind('=') + 1));
  } catch (const json::exception &) {
    return absl::OutOfRangeError(absl::StrCat("'", path, "' has no number of complete steps; remove it"));
  }
  // Names of files to remove are made with it.
  if (result.done < 0 || result.done > (int64_t(1) << 40) || !isSuffix(result.suffix))
    return absl::OutOfRangeError(absl::StrCat("'", path, "' is damaged; remove it"));
  return result;
}

absl::Status RunManifest::checkFits(const std::vector<State> &state, int64_t done) {
  try {
    if (left->at("program") != (*content)["program"])
      return misfit(absl::StrCat("it ran another program than '", artifact, "'"));
    for (const auto &[kind, option] : {std::pair("inputs", "--input "), {"outputs", "--output "}}) {
      auto then = left->at(kind).get<std::vector<std::string>>();
      auto now = (*content)[kind].get<std::vector<std::string>>();
      for (const std::string &spec : now)
        if (std::find(then.begin(), then.end(), spec) == then.end())
          return misfit(absl::StrCat("it had no ", option, spec));
      for (const std::string &spec : then)
        if (std::find(now.begin(), now.end(), spec) == now.end())
          return misfit(absl::StrCat("it had ", option, spec));
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      if (left->at("files").at(i) != digest(i, done))
        return misfit(absl::StrCat("the files of input '", plan.inputs[i].name, "' have changed since"));
    for (size_t i = 0; i < state.size() && done > 0; ++i) {
      const json &then = left->at("state").at(i);
      if (then.at("file") != state[i].path || then.at("identity") != identify(state[i].path))
        return misfit(absl::StrCat("'", state[i].path, "', which input '", plan.inputs[state[i].input].name,
                                   "' is fed, has changed since, or was removed"));
    }
  } catch (const json::exception &) {
    return absl::OutOfRangeError(absl::StrCat("'", path, "' is damaged; remove it"));
  }
  return absl::OkStatus();
}

absl::Status RunManifest::write(int64_t done, const std::string &suffix, const std::vector<State> &state) {
  json now = *content;
  now["done"] = done;
  now["suffix"] = suffix;
  now["files"] = json::array();
  for (size_t i = 0; i < inputs.size(); ++i)
    now["files"].push_back(digest(i, done));
  now["state"] = json::array();
  for (const State &entry : state)
    now["state"].push_back({{"input", plan.inputs[entry.input].name},
                            {"file", entry.path},
                            {"identity", identify(entry.path)},
                            {"own", entry.isOwn}});
  return writeText(path, now.dump(2, ' ', false, json::error_handler_t::replace) + "\n", /*onDisk=*/true);
}

void RunManifest::removeTemporaries() const {
  // As `writeText` calls them.
  glob_t found = {};
  if (::glob((makePattern(path) + ".new-????????????????").c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i)
      ::unlink(found.gl_pathv[i]);
  ::globfree(&found);
}
