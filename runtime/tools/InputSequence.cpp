//===- InputSequence.cpp - What inputs are in each step -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/InputSequence.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <glob.h>
#include <sys/stat.h>

using namespace dovetail;
using namespace dovetail::tools;
using layout::Box;

namespace {

/// One index of the first dimension of a tensor.
class SliceSource : public InputSource {
public:
  SliceSource(std::shared_ptr<InputSource> whole, int64_t index)
      : InputSource(whole->type(), {whole->shape().begin() + 1, whole->shape().end()}), whole(std::move(whole)),
        index(index) {}

  absl::Status read(const Box &box, std::byte *target) const override {
    std::vector<layout::Interval> intervals = {{index, index + 1}};
    for (int dim = 0; dim < box.rank(); ++dim)
      intervals.push_back(box[dim]);
    return whole->read(Box(std::move(intervals)), target);
  }

private:
  std::shared_ptr<InputSource> whole;
  int64_t index;
};

/// Whether `a` comes before `b`, where digits that follow each other are one number.
bool isBefore(absl::string_view a, absl::string_view b) {
  auto takeNumber = [](absl::string_view &text) {
    size_t begin = 0, end;
    while (begin < text.size() && text[begin] == '0')
      ++begin;
    for (end = begin; end < text.size() && absl::ascii_isdigit(text[end]);)
      ++end;
    absl::string_view digits = text.substr(begin, end - begin);
    text.remove_prefix(end);
    return digits;
  };
  absl::string_view restA = a, restB = b;
  while (!restA.empty() && !restB.empty()) {
    if (absl::ascii_isdigit(restA[0]) && absl::ascii_isdigit(restB[0])) {
      absl::string_view numberA = takeNumber(restA), numberB = takeNumber(restB);
      if (numberA != numberB)
        return std::pair(numberA.size(), numberA) < std::pair(numberB.size(), numberB);
      continue;
    }
    if (restA[0] != restB[0])
      return restA[0] < restB[0];
    restA.remove_prefix(1);
    restB.remove_prefix(1);
  }
  return restA.size() != restB.size() ? restA.size() < restB.size() : a < b;
}

} // namespace

InputSequence::InputSequence(std::shared_ptr<InputSource> source, bool isStacked, std::string file)
    : source(std::move(source)), isStacked(isStacked) {
  if (!file.empty())
    names.push_back(std::move(file));
}

std::optional<int64_t> InputSequence::length() const {
  if (hasFiles())
    return static_cast<int64_t>(names.size());
  return isStacked ? std::optional(source->shape()[0]) : std::nullopt;
}

absl::StatusOr<std::shared_ptr<InputSource>> InputSequence::open(int64_t step) const {
  if (!hasFiles())
    return isStacked ? std::make_shared<SliceSource>(source, step) : source;
  absl::StatusOr<std::unique_ptr<InputSource>> opened = opener(names[step]);
  if (!opened.ok())
    return opened.status();
  return std::shared_ptr<InputSource>(*std::move(opened));
}

bool tools::isPattern(const std::string &path) {
  struct stat info;
  return path.find_first_of("*?[") != std::string::npos && ::stat(path.c_str(), &info) != 0;
}

absl::StatusOr<std::vector<std::string>> tools::expandPattern(const std::string &pattern) {
  glob_t found = {};
  std::vector<std::string> files;
  int code = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  if (code == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (code == GLOB_NOSPACE)
    return absl::ResourceExhaustedError(absl::StrCat("not enough memory for the files that '", pattern, "' names"));
  if (code == GLOB_ABORTED)
    return absl::PermissionDeniedError(absl::StrCat("cannot read the folders that '", pattern, "' names"));
  if (files.empty())
    return absl::NotFoundError(absl::StrCat("there is no file '", pattern, "'"));
  std::sort(files.begin(), files.end(), [](const std::string &a, const std::string &b) { return isBefore(a, b); });
  return files;
}
