//===- CudnnEngines.cpp - Engines of cuDNN in reports ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes the engines that cuDNN offers: number, settings, notes.
//
//===----------------------------------------------------------------------===//

#include "CudnnGraph.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

static const char *nameOf(cudnnBackendNumericalNote_t note) {
  switch (note) {
  case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
    return "TENSOR_CORE";
  case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
    return "DOWN_CONVERT_INPUTS";
  case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
    return "REDUCED_PRECISION_REDUCTION";
  case CUDNN_NUMERICAL_NOTE_FFT:
    return "FFT";
  case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
    return "NONDETERMINISTIC";
  case CUDNN_NUMERICAL_NOTE_WINOGRAD:
    return "WINOGRAD";
  case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
    return "WINOGRAD_TILE_4x4";
  case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
    return "WINOGRAD_TILE_6x6";
  case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
    return "WINOGRAD_TILE_13x13";
  case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
    return "STRICT_NAN_PROP";
  default:
    return nullptr;
  }
}

static const char *nameOf(cudnnBackendBehaviorNote_t note) {
  switch (note) {
  case CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION:
    return "RUNTIME_COMPILATION";
  case CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API:
    return "SUPPORTS_CUDA_GRAPH_NATIVE_API";
  default:
    return nullptr;
  }
}

/// The settings that tell kernels apart; others have their number as a name.
static std::string nameOf(cudnnBackendKnobType_t knob) {
  switch (knob) {
#define DOVETAIL_KNOB(NAME)                                                                                            \
  case CUDNN_KNOB_TYPE_##NAME:                                                                                         \
    return #NAME;
    DOVETAIL_KNOB(SWIZZLE)
    DOVETAIL_KNOB(TILE_SIZE)
    DOVETAIL_KNOB(EDGE)
    DOVETAIL_KNOB(MULTIPLY)
    DOVETAIL_KNOB(SPLIT_K_BUF)
    DOVETAIL_KNOB(TILEK)
    DOVETAIL_KNOB(STAGES)
    DOVETAIL_KNOB(REDUCTION_MODE)
    DOVETAIL_KNOB(SPLIT_K_SLC)
    DOVETAIL_KNOB(IDX_MODE)
    DOVETAIL_KNOB(SPECFILT)
    DOVETAIL_KNOB(KERNEL_CFG)
    DOVETAIL_KNOB(WORKSPACE)
    DOVETAIL_KNOB(TILE_CGA_M)
    DOVETAIL_KNOB(TILE_CGA_N)
    DOVETAIL_KNOB(BLOCK_SIZE)
    DOVETAIL_KNOB(OCCUPANCY)
    DOVETAIL_KNOB(TILE_ROWS)
    DOVETAIL_KNOB(TILE_COLS)
    DOVETAIL_KNOB(STREAM_K)
#undef DOVETAIL_KNOB
  default:
    return absl::StrCat("KNOB_", static_cast<int>(knob));
  }
}

std::optional<std::vector<cudnnBackendNumericalNote_t>>
CudnnGraph::numericalNotes(cudnnBackendDescriptor_t engine) const {
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  int64_t found = 0;
  if (handles.cudnnApi().cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &found,
                                                  notes.data()) != CUDNN_STATUS_SUCCESS)
    return std::nullopt;
  notes.resize(std::min<int64_t>(found, CUDNN_NUMERICAL_NOTE_TYPE_COUNT));
  return notes;
}

std::vector<cudnnBackendBehaviorNote_t> CudnnGraph::behaviorNotes(cudnnBackendDescriptor_t engine) const {
  std::vector<cudnnBackendBehaviorNote_t> notes(CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  int64_t found = 0;
  if (handles.cudnnApi().cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                                  CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &found,
                                                  notes.data()) != CUDNN_STATUS_SUCCESS)
    found = 0;
  notes.resize(std::min<int64_t>(found, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT));
  return notes;
}

cudnnBackendDescriptor_t CudnnGraph::engineOf(const CudnnDescriptor &config, CudnnDescriptor &memory) const {
  cudnnBackendDescriptor_t raw = memory.get();
  int64_t found = 0;
  return handles.cudnnApi().cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &found,
                                                     &raw) == CUDNN_STATUS_SUCCESS
             ? raw
             : nullptr;
}

bool CudnnGraph::isLastResort(cudnnBackendDescriptor_t engine) const {
  std::vector<cudnnBackendBehaviorNote_t> behavior = behaviorNotes(engine);
  std::vector<cudnnBackendNumericalNote_t> numerical =
      numericalNotes(engine).value_or(std::vector<cudnnBackendNumericalNote_t>());
  return std::count(behavior.begin(), behavior.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) &&
         !std::count(numerical.begin(), numerical.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

CallCandidate CudnnGraph::describe(const CudnnDescriptor &config) const {
  const CudnnApi &api = handles.cudnnApi();
  CallCandidate candidate;
  CudnnDescriptor engine(api, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engineOf(config, engine);
  // A property that the library does not tell is left out.
  if (!raw)
    return candidate;
  int64_t found = 0, number = 0;
  if (api.cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &found, &number) ==
      CUDNN_STATUS_SUCCESS)
    candidate.engine = absl::StrCat(number);
  for (cudnnBackendNumericalNote_t note : numericalNotes(raw).value_or(std::vector<cudnnBackendNumericalNote_t>()))
    if (const char *name = nameOf(note))
      candidate.notes.emplace_back(name);
  for (cudnnBackendBehaviorNote_t note : behaviorNotes(raw))
    if (const char *name = nameOf(note))
      candidate.notes.emplace_back(name);
  std::vector<CudnnDescriptor> choices;
  std::vector<cudnnBackendDescriptor_t> handlesOfChoices;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    choices.emplace_back(api, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    handlesOfChoices.push_back(choices.back().get());
  }
  if (api.cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                   CUDNN_KNOB_TYPE_COUNTS, &found, handlesOfChoices.data()) != CUDNN_STATUS_SUCCESS)
    return candidate;
  for (int64_t i = 0; i < std::min<int64_t>(found, CUDNN_KNOB_TYPE_COUNTS); ++i) {
    cudnnBackendKnobType_t knob;
    int64_t value = 0, count = 0;
    if (api.cudnnBackendGetAttribute(handlesOfChoices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                                     &count, &knob) == CUDNN_STATUS_SUCCESS &&
        api.cudnnBackendGetAttribute(handlesOfChoices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
                                     &count, &value) == CUDNN_STATUS_SUCCESS)
      candidate.knobs.emplace_back(nameOf(knob), value);
  }
  return candidate;
}

void CudnnGraph::note(const char *source, const CudnnDescriptor *config, CallCandidate::Status status,
                      std::string reason, int64_t workspaceBytes) {
  if (!log)
    return;
  CallCandidate candidate = config ? describe(*config) : CallCandidate();
  candidate.source = source;
  candidate.status = status;
  candidate.reason = std::move(reason);
  candidate.workspaceBytes = workspaceBytes;
  log->add(std::move(candidate));
}

std::string CudnnGraph::lastError() const {
  if (!log)
    return {};
  char text[512] = "";
  handles.cudnnApi().cudnnGetLastErrorString(text, sizeof(text) - 1);
  return text;
}

std::string CudnnGraph::implementation(size_t plan) const {
  std::string engine = log ? candidate(plan).engine : std::string();
  return absl::StrCat("cudnn", engine.empty() ? "" : absl::StrCat(" engine ", engine));
}
