//===- ProcessPorts.cpp - Inputs and outputs of one of several processes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/ProcessPorts.h"

#include "absl/strings/str_cat.h"

using namespace dovetail;
using namespace dovetail::tools;

absl::Status ProcessPorts::read(size_t input, const layout::Box &box, std::byte *elements) {
  absl::Status status = sources[input]->read(box, elements);
  if (!status.ok())
    return absl::Status(status.code(), absl::StrCat("input '", plan.inputs[input].name, "': ", status.message()));
  if (isIdle)
    spoil(plan.inputs[input].type, elements, box.volume());
  return status;
}

absl::Status ProcessPorts::begin(absl::Span<const std::vector<int64_t>> shapes) {
  return files && !isIdle ? files->resize(runner, shapes) : absl::OkStatus();
}

int64_t ProcessPorts::pieceBytes(size_t output) const {
  return files && !isIdle && files->has(output) ? OutputFiles::pieceBytes : 0;
}

absl::Status ProcessPorts::write(size_t output, const layout::Box &box, const std::byte *elements) {
  if (isIdle)
    return absl::OkStatus();
  Summary part;
  part.add(plan.outputs[output].type, elements, box.volume());
  {
    std::lock_guard lock(mutex);
    summaries[output].add(part);
  }
  return files ? files->write(output, box, elements) : absl::OkStatus();
}

absl::StatusOr<std::vector<Summary>> ProcessPorts::summarize() const { return shareSummaries(runner, summaries); }
