//===- ConvolutionPart.cpp - A convolution by cuDNN ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionPart.h"
#include "Tuning.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

void ConvolutionPart::addForms() {
  for (ConvolutionChoice choice : ConvolutionChoice::all(task)) {
    auto form = std::make_unique<ConvolutionForm>(task, choice, options.explain ? &log : nullptr);
    // What is cut out of a full result has its post-ops afterwards, as its surroundings need them, too.
    bool isNew = std::none_of(forms.begin(), forms.end(), [&](const auto &other) { return form->isLike(*other); });
    if (isNew && (choice.fused == 0 || !form->isCut()))
      forms.push_back(std::move(form));
  }
}

absl::StatusOr<bool> ConvolutionPart::plan() {
  bool measures = options.autotune && !options.inPrologue;
  for (PlanSource source : {PlanSource::Recommended, PlanSource::Fallback, PlanSource::LastResort}) {
    for (std::unique_ptr<ConvolutionForm> &form : forms) {
      size_t known = form->planCount(), more = !measures ? 1 : ways.empty() ? tunedWays : tunedWaysOfOthers;
      if (absl::StatusOr<bool> found = form->plan(source, known + more, workspace); !found.ok())
        return found;
      for (size_t plan = known; plan < form->planCount(); ++plan)
        ways.push_back({form.get(), plan});
      if (!measures && !ways.empty())
        break;
    }
    // The heuristics may not know what is fast here.
    bool goesOn = measures && source == PlanSource::Recommended;
    if (!ways.empty() && !goesOn)
      break;
  }
  std::erase_if(forms, [](const std::unique_ptr<ConvolutionForm> &form) { return form->planCount() == 0; });
  return !ways.empty();
}

absl::Status ConvolutionPart::prepare() {
  absl::StatusOr<ConvolutionGeometry> planned = ConvolutionGeometry::plan(memory, call, channels);
  if (!planned.ok())
    return planned.status();
  task.geometry = *std::move(planned);
  const ConvolutionGeometry &geometry = task.geometry;
  const MemoryView &output = memory.memory(call.output);
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
  for (const std::unique_ptr<ConvolutionForm> &form : forms)
    if (absl::Status status = form->prepare(); !status.ok())
      return status;
  if (*found)
    return absl::OkStatus();
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
  const ConvolutionForm *packed = nullptr;
  absl::StatusOr<FastestWay> fastest =
      findFastest(*handles.context, stream, ways.size(), [&](size_t number) -> absl::Status {
        const Way &way = ways[number];
        // Forms share the memory for weights. This is in the run that does not count.
        if (std::exchange(packed, way.form) != way.form)
          if (absl::Status status = way.form->pack(stream); !status.ok())
            return status;
        return way.form->issue(stream, way.plan);
      });
  if (!fastest.ok())
    return fastest.status();
  std::vector<CallCandidate *> measured;
  for (size_t number = 0; options.explain && number < ways.size(); ++number)
    measured.push_back(&ways[number].form->candidate(ways[number].plan));
  noteTimes(*fastest, measured);
  ways = {ways[fastest->number]};
  std::erase_if(forms, [&](const std::unique_ptr<ConvolutionForm> &form) { return form.get() != ways[0].form; });
  return absl::OkStatus();
}

absl::Status ConvolutionPart::pack(DeviceStream &stream) {
  if (zeros)
    return absl::OkStatus();
  if (ways.size() > 1)
    if (absl::Status status = tune(stream); !status.ok())
      return status;
  return ways[0].form->pack(stream);
}

absl::Status ConvolutionPart::issue(DeviceStream &stream) {
  return zeros ? zeros->issue(stream) : ways[0].form->issue(stream, ways[0].plan);
}

void ConvolutionPart::report(LibraryCallReport &report) const {
  report.postOps = static_cast<int64_t>(call.postOps.size());
  if (zeros)
    return;
  addImplementation(report, ways[0].form->implementation(ways[0].plan));
  log.addTo(report);
  ways[0].form->report(report);
}
