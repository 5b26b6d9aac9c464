//===- RunCounts.cpp - How much there is in a run -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunCounts.h"

#include "PortChecks.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cstring>

using namespace dovetail;
using namespace dovetail::runtime;

RunCounts::RunCounts(const Plan &plan) : plan(plan), sources(findSources(plan)), values(plan.counts.size()) { reset(); }

void RunCounts::reset() {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = plan.counts[i].bound;
}

bool RunCounts::areComputed() const {
  return std::any_of(plan.counts.begin(), plan.counts.end(), [](const CountInfo &count) { return !count.isGiven; });
}

void RunCounts::setLengths(absl::Span<const std::vector<int64_t>> shapes) {
  for (size_t i = 0; i < shapes.size(); ++i)
    for (size_t dim = 0; dim < shapes[i].size(); ++dim)
      if (int32_t count = plan.getCount(plan.inputs[i], dim); count >= 0)
        values[count] = shapes[i][dim];
}

std::vector<RunCounts::Source> RunCounts::findSources(const Plan &plan) {
  std::vector<Source> sources;
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    for (size_t dim = 0; plan.inputs[i].fedBy >= 0 && dim < plan.inputs[i].shape.size(); ++dim)
      if (int32_t length = plan.getCount(plan.inputs[i], dim); length >= 0)
        sources.push_back({i, dim, length, plan.getCount(plan.outputs[plan.inputs[i].fedBy], dim)});
  return sources;
}

int64_t RunCounts::extentOf(const Source &source) const {
  return source.count >= 0 ? last[source.count] : plan.outputs[plan.inputs[source.input].fedBy].shape[source.dim];
}

absl::Status RunCounts::checkFed() const {
  for (const Source &source : sources) {
    const PortInfo &input = plan.inputs[source.input];
    const std::string &output = plan.outputs[input.fedBy].name, &length = plan.counts[source.length].name;
    int64_t extent = extentOf(source);
    if (extent > input.shape[source.dim])
      return absl::InvalidArgumentError(
          absl::StrCat("output '", output, "' has ", extent, " in dimension ", source.dim, ", but input '", input.name,
                       "', which it is in the next run, has room for ", input.shape[source.dim],
                       "; run fewer steps, or compile the model with a larger --bound for '", length, "'"));
    // The first that says what the length is.
    const Source &other =
        *std::find_if(sources.begin(), sources.end(), [&](const Source &each) { return each.length == source.length; });
    if (extentOf(other) != extent)
      return absl::InvalidArgumentError(absl::StrCat(
          "'", length, "' would be ", extentOf(other), " in the next run by dimension ", other.dim, " of output '",
          plan.outputs[plan.inputs[other.input].fedBy].name, "', but ", extent, " by dimension ", source.dim,
          " of output '", output, "'; run fewer steps, or export the model with a length of its own for input '",
          input.name, "'"));
  }
  return absl::OkStatus();
}

void RunCounts::feed() {
  for (const Source &source : sources)
    values[source.length] = extentOf(source);
}

absl::Status RunCounts::setLengths(PortParts &parts, bool isFed, RankGroup &group) {
  if (std::none_of(plan.counts.begin(), plan.counts.end(), [](const CountInfo &count) { return count.isGiven; }))
    return absl::OkStatus();
  std::vector<std::vector<int64_t>> shapes;
  absl::Status status;
  for (size_t i = 0; i < plan.inputs.size() && status.ok(); ++i) {
    if (isFed && plan.inputs[i].fedBy >= 0) {
      shapes.push_back(portOfRun(plan.inputs[i]).shape);
      continue;
    }
    absl::StatusOr<std::vector<int64_t>> shape = parts.shape(i);
    status = shape.status();
    if (status.ok())
      shapes.push_back(shape->empty() ? plan.inputs[i].shape : *std::move(shape));
  }
  if (status.ok())
    status = checkShapes(plan, shapes);
  if (status.ok())
    setLengths(shapes);
  if (group.isWhole())
    return status;
  std::string lengths;
  for (size_t i = 0; i < values.size(); ++i)
    if (plan.counts[i].isGiven)
      absl::StrAppend(&lengths, lengths.empty() ? "" : ", ", plan.counts[i].name, " = ", values[i]);
  // All processes stop, whichever of them was given something wrong.
  absl::StatusOr<std::vector<std::string>> all =
      group.share(status.ok() ? absl::StrCat("=", lengths)
                              : absl::StrCat(static_cast<int>(status.code()), " ", std::string(status.message())));
  if (!all.ok())
    return all.status();
  for (size_t rank = 0; rank < all->size() && status.ok(); ++rank) {
    std::pair<std::string, std::string> words = absl::StrSplit((*all)[rank], absl::MaxSplits(' ', 1));
    if (int code = 0; absl::SimpleAtoi(words.first, &code) && code != 0)
      status = ofRank(static_cast<int>(rank), absl::Status(static_cast<absl::StatusCode>(code), words.second));
  }
  for (size_t rank = 0; rank < all->size() && status.ok(); ++rank)
    if (absl::string_view own = (*all)[rank], first = all->front(); own != first)
      status = absl::InvalidArgumentError(absl::StrCat("rank ", rank, " was given inputs with ", own.substr(1),
                                                       ", but rank 0 with ", first.substr(1),
                                                       "; give all processes the same"));
  return status;
}

absl::Status RunCounts::learn(int rank, Session &session, absl::Span<const OutputPieces> pieces, RankGroup &group) {
  std::vector<int64_t> computed;
  for (size_t i = plan.outputs.size(); rank == 0 && i < pieces.size(); ++i) {
    MemoryView view = MemoryView::rowMajor(ElementType::I64, layout::Box(), &computed.emplace_back());
    if (absl::Status status = session.readOutput(i, view, pieces[i].of(0)); !status.ok())
      return status;
  }
  if (!group.isWhole()) {
    absl::StatusOr<std::vector<std::string>> all =
        group.share(std::string(reinterpret_cast<const char *>(computed.data()), computed.size() * sizeof(int64_t)));
    if (!all.ok())
      return all.status();
    computed.resize(all->front().size() / sizeof(int64_t));
    std::memcpy(computed.data(), all->front().data(), computed.size() * sizeof(int64_t));
  }
  auto next = computed.begin();
  for (size_t i = 0; i < values.size() && next != computed.end(); ++i)
    if (!plan.counts[i].isGiven)
      values[i] = *next++;
  return absl::OkStatus();
}

absl::Status RunCounts::check() const {
  for (size_t i = 0; i < values.size(); ++i)
    if (const CountInfo &count = plan.counts[i]; values[i] < 0 || values[i] > count.bound)
      return absl::InternalError(
          absl::StrCat("count '", count.name, "' is ", values[i], ", but at most ", count.bound));
  return absl::OkStatus();
}

PortInfo RunCounts::portOfRun(const PortInfo &port) const {
  PortInfo result = port;
  for (size_t dim = 0; dim < port.shape.size(); ++dim)
    if (int32_t count = plan.getCount(port, dim); count >= 0)
      result.shape[dim] = values[count];
  return result;
}

std::vector<std::vector<int64_t>> RunCounts::outputShapes() const {
  std::vector<std::vector<int64_t>> shapes;
  for (const PortInfo &output : plan.outputs)
    shapes.push_back(portOfRun(output).shape);
  return shapes;
}
