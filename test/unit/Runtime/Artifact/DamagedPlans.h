//===- DamagedPlans.h - Artifacts with some other bytes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how tests damage artifacts at random.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_RUNTIME_DAMAGEDPLANS_H
#define DOVETAIL_TEST_RUNTIME_DAMAGEDPLANS_H

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/ProgramRunner.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <utility>
#include <vector>

namespace dovetail::test {

/// Changes some bytes: flips, copies, cuts, zeros.
inline void damage(std::mt19937_64 &random, std::vector<std::byte> &bytes) {
  auto position = [&] { return bytes.empty() ? 0 : random() % bytes.size(); };
  for (int i = random() % 4; i >= 0 && !bytes.empty(); --i) {
    size_t at = position(), length = std::min<size_t>(random() % 64 + 1, bytes.size() - at);
    switch (random() % 5) {
    case 0:
      bytes[at] ^= std::byte(1 << random() % 8);
      break;
    case 1:
      for (size_t k = 0; k < length; ++k)
        bytes[at + k] = std::byte(random());
      break;
    case 2:
      std::fill_n(bytes.begin() + at, length, random() % 2 ? std::byte(0) : std::byte(0xff));
      break;
    case 3:
      bytes.erase(bytes.begin() + at, bytes.begin() + at + length);
      break;
    case 4:
      bytes.resize(at);
      break;
    }
  }
}

/// Damages the plan of an artifact at random; returns how many of `count` could be loaded, and got ready to run, if
/// they are to do so.
inline std::pair<int, int> damagePlans(const std::vector<std::byte> &good, uint64_t count, bool starts = true) {
  auto sections = runtime::parseArtifact(good);
  if (!sections.ok())
    return {};
  absl::Span<const std::byte> code;
  if (!sections->code.empty())
    code = sections->code[0].bytes;
  int loaded = 0, started = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<std::byte> plan(sections->plan.begin(), sections->plan.end());
    if (seed % 2) {
      damage(random, plan);
    } else {
      // One small change to one number keeps the structure whole more often.
      size_t at = random() % (plan.size() / 4) * 4;
      uint32_t value;
      std::memcpy(&value, plan.data() + at, 4);
      value = random() % 2 ? value + random() % 9 - 4 : random() % 16;
      std::memcpy(plan.data() + at, &value, 4);
    }
    std::vector<runtime::Section> damaged = {
        runtime::Section{runtime::SectionKind::Plan, {plan}},
        runtime::Section{runtime::SectionKind::Weights, {sections->weights.getBytes()}}};
    if (!sections->code.empty())
      damaged.push_back(runtime::Section{runtime::SectionKind::Code, {code}});
    auto bytes = runtime::serializeArtifact(damaged);
    if (!bytes.ok())
      return {};
    auto program = runtime::Program::load(*bytes);
    if (!program.ok())
      continue;
    ++loaded;
    // Its kernels might do anything, but getting ready must not.
    if (!starts || (*program)->numRanks() > 8)
      continue;
    runtime::RunnerOptions options;
    options.timeout = std::chrono::milliseconds(5000);
    started += runtime::ProgramRunner::create(*program, options).ok();
  }
  return {loaded, started};
}

} // namespace dovetail::test

#endif // DOVETAIL_TEST_RUNTIME_DAMAGEDPLANS_H
