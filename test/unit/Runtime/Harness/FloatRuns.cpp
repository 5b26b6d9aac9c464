//===- FloatRuns.cpp - Programs run on floats -----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how tests run programs whose inputs and outputs are given as floats, whatever their types.
//
//===----------------------------------------------------------------------===//

#include "Halves.h"
#include "PlanBuilder.h"
#include "Processes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

using namespace dovetail;
using namespace dovetail::test;

std::vector<std::byte> test::encode(const std::vector<float> &values, artifact::ElementType type) {
  if (type == artifact::ElementType::F64) {
    std::vector<double> doubles(values.begin(), values.end());
    std::vector<std::byte> bytes(doubles.size() * sizeof(double));
    std::copy_n(reinterpret_cast<const std::byte *>(doubles.data()), bytes.size(), bytes.begin());
    return bytes;
  }
  bool isHalf = type != artifact::ElementType::F32;
  std::vector<std::byte> bytes(values.size() * (isHalf ? sizeof(uint16_t) : sizeof(float)));
  std::vector<uint16_t> halves;
  for (float value : values)
    if (isHalf)
      halves.push_back(toHalf(value, type == artifact::ElementType::F16 ? kF16 : kBF16));
  if (!bytes.empty())
    std::memcpy(bytes.data(), isHalf ? static_cast<const void *>(halves.data()) : values.data(), bytes.size());
  return bytes;
}

std::vector<float> test::decode(const std::vector<std::byte> &bytes, artifact::ElementType type) {
  if (type == artifact::ElementType::F64) {
    std::vector<double> doubles(bytes.size() / sizeof(double));
    std::copy_n(bytes.begin(), bytes.size(), reinterpret_cast<std::byte *>(doubles.data()));
    return {doubles.begin(), doubles.end()};
  }
  bool isHalf = type != artifact::ElementType::F32;
  std::vector<float> values(bytes.size() / (isHalf ? sizeof(uint16_t) : sizeof(float)));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half;
    if (isHalf) {
      std::memcpy(&half, bytes.data() + i * sizeof(half), sizeof(half));
      values[i] = static_cast<float>(fromHalf(half, type == artifact::ElementType::F16 ? kF16 : kBF16));
    } else {
      std::memcpy(&values[i], bytes.data() + i * sizeof(float), sizeof(float));
    }
  }
  return values;
}

std::vector<float> test::rounded(std::vector<float> values, artifact::ElementType type) {
  return decode(encode(values, type), type);
}

double test::roundingError(artifact::ElementType type) {
  int mantissa = type == artifact::ElementType::F16    ? kF16.mantissa
                 : type == artifact::ElementType::BF16 ? kBF16.mantissa
                                                       : std::numeric_limits<float>::digits - 1;
  return std::ldexp(1, -mantissa - 1);
}

