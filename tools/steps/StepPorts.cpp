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
/// What a process has in memory of inputs of the next step and of outputs of the last one, at most.
constexpr int64_t mostHeld = 24 << 20, mostWaiting = 32 << 20;

/// What `body` returns; a lack of memory is an error, too.
template <typename Body> absl::Status guard(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return absl::ResourceExhaustedError(
        "there is not enough memory to read and write files during the run; free some, or use a larger machine");
  }
}

/// Calls `body` for slabs of `box` that lie in one piece in a row-major array of it, with the number of their first
/// element.
template <typename Body>
absl::Status forEachSlab(const Box &box, int64_t elementBytes, Body body, int64_t most = mostBytes) {
  int dim = 0;
  while (dim < box.rank() && box[dim].size() == 1)
    ++dim;
  if (dim == box.rank())
    return body(box, 0);
  int64_t row = box.volume() / box[dim].size(), rows = std::max<int64_t>(1, most / (row * elementBytes));
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
    : plan(plan), inputs(inputs), sources(inputs.size()) {
  bool hasLengths = std::any_of(plan.counts.begin(), plan.counts.end(),
                                [](const runtime::CountInfo &count) { return count.isGiven; });
  int64_t held = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].length())
      continue;
    // Lengths depend on all, also those of which no rank of this process has anything.
    bool isNeeded = hasLengths;
    for (int rank : ranks) {
      Box box = plan.tensorBox(plan.inputs[i].tensor, rank);
      if (box.empty())
        continue;
      isNeeded = true;
      // Ranks may have the same.
      auto same = std::find_if(parts.begin(), parts.end(),
                               [&](const Part &part) { return part.input == i && part.box == box; });
      takers.push_back(same - parts.begin());
      if (same != parts.end())
        continue;
      int64_t bytes = box.volume() * runtime::elementSize(plan.inputs[i].type);
      bool isHeld = held + bytes <= mostHeld;
      held += isHeld ? bytes : 0;
      parts.push_back({i, std::move(box), isHeld});
    }
    if (isNeeded)
      changing.push_back(i);
  }
  if (!changing.empty())
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
  for (size_t input : changing) {
    absl::StatusOr<std::shared_ptr<InputSource>> opened = inputs[input].open(step);
    if (!opened.ok())
      return ofInput(plan, input, opened.status());
    sources[input] = *std::move(opened);
  }
  for (Part &part : parts) {
    part.now = part.box.intersect(Box::ofShape(sources[part.input]->shape()));
    if (!part.isHeld || part.now.empty())
      continue;
    int64_t elementBytes = runtime::elementSize(plan.inputs[part.input].type);
    part.elements.resize(part.now.volume() * elementBytes);
    absl::Status read = forEachSlab(part.now, elementBytes, [&](const Box &slab, int64_t first) {
      {
        std::lock_guard lock(mutex);
        if (isOver)
          return absl::CancelledError("the file was read ahead, but is not needed");
      }
      return sources[part.input]->read(slab, part.elements.data() + first * elementBytes);
    });
    if (!read.ok())
      return ofInput(plan, part.input, read);
  }
  wanted = 0;
  for (size_t part : takers)
    wanted += parts[part].now.volume();
  at = step;
  return absl::OkStatus();
}

void StepReader::warmUp() {
  constexpr int64_t most = 1 << 20;
  for (const Part &part : parts) {
    if (part.isHeld || part.now.empty())
      continue;
    int64_t elementBytes = runtime::elementSize(plan.inputs[part.input].type);
    // What is wrong comes to light when it is read in earnest.
    absl::Status read = guard([&] {
      std::vector<std::byte> elements;
      auto readSlab = [&](const Box &slab, int64_t) -> absl::Status {
        {
          std::lock_guard lock(mutex);
          if (isOver || isRead)
            return absl::CancelledError("the file is not read ahead any more");
        }
        if (slab.volume() * elementBytes > mostBytes)
          return absl::OkStatus();
        elements.resize(slab.volume() * elementBytes);
        return sources[part.input]->read(slab, elements.data());
      };
      return forEachSlab(part.now, elementBytes, readSlab, most);
    });
    if (!read.ok())
      return;
  }
}

