//===- StepPorts.cpp - Inputs and outputs of many steps -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepPorts.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <new>

using namespace dovetail;
using namespace dovetail::tools;
using layout::Box;
using runtime::MemoryView;

namespace {

constexpr int64_t mostBytes = 16 << 20;

/// What `body` returns; a lack of memory is an error, too.
template <typename Body> absl::Status guard(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return absl::ResourceExhaustedError("there is not enough memory for what is read and written beside the run");
  }
}

/// Calls `body` for slabs of `box` that lie in one piece in a row-major array of it, with the number of their first
/// element.
template <typename Body> absl::Status forEachSlab(const Box &box, int64_t elementBytes, Body body) {
  int dim = 0;
  while (dim < box.rank() && box[dim].size() == 1)
    ++dim;
  if (dim == box.rank())
    return body(box, 0);
  int64_t row = box.volume() / box[dim].size(), rows = std::max<int64_t>(1, mostBytes / (row * elementBytes));
  absl::Status status;
  for (int64_t lo = box[dim].lo; lo < box[dim].hi && status.ok(); lo += rows) {
    Box slab = box;
    slab[dim] = {lo, std::min(lo + rows, box[dim].hi)};
    status = body(slab, (lo - box[dim].lo) * row);
  }
  return status;
}

absl::Status ofInput(const runtime::Plan &plan, size_t input, const absl::Status &status) {
  if (status.ok())
    return status;
  return absl::Status(status.code(), absl::StrCat("input '", plan.inputs[input].name, "': ", status.message()));
}

} // namespace

//===----------------------------------------------------------------------===//
// StepReader
//===----------------------------------------------------------------------===//

StepReader::StepReader(const runtime::Plan &plan, const std::vector<InputSequence> &inputs,
                       const std::vector<int> &ranks, int64_t first, int64_t end)
    : plan(plan), inputs(inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    for (int rank : ranks) {
      Box box = plan.tensorBox(plan.inputs[i].tensor, rank);
      if (!inputs[i].length() || box.empty())
        continue;
      wanted += box.volume();
      // Ranks may have the same.
      if (std::none_of(parts.begin(), parts.end(),
                       [&](const Part &part) { return part.input == i && part.box == box; }))
        parts.push_back({i, std::move(box), {}});
    }
  if (wanted > 0)
    thread = std::thread([this, first, end] { work(first, end); });
}

StepReader::~StepReader() {
  {
    std::lock_guard lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

absl::Status StepReader::readStep(int64_t step) {
  std::vector<std::shared_ptr<InputSource>> sources(inputs.size());
  for (Part &part : parts) {
    if (!sources[part.input]) {
      absl::StatusOr<std::shared_ptr<InputSource>> opened = inputs[part.input].open(step);
      if (!opened.ok())
        return ofInput(plan, part.input, opened.status());
      sources[part.input] = *std::move(opened);
    }
    int64_t elementBytes = runtime::elementSize(plan.inputs[part.input].type);
    part.elements.resize(part.box.volume() * elementBytes);
    absl::Status read = forEachSlab(part.box, elementBytes, [&](const Box &slab, int64_t first) {
      {
        std::lock_guard lock(mutex);
        if (isOver)
          return absl::CancelledError("nobody needs it any more");
      }
      return sources[part.input]->read(slab, part.elements.data() + first * elementBytes);
    });
    if (!read.ok())
      return ofInput(plan, part.input, read);
  }
  return absl::OkStatus();
}

void StepReader::work(int64_t first, int64_t end) {
  for (int64_t step = first; step < end; ++step) {
    absl::Status read = guard([&] { return readStep(step); });
    std::unique_lock lock(mutex);
    status = read;
    isThere = true;
    taken = 0;
    changed.notify_all();
    if (!read.ok())
      return;
    changed.wait(lock, [&] { return !isThere || isOver; });
    if (isOver)
      return;
  }
}

absl::Status StepReader::read(size_t input, const Box &box, std::byte *elements) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return isThere; });
  if (!status.ok())
    return status;
  lock.unlock();
  runtime::ElementType type = plan.inputs[input].type;
  auto part = std::find_if(parts.begin(), parts.end(),
                           [&](const Part &part) { return part.input == input && part.box.contains(box); });
  runtime::copyBox(MemoryView::rowMajor(type, box, elements),
                   MemoryView::rowMajor(type, part->box, part->elements.data()), box);
  lock.lock();
  taken += box.volume();
  if (taken < wanted)
    return absl::OkStatus();
  isThere = false;
  changed.notify_all();
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// StepWriter
//===----------------------------------------------------------------------===//

StepWriter::~StepWriter() {
  {
    std::lock_guard lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  thread.join();
}

void StepWriter::begin(int64_t number, OutputFiles &target) {
  std::lock_guard lock(mutex);
  step = number;
  files = &target;
}

absl::Status StepWriter::write(size_t output, const Box &box, const std::byte *elements, int64_t bytes) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return !isEnding; });
  if (!status.ok())
    return status;
  queue.push_back({step, files, output, box, {elements, elements + bytes}});
  changed.notify_all();
  return absl::OkStatus();
}

void StepWriter::end() {
  std::lock_guard lock(mutex);
  isEnding = true;
  queue.push_back({step, files, 0, {}, {}});
  changed.notify_all();
}

absl::Status StepWriter::wait() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return !isEnding; });
  return status;
}

absl::Status StepWriter::carryOut(const Part &part) {
  if (part.elements.empty())
    return part.files->isOpen() ? part.files->close() : absl::OkStatus();
  if (!part.files->isOpen())
    if (absl::Status status = part.files->find(); !status.ok())
      return status;
  return part.files->write(part.output, part.box, part.elements.data());
}

void StepWriter::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return !queue.empty() || isOver; });
    if (isOver)
      return;
    Part part = std::move(queue.front());
    queue.pop_front();
    absl::Status result = status;
    lock.unlock();
    if (result.ok())
      result = guard([&] { return carryOut(part); });
    lock.lock();
    if (!result.ok() && status.ok())
      status = absl::Status(result.code(), absl::StrCat("step ", part.step + 1, ": ", result.message()));
    if (part.elements.empty())
      isEnding = false;
    changed.notify_all();
  }
}

//===----------------------------------------------------------------------===//
// StepPorts
//===----------------------------------------------------------------------===//

absl::Status StepPorts::read(size_t input, const Box &box, std::byte *elements) {
  if (isIdle || initial[input] || !inputs[input].length()) {
    absl::StatusOr<std::shared_ptr<InputSource>> source =
        initial[input] && !isIdle ? initial[input] : inputs[input].open(0);
    absl::Status status = source.ok() ? (*source)->read(box, elements) : source.status();
    if (status.ok() && isIdle)
      spoil(plan.inputs[input].type, elements, box.volume());
    return ofInput(plan, input, status);
  }
  return reader->read(input, box, elements);
}

absl::Status StepPorts::write(size_t output, const Box &box, const std::byte *elements) {
  if (isIdle)
    return absl::OkStatus();
  runtime::ElementType type = plan.outputs[output].type;
  if (writer)
    return writer->write(output, box, elements, box.volume() * runtime::elementSize(type));
  Summary part;
  part.add(type, elements, box.volume());
  std::lock_guard lock(mutex);
  summaries[output].add(part);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Summary>> StepPorts::takeSummaries(runtime::ProgramRunner &runner) {
  absl::StatusOr<std::vector<Summary>> result = shareSummaries(runner, summaries);
  summaries.assign(summaries.size(), {});
  return result;
}