namespace {

using Floats = std::vector<std::vector<float>>;

bool reducesByCollectives(const runtime::Plan &plan) {
  for (const std::vector<runtime::StepInfo> *list : {&plan.prologue, &plan.steps})
    for (const runtime::StepInfo &step : *list)
      if (const auto *call = std::get_if<runtime::ExchangeCall>(&step.action))
        if (call->kind == layout::ExchangeKind::AllReduce || call->kind == layout::ExchangeKind::ReduceScatter)
          return true;
  return false;
}

absl::StatusOr<Floats> runHere(std::shared_ptr<const runtime::Program> program, const Floats &inputs,
                               const runtime::RunnerOptions &options) {
  auto runner = runtime::ProgramRunner::create(program, options);
  if (!runner.ok())
    return runner.status();
  const runtime::Plan &plan = program->getPlan();
  for (int rank = 0; rank < program->numRanks(); ++rank)
    if (!options.process || options.process->rank == rank) {
      auto planned = runtime::estimateStatistics(plan, rank, (*runner)->threadsOf(rank));
      EXPECT_TRUE(planned.ok()) << planned.status();
      // Threads send no messages, and collectives that reduce do without memory for them, as does what is read where it
      // is.
      int64_t messages = (*runner)->statistics(rank).messageBytes;
      if (planned.ok() && !options.process)
        planned->messageBytes = 0;
      const char *shared = std::getenv("DOVETAIL_SHARED_MEMORY");
      bool sendsAll = shared && std::string(shared) == "0";
      if (planned.ok() && (reducesByCollectives(plan) || !sendsAll) && messages < planned->messageBytes)
        planned->messageBytes = messages;
      EXPECT_TRUE(!planned.ok() || *planned == (*runner)->statistics(rank)) << "memory of rank " << rank;
    }
  auto typeOf = [](const runtime::PortInfo &port) { return static_cast<artifact::ElementType>(port.type); };
  std::vector<std::vector<std::byte>> given, zeros, results, first;
  for (size_t i = 0; i < inputs.size(); ++i) {
    given.push_back(encode(inputs[i], typeOf(plan.inputs[i])));
    zeros.emplace_back(given.back().size());
  }
  for (const runtime::PortInfo &port : plan.outputs)
    results.push_back(encode(std::vector<float>(volume(port.shape), -12345.0f), typeOf(port)));
  // The last run must give the bits of the first one, whatever others have left in memory, and although its steps are
  // replayed on devices.
  for (auto *bytes : {&given, &zeros, &given}) {
    std::vector<runtime::FullTensor> in, out;
    for (size_t i = 0; i < bytes->size(); ++i)
      in.push_back({(*bytes)[i].data(), plan.inputs[i].type, plan.inputs[i].shape});
    for (size_t i = 0; i < results.size(); ++i)
      out.push_back({results[i].data(), plan.outputs[i].type, plan.outputs[i].shape});
    if (absl::Status status = (*runner)->run(in, out); !status.ok())
      return status;
    if (first.empty())
      first = results;
  }
  Floats decoded;
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(first[i], results[i]) << "output " << i << " differs between two runs";
    decoded.push_back(decode(results[i], typeOf(plan.outputs[i])));
  }
  return decoded;
}

/// The same with a process for each rank.
absl::StatusOr<Floats> runInProcesses(std::shared_ptr<const runtime::Program> program, const Floats &inputs,
                                      runtime::RunnerOptions options) {
  const runtime::Plan &plan = program->getPlan();
  options.communicator = plan.target == "cuda" ? "nccl" : "sockets";
  // First the code of the status, then its message or the results.
  auto outcomes = inProcesses(program->numRanks(), [&](const runtime::LaunchEnvironment &environment) {
    options.process = environment;
    absl::StatusOr<Floats> results = runHere(program, inputs, options);
    std::string text(1, static_cast<char>(results.status().code()));
    if (!results.ok())
      return text + std::string(results.status().message());
    for (const std::vector<float> &result : *results)
      text.append(reinterpret_cast<const char *>(result.data()), result.size() * sizeof(float));
    return text;
  });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.code, 0);
    if (outcome.text.empty())
      return absl::InternalError("a process has ended without a word");
    EXPECT_EQ(outcome.text[0], outcomes[0].text[0]) << outcome.text.substr(1) << "; " << outcomes[0].text.substr(1);
  }
  std::string text = outcomes[0].text.substr(1);
  if (outcomes[0].text[0] != 0)
    return absl::Status(static_cast<absl::StatusCode>(outcomes[0].text[0]), text);
  Floats results;
  size_t at = 0;
  for (const runtime::PortInfo &port : plan.outputs) {
    std::vector<float> &result = results.emplace_back(volume(port.shape));
    if (!result.empty())
      std::memcpy(result.data(), text.data() + at, result.size() * sizeof(float));
    at += result.size() * sizeof(float);
  }
  return results;
}

} // namespace

absl::StatusOr<std::vector<std::vector<float>>> test::runFloats(std::shared_ptr<const runtime::Program> program,
                                                                const std::vector<std::vector<float>> &inputs,
                                                                runtime::RunnerOptions options) {
  if (!program)
    return absl::InternalError("no program");
  if (std::getenv("DOVETAIL_TEST_AUTOTUNE")) {
    options.autotune = true;
    // Imitated libraries are slow, with sanitizers above all, and each call is tried forty times when a session starts.
    options.timeout = std::max<std::chrono::milliseconds>(options.timeout, std::chrono::minutes(10));
  }
  if (std::getenv("DOVETAIL_TEST_PROCESSES"))
    return runInProcesses(std::move(program), inputs, std::move(options));
  return runHere(std::move(program), inputs, options);
}
