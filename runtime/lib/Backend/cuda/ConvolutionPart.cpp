//===- ConvolutionPart.cpp - A convolution by cuDNN ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionPart.h"
#include "Tuning.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

void ConvolutionPart::addForms() {
  for (ConvolutionChoice choice : ConvolutionChoice::all(task)) {
    auto form = std::make_unique<ConvolutionForm>(task, choice, options.explain ? &log : nullptr);
    // What is cut out of a full result has its post-ops afterwards, as its surroundings need them, too.
    if (choice.fused == 0 || !form->isCut())
      forms.push_back(std::move(form));
  }
}

absl::StatusOr<bool> ConvolutionPart::plan() {
  size_t count = options.autotune && !options.inPrologue ? tunedWays : 1;
  for (PlanSource source : {PlanSource::Recommended, PlanSource::Fallback, PlanSource::LastResort})
    for (std::unique_ptr<ConvolutionForm> &form : forms) {
      absl::StatusOr<bool> found = form->plan(source, count, workspace);
      if (!found.ok())
        return found;
      if (!*found)
        continue;
      std::unique_ptr<ConvolutionForm> chosen = std::move(form);
      forms.clear();
      forms.push_back(std::move(chosen));
      return true;
    }
  return false;
}

absl::Status ConvolutionPart::prepare() {
  absl::StatusOr<ConvolutionGeometry> planned = ConvolutionGeometry::plan(memory, call, channels);
  if (!planned.ok())
    return planned.status();
  task.geometry = *std::move(planned);
  const ConvolutionGeometry &geometry = task.geometry;
  const MemoryView &output = memory.memory(call.output);
  if (output.blockDim >= 0)
    return absl::UnimplementedError(absl::StrCat(memory.name(call.output), " has a blocked format"));
  if (geometry.nothingToSum) {
    zeros = std::make_unique<PostOpWork>(handles.context, memory, call.postOps, 0, geometry.outBox);
    return zeros->prepare(output.type);
  }
  if (absl::Status status = handles.cudnn().status(); !status.ok())
    return status;
  addForms();
  absl::StatusOr<bool> found = plan();
  if (!found.ok())
    return found.status();
  if (*found)
    return forms.front()->prepare();
  if (workspace.refused)
    return workspace.tooSmall(absl::StrCat("cuDNN ", handles.cudnnApi().version, " on ", handles.context->label()));
  return absl::UnimplementedError(
      absl::StrCat("cuDNN ", handles.cudnnApi().version, " on ", handles.context->label(),
                   " has no plan for this convolution (input ", geometry.inBox.str(), ", weights ",
                   geometry.weightsBox.str(), ", result ", geometry.outBox.str(),
                   "); compile the model with --no-libraries, which uses generated kernels instead"));
}

absl::Status ConvolutionPart::bind(std::byte *scratchMemory, std::byte *&packed) {
  if (zeros)
    return zeros->bind(memory.memory(call.output), MemoryView{});
  scratchMemory = DeviceScratch::align(scratchMemory);
  int64_t packedBytes = 0;
  for (const std::unique_ptr<ConvolutionForm> &form : forms) {
    if (absl::Status status = form->bind(scratchMemory, packed); !status.ok())
      return status;
    packedBytes = std::max(packedBytes, form->packedBytes());
  }
  packed += packedBytes;
  return absl::OkStatus();
}

absl::Status ConvolutionPart::tune(DeviceStream &stream) {
  absl::StatusOr<FastestWay> fastest = findFastest(*handles.context, stream, forms.front()->planCount(),
                                                   [&](size_t way) { return forms.front()->issue(stream, way); });
  if (!fastest.ok())
    return fastest.status();
  best = fastest->number;
  std::vector<CallCandidate *> measured;
  for (size_t way = 0; options.explain && way < forms.front()->planCount(); ++way)
    measured.push_back(&forms.front()->candidate(way));
  noteTimes(*fastest, measured);
  return absl::OkStatus();
}

absl::Status ConvolutionPart::pack(DeviceStream &stream) {
  if (zeros)
    return absl::OkStatus();
  if (absl::Status status = forms.front()->pack(stream); !status.ok())
    return status;
  return forms.front()->planCount() > 1 ? tune(stream) : absl::OkStatus();
}

absl::Status ConvolutionPart::issue(DeviceStream &stream) {
  return zeros ? zeros->issue(stream) : forms.front()->issue(stream, best);
}

void ConvolutionPart::report(LibraryCallReport &report) const {
  report.postOps = static_cast<int64_t>(call.postOps.size());
  if (zeros)
    return;
  // Parts differ in their shapes, and then perhaps in their engines.
  std::string own = forms.front()->implementation(best);
  if (!absl::StrContains(report.implementation, own))
    absl::StrAppend(&report.implementation, report.implementation.empty() ? "" : ", ", own);
  log.addTo(report);
  forms.front()->report(report);
}
