//===- Execution.cpp - Running compiled programs in process -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements execute, with the runtime.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Execution.h"

#include "dovetail/runtime/ProgramRunner.h"
#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <random>

using namespace dovetail;
using runtime::ElementType;

int64_t TensorData::getNumElements() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

void TensorData::allocate() { bytes.resize(getNumElements() * runtime::elementSize(type)); }

void dovetail::fillRandom(TensorData &tensor, uint64_t seed) {
  tensor.allocate();
  std::mt19937_64 generator(seed);
  auto fill = [&](auto next) {
    auto *elements = reinterpret_cast<decltype(next()) *>(tensor.bytes.data());
    for (int64_t i = 0, e = tensor.getNumElements(); i < e; ++i)
      elements[i] = next();
  };
  // Not a distribution of the standard library, whose numbers may differ between libraries.
  auto getReal = [&] { return std::ldexp(static_cast<double>(generator() >> 40), -23) - 1; };
  auto getHalf = [&](const llvm::fltSemantics &semantics) {
    llvm::APFloat value(getReal());
    bool losesInfo;
    value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return static_cast<uint16_t>(value.bitcastToAPInt().getZExtValue());
  };
  auto getInteger = [&] { return generator() >> 62; };
  switch (tensor.type) {
  case ElementType::F32:
    return fill([&] { return static_cast<float>(getReal()); });
  case ElementType::F64:
    return fill(getReal);
  case ElementType::F16:
    return fill([&] { return getHalf(llvm::APFloat::IEEEhalf()); });
  case ElementType::BF16:
    return fill([&] { return getHalf(llvm::APFloat::BFloat()); });
  case ElementType::Bool:
    return fill([&] { return static_cast<uint8_t>(generator() >> 63); });
  case ElementType::I8:
  case ElementType::U8:
    return fill([&] { return static_cast<uint8_t>(getInteger()); });
  case ElementType::I16:
  case ElementType::U16:
    return fill([&] { return static_cast<uint16_t>(getInteger()); });
  case ElementType::I32:
  case ElementType::U32:
    return fill([&] { return static_cast<uint32_t>(getInteger()); });
  case ElementType::I64:
  case ElementType::U64:
    return fill([&] { return static_cast<uint64_t>(getInteger()); });
  }
}

ExitCode dovetail::getExitCode(const absl::Status &status) {
  switch (status.code()) {
  case absl::StatusCode::kOk:
    return ExitCode::Ok;
  case absl::StatusCode::kInvalidArgument:
    return ExitCode::Usage;
  case absl::StatusCode::kNotFound:
  case absl::StatusCode::kPermissionDenied:
  case absl::StatusCode::kAlreadyExists:
    return ExitCode::File;
  case absl::StatusCode::kUnimplemented:
    return ExitCode::Unsupported;
  case absl::StatusCode::kResourceExhausted:
    return ExitCode::DoesNotFit;
  case absl::StatusCode::kFailedPrecondition:
  case absl::StatusCode::kDataLoss:
    return ExitCode::Artifact;
  case absl::StatusCode::kDeadlineExceeded:
  case absl::StatusCode::kAborted:
  case absl::StatusCode::kUnavailable:
  case absl::StatusCode::kCancelled:
    return ExitCode::Device;
  default:
    return ExitCode::Internal;
  }
}

llvm::FailureOr<std::vector<TensorData>> dovetail::execute(llvm::ArrayRef<std::byte> bytes,
                                                           llvm::ArrayRef<TensorData> inputs, int threads,
                                                           const llvm::Twine &what, Diagnostics &diagnostics) {
  auto fail = [&](const absl::Status &status) {
    // That this compiler's own artifact is refused is its own fault.
    ExitCode code = getExitCode(status);
    return diagnostics.error(code == ExitCode::Artifact ? ExitCode::Internal : code,
                             what + ": " + std::string(status.message()));
  };
  auto program = runtime::Program::load(absl::MakeConstSpan(bytes.data(), bytes.size()));
  if (!program.ok())
    return fail(program.status());
  runtime::RunnerOptions options;
  options.threads = threads;
  auto runner = runtime::ProgramRunner::create(*program, options);
  if (!runner.ok())
    return fail(runner.status());

  std::vector<runtime::HostTensor> in, out;
  // The runtime does not write to inputs.
  for (const TensorData &input : inputs)
    in.push_back({const_cast<std::byte *>(input.bytes.data()), input.type, input.shape});
  std::vector<TensorData> outputs;
  for (const runtime::PortInfo &port : (*program)->getPlan().outputs) {
    TensorData &output = outputs.emplace_back();
    output.name = port.name;
    output.type = port.type;
    output.shape = port.shape;
    output.allocate();
  }
  for (TensorData &output : outputs)
    out.push_back({output.bytes.data(), output.type, output.shape});
  if (absl::Status status = (*runner)->run(in, out); !status.ok())
    return fail(status);
  return outputs;
}
