//===- OutputFiles.cpp - Outputs that are written in parts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/OutputFiles.h"

#include "Npy.h"
#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/tools/InputSource.h"
#include "dovetail/tools/Unfinished.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <random>
#include <set>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

/// How long files of another machine may take to be seen on this one.
constexpr auto patience = std::chrono::seconds(10);

/// Errors are in errno.
bool writeAt(int file, int64_t offset, const std::byte *bytes, int64_t count) {
  while (count > 0) {
    ssize_t written = ::pwrite(file, bytes, static_cast<size_t>(count), offset);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return false;
    bytes += written;
    offset += written;
    count -= written;
  }
  return true;
}

} // namespace

absl::Status tools::agree(runtime::ProgramRunner &runner, const absl::Status &own) {
  absl::StatusOr<std::vector<std::string>> all =
      runner.share(own.ok() ? "" : absl::StrCat(static_cast<int>(own.code()), " ", std::string(own.message())));
  if (!own.ok() || !all.ok())
    return own.ok() ? all.status() : own;
  for (const std::string &other : *all) {
    std::pair<std::string, std::string> parts = absl::StrSplit(other, absl::MaxSplits(' ', 1));
    int code = 0;
    if (!other.empty() && absl::SimpleAtoi(parts.first, &code))
      return absl::Status(static_cast<absl::StatusCode>(code), parts.second);
  }
  return absl::OkStatus();
}

absl::Status tools::compareOptions(runtime::ProgramRunner &runner, const std::map<std::string, std::string> &options) {
  std::vector<std::string> texts;
  for (const auto &[name, value] : options)
    texts.push_back(absl::StrCat(name, "=", value));
  const std::string separator(1, '\0');
  absl::StatusOr<std::vector<std::string>> all = runner.share(absl::StrJoin(texts, separator));
  if (!all.ok())
    return all.status();
  for (size_t rank = 0; rank < all->size(); ++rank) {
    if ((*all)[rank] == all->front())
      continue;
    std::vector<std::string> first = absl::StrSplit(all->front(), separator),
                             other = absl::StrSplit((*all)[rank], separator);
    size_t at = std::mismatch(first.begin(), first.end(), other.begin(), other.end()).first - first.begin();
    std::string name = at < first.size() ? first[at].substr(0, first[at].find('=')) : "options";
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " was given other ", name, " than rank 0; start all processes with the same ones"));
  }
  return absl::OkStatus();
}

absl::Status OutputFiles::problem(size_t file) const {
  return runtime::fileError(errno, absl::StrCat("cannot write '", files[file].path, "'"));
}