void StepReader::work(int64_t first, int64_t end) {
  for (int64_t step = first; step < end; ++step) {
    absl::Status read = guard([&] { return readStep(step); });
    std::unique_lock lock(mutex);
    status = read;
    isThere = true;
    isRead = false;
    taken = 0;
    changed.notify_all();
    if (!read.ok())
      return;
    lock.unlock();
    warmUp();
    lock.lock();
    changed.wait(lock, [&] { return !isThere || isOver; });
    if (isOver)
      return;
  }
}

absl::StatusOr<std::vector<int64_t>> StepReader::shape(size_t input) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return isThere; });
  if (!status.ok())
    return status;
  return sources[input]->shape();
}

void StepReader::end(int64_t step) {
  std::lock_guard lock(mutex);
  // Else the last one that read has said so.
  if (!isThere || at != step || wanted > 0)
    return;
  isThere = false;
  changed.notify_all();
}

absl::Status StepReader::read(size_t input, const Box &box, std::byte *elements) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return isThere; });
  if (!status.ok())
    return status;
  isRead = true;
  std::shared_ptr<InputSource> source = sources[input];
  lock.unlock();
  runtime::ElementType type = plan.inputs[input].type;
  auto part = std::find_if(parts.begin(), parts.end(),
                           [&](const Part &part) { return part.input == input && part.box.contains(box); });
  if (part->isHeld)
    runtime::copyBox(MemoryView::rowMajor(type, box, elements),
                     MemoryView::rowMajor(type, part->now, part->elements.data()), box);
  else if (absl::Status read = source->read(box, elements); !read.ok())
    return ofInput(plan, input, read);
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

bool StepWriter::has(size_t output) {
  std::lock_guard lock(mutex);
  return files && files->has(output);
}

absl::Status StepWriter::resize(runtime::ProgramRunner &runner, absl::Span<const std::vector<int64_t>> shapes) {
  std::lock_guard lock(mutex);
  return files ? files->resize(runner, shapes) : absl::OkStatus();
}

absl::Status StepWriter::write(size_t output, const Box &box, const std::byte *elements, int64_t bytes) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return !status.ok() || (!isEnding && (waiting == 0 || waiting + bytes <= mostWaiting)); });
  if (!status.ok())
    return status;
  waiting += bytes;
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
    waiting -= static_cast<int64_t>(part.elements.size());
    part.elements = {};
    changed.notify_all();
  }
}

//===----------------------------------------------------------------------===//
// StepPorts
//===----------------------------------------------------------------------===//

absl::StatusOr<std::shared_ptr<InputSource>> StepPorts::open(size_t input) const {
  return initial[input] && !isIdle ? initial[input] : inputs[input].open(0);
}

absl::StatusOr<std::vector<int64_t>> StepPorts::shape(size_t input) {
  if (!isRead(input))
    return reader->shape(input);
  absl::StatusOr<std::shared_ptr<InputSource>> source = open(input);
  if (!source.ok())
    return ofInput(plan, input, source.status());
  return (*source)->shape();
}

absl::Status StepPorts::begin(absl::Span<const std::vector<int64_t>> shapes) {
  return writer && !isIdle ? writer->resize(runner, shapes) : absl::OkStatus();
}

absl::Status StepPorts::read(size_t input, const Box &box, std::byte *elements) {
  if (isRead(input)) {
    absl::StatusOr<std::shared_ptr<InputSource>> source = open(input);
    absl::Status status = source.ok() ? (*source)->read(box, elements) : source.status();
    if (status.ok() && isIdle)
      spoil(plan.inputs[input].type, elements, box.volume());
    return ofInput(plan, input, status);
  }
  return reader->read(input, box, elements);
}

int64_t StepPorts::pieceBytes(size_t output) const {
  return writer && !isIdle && writer->has(output) ? OutputFiles::pieceBytes : 0;
}

absl::Status StepPorts::write(size_t output, const Box &box, const std::byte *elements) {
  if (isIdle)
    return absl::OkStatus();
  runtime::ElementType type = plan.outputs[output].type;
  if (writer)
    return !writer->has(output) ? absl::OkStatus()
                                : writer->write(output, box, elements, box.volume() * runtime::elementSize(type));
  Summary part;
  part.add(type, elements, box.volume());
  std::lock_guard lock(mutex);
  summaries[output].add(part);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Summary>> StepPorts::takeSummaries() {
  absl::StatusOr<std::vector<Summary>> result = shareSummaries(runner, summaries);
  summaries.assign(summaries.size(), {});
  return result;
}
