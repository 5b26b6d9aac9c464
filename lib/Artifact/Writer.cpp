//===- Writer.cpp - Writes compiled programs -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Artifact and describeProgram.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Artifact/Writer.h"

#include "PlanSection.h"

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/Plan.h"
#include "dovetail/runtime/Schedule.h"

using namespace mlir;
using namespace dovetail;

/// All that goes into an artifact.
struct Artifact::Contents {
  Location location;
  WeightsBuilder weights;
  flatbuffers::FlatBufferBuilder plan;
  std::vector<runtime::Section> sections;
  std::vector<std::byte> packed;

  explicit Contents(Location location) : location(location) {}
};

static absl::Span<const std::byte> toBytes(const void *data, size_t size) {
  return {static_cast<const std::byte *>(data), size};
}

static FailureOr<plan::ProgramOp> getProgram(ModuleOp module) {
  auto programs = llvm::to_vector(module.getOps<plan::ProgramOp>());
  if (programs.size() != 1)
    return module.emitError("an artifact holds one plan.program, but the module has ") << programs.size();
  return programs.front();
}

Artifact::Artifact(std::unique_ptr<Contents> contents) : contents(std::move(contents)) {}
Artifact::Artifact(Artifact &&) = default;
Artifact::~Artifact() = default;

FailureOr<Artifact> Artifact::create(ModuleOp module, const ProgramCode &code, bool hasSourceNames) {
  auto contents = std::make_unique<Contents>(module.getLoc());
  FailureOr<plan::ProgramOp> program = getProgram(module);
  if (failed(program) ||
      failed(buildPlan(*program, code, contents->weights, contents->plan, {/*hasCode=*/true, hasSourceNames})))
    return failure();
  contents->sections.push_back(
      {runtime::SectionKind::Plan, {toBytes(contents->plan.GetBufferPointer(), contents->plan.GetSize())}});
  for (const ProgramCode::Image &image : code.images)
    contents->sections.push_back({image.kind, {toBytes(image.bytes.data(), image.bytes.size())}, image.arch});
  runtime::Section weights{runtime::SectionKind::Weights, {}};
  for (ArrayRef<char> piece : contents->weights.getPieces())
    weights.pieces.push_back(toBytes(piece.data(), piece.size()));
  if (!weights.pieces.empty())
    contents->sections.push_back(std::move(weights));
  return Artifact(std::move(contents));
}

/// The plan as the runtime reads it.
static absl::StatusOr<runtime::Plan> decode(const flatbuffers::FlatBufferBuilder &plan, const WeightsBuilder &weights) {
  std::vector<uint64_t> sizes;
  for (ArrayRef<char> piece : weights.getPieces())
    sizes.push_back(piece.size());
  std::vector<uint64_t> offsets = runtime::pieceOffsets(sizes);
  return runtime::decodePlan(toBytes(plan.GetBufferPointer(), plan.GetSize()),
                             sizes.empty() ? 0 : offsets.back() + sizes.back());
}

FailureOr<runtime::Plan> dovetail::describeProgram(ModuleOp module, bool hasSourceNames) {
  WeightsBuilder weights(/*readsData=*/false);
  flatbuffers::FlatBufferBuilder buffer;
  FailureOr<plan::ProgramOp> program = getProgram(module);
  if (failed(program) || failed(buildPlan(*program, {}, weights, buffer, {/*hasCode=*/false, hasSourceNames})))
    return failure();
  absl::StatusOr<runtime::Plan> plan = decode(buffer, weights);
  if (!plan.ok())
    return emitError(module.getLoc(), "the plan is wrong: ") << std::string(plan.status().message());
  return *std::move(plan);
}

LogicalResult Artifact::check() const {
  absl::StatusOr<runtime::Plan> plan = decode(contents->plan, contents->weights);
  absl::Status status = plan.ok() ? runtime::checkSchedule(*plan) : plan.status();
  if (!status.ok())
    return emitError(contents->location, "the plan is wrong: ") << std::string(status.message());
  return success();
}

void Artifact::setPacked(std::vector<std::byte> image) {
  contents->packed = std::move(image);
  contents->sections.push_back({runtime::SectionKind::Packed, {contents->packed}});
}

LogicalResult Artifact::write(const std::string &path) const {
  if (absl::Status status = runtime::writeArtifact(path, contents->sections); !status.ok())
    return emitError(contents->location) << std::string(status.message());
  return success();
}

FailureOr<std::vector<std::byte>> Artifact::serialize() const {
  absl::StatusOr<std::vector<std::byte>> bytes = runtime::serializeArtifact(contents->sections);
  if (!bytes.ok())
    return emitError(contents->location) << std::string(bytes.status().message());
  return std::move(*bytes);
}