absl::Status OutputFiles::create(const runtime::Plan &plan) {
  for (size_t i = 0; i < files.size(); ++i) {
    if (absl::Status status = runtime::checkReplaceable(files[i].path); !status.ok())
      return status;
    handles[i] = ::open(temporaries[i].c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (handles[i] < 0)
      return problem(i);
    const runtime::PortInfo &port = plan.outputs[files[i].output];
    if (absl::Status status = shapeFile(i, port.type); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

void OutputFiles::setShape(size_t file, runtime::ElementType type, const std::vector<int64_t> &shape) {
  shapes[file] = shape;
  sizes[file] = layout::Box::ofShape(shape).volume() * runtime::elementSize(type);
}

absl::Status OutputFiles::shapeFile(size_t file, runtime::ElementType type) const {
  std::string header = npyHeader(type, shapes[file], static_cast<size_t>(begins[file]));
  bool isWell = writeAt(handles[file], 0, reinterpret_cast<const std::byte *>(header.data()),
                        static_cast<int64_t>(header.size())) &&
                ::ftruncate(handles[file], begins[file] + sizes[file]) == 0;
  return isWell ? absl::OkStatus() : problem(file);
}

absl::Status OutputFiles::resize(runtime::ProgramRunner &runner, absl::Span<const std::vector<int64_t>> extents) {
  const runtime::Plan &plan = runner.getProgram().getPlan();
  for (size_t i = 0; i < files.size(); ++i) {
    const std::vector<int64_t> &shape = extents[files[i].output];
    if (shape == shapes[i])
      continue;
    runtime::ElementType type = plan.outputs[files[i].output].type;
    setShape(i, type, shape);
    // Elements begin where they did, so others need not wait.
    if (absl::Status status = runner.isFirst() ? shapeFile(i, type) : absl::OkStatus(); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status OutputFiles::find() {
  for (size_t i = 0; i < files.size(); ++i) {
    auto deadline = std::chrono::steady_clock::now() + patience;
    do {
      handles[i] = ::open(temporaries[i].c_str(), O_WRONLY | O_CLOEXEC);
      if (handles[i] >= 0 || (errno != ENOENT && errno != ESTALE))
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    } while (std::chrono::steady_clock::now() < deadline);
    if (handles[i] < 0) {
      absl::Status status = problem(i);
      return absl::Status(status.code(), absl::StrCat(status.message(), ", which rank 0 has created as '",
                                                      temporaries[i], "'; give a folder that all machines share"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> OutputFiles::makeSuffix(runtime::ProgramRunner &runner) {
  absl::StatusOr<std::vector<std::string>> suffixes = runner.share(absl::StrCat(
      ".", absl::Hex(std::random_device()(), absl::kZeroPad8), absl::Hex(std::random_device()(), absl::kZeroPad8)));
  if (!suffixes.ok())
    return suffixes.status();
  return suffixes->front();
}

void OutputFiles::setNames(const runtime::Plan &plan, const std::string &suffix) {
  for (const File &file : files) {
    const runtime::PortInfo &port = plan.outputs[file.output];
    begins.push_back(static_cast<int64_t>(npyHeader(port.type, port.shape).size()));
    sizes.emplace_back();
    shapes.emplace_back();
    setShape(shapes.size() - 1, port.type, port.shape);
    temporaries.push_back(file.path + suffix);
    rememberUnfinished(temporaries.back());
  }
}

absl::Status OutputFiles::open(runtime::ProgramRunner &runner) {
  const runtime::Plan &plan = runner.getProgram().getPlan();
  absl::StatusOr<std::string> suffix = makeSuffix(runner);
  if (!suffix.ok())
    return suffix.status();
  // All know the names before there are such files, so that whoever is left removes them.
  setNames(plan, *suffix);
  if (absl::Status created = agree(runner, runner.isFirst() ? create(plan) : absl::OkStatus()); !created.ok())
    return created;
  return agree(runner, runner.isFirst() ? absl::OkStatus() : find());
}

bool OutputFiles::has(size_t output) const {
  return std::any_of(files.begin(), files.end(), [&](const File &file) { return file.output == output; });
}

absl::Status OutputFiles::write(size_t output, const layout::Box &box, const std::byte *elements) const {
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].output != output)
      continue;
    int64_t elementBytes = sizes[i] / std::max<int64_t>(1, layout::Box::ofShape(shapes[i]).volume());
    absl::Status status = forEachRun(box, shapes[i], [&](int64_t offset, int64_t at, int64_t count) {
      bool isWell =
          writeAt(handles[i], begins[i] + offset * elementBytes, elements + at * elementBytes, count * elementBytes);
      return isWell ? absl::OkStatus() : problem(i);
    });
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status OutputFiles::close() {
  absl::Status status;
  for (size_t i = 0; i < files.size(); ++i) {
    bool isWell = ::fsync(handles[i]) == 0 || errno == EINVAL; // What cannot be synchronised is no disk.
    if (!isWell && status.ok())
      status = problem(i);
    if (::close(handles[i]) != 0 && status.ok())
      status = problem(i);
    handles[i] = -1;
  }
  return status;
}

absl::Status OutputFiles::rename() const {
  std::set<std::string> folders;
  for (size_t i = 0; i < files.size(); ++i) {
    if (::rename(temporaries[i].c_str(), files[i].path.c_str()) != 0)
      return problem(i);
    folders.insert(folderOf(files[i].path));
  }
  for (const std::string &folder : folders)
    syncFolder(folder);
  return absl::OkStatus();
}

absl::Status OutputFiles::publish(runtime::ProgramRunner &runner) {
  if (absl::Status status = agree(runner, close()); !status.ok())
    return status;
  // From here on files are whole, under whichever name.
  absl::Status status = agree(runner, runner.isFirst() ? rename() : absl::OkStatus());
  if (status.ok())
    keep();
  return status;
}

void OutputFiles::keep() {
  for (const std::string &temporary : temporaries)
    forgetUnfinished(temporary);
  temporaries.clear();
}

OutputFiles::~OutputFiles() {
  for (int handle : handles)
    if (handle >= 0)
      ::close(handle);
  for (const std::string &temporary : temporaries) {
    ::unlink(temporary.c_str());
    forgetUnfinished(temporary);
  }
}
