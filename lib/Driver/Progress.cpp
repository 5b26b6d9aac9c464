//===- Progress.cpp - Progress of long work -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Progress.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Progress.h"

#include "dovetail/tools/ProgressLine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <memory>
#include <vector>

using namespace dovetail;

namespace {
struct State {
  tools::ProgressLine line;
  /// The step, then its parts, each a part of the one before. Empty where nothing was said yet.
  std::vector<std::string> steps = {""};
};
} // namespace

static std::unique_ptr<State> state;

Progress::Shown::Shown(bool isQuiet) {
  if (!isQuiet)
    state = std::make_unique<State>();
}

Progress::Shown::~Shown() { state.reset(); }

Progress::Parts::Parts() {
  if (state)
    state->steps.emplace_back();
}

Progress::Parts::~Parts() {
  if (state)
    state->steps.pop_back();
}

void Progress::show(const llvm::Twine &what, size_t number, size_t count) {
  if (!state)
    return;
  std::string text = what.str();
  if (count > 0 && state->steps.size() == 1)
    text += " (" + std::to_string(number) + " of " + std::to_string(count) + ")";
  state->steps.back() = std::move(text);
  auto said = llvm::make_filter_range(state->steps, [](const std::string &step) { return !step.empty(); });
  state->line.show(llvm::join(said, ": "), /*isPart=*/state->steps.size() > 1);
}

void Progress::makeWay() {
  if (state)
    state->line.makeWay();
}

void Progress::clear() {
  if (state)
    state->line.clear();
}
