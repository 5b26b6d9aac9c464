//===- CApi.cpp - C interface of the runtime -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/dovetail.h"

#include "OtherVersions.h"
#include "SizedStruct.h"

#include "dovetail/runtime/ExitCode.h"
#include "dovetail/runtime/HostFeatures.h"
#include "dovetail/runtime/Interruption.h"
#include "dovetail/runtime/MemoryFill.h"
#include "dovetail/runtime/ProgramRunner.h"
#include "dovetail/runtime/Version.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <exception>
#include <new>

using namespace dovetail;
using runtime::ElementType;

struct dovetail_program {
  std::shared_ptr<const runtime::Program> program;
};

struct dovetail_runner {
  std::shared_ptr<const runtime::Program> program;
  std::unique_ptr<runtime::ProgramRunner> runner;
  std::string remark;
};

namespace {

std::string &lastError() {
  thread_local std::string message;
  return message;
}

/// Calls `body`, keeps its message, and lets no exception out.
template <typename Body> dovetail_status guard(Body body) {
  try {
    absl::Status status = runtime::checkBaseline();
    if (status.ok())
      status = body();
    lastError() = std::string(status.message());
    return static_cast<dovetail_status>(runtime::exitCodeOf(status));
  } catch (const std::bad_alloc &) {
    lastError() = "out of memory";
    return DOVETAIL_ERROR_DOES_NOT_FIT;
  } catch (const std::exception &error) {
    lastError() = error.what();
    return DOVETAIL_ERROR_INTERNAL;
  }
}

/// The same for calls that may take long, which SIGINT may end.
template <typename Body> dovetail_status guardLong(Body body) {
  runtime::InterruptScope scope;
  dovetail_status status = guard(body);
  return status != DOVETAIL_OK && runtime::isInterrupted() ? DOVETAIL_ERROR_INTERRUPTED : status;
}

absl::Status isNull(const char *what) { return absl::InvalidArgumentError(absl::StrCat(what, " is null")); }

// Newer versions of DLPack have types for booleans and 8-bit floats.
constexpr uint8_t dlpackBool = 6, dlpackE4M3FN = 10, dlpackE4M3FNUZ = 11, dlpackE5M2 = 12, dlpackE5M2FNUZ = 13,
                  dlpackE8M0 = 14;

DLDataType dataTypeOf(ElementType type) {
  uint8_t bits = static_cast<uint8_t>(8 * runtime::elementSize(type));
  switch (type) {
  case ElementType::F32:
  case ElementType::F64:
  case ElementType::F16:
    return {kDLFloat, bits, 1};
  case ElementType::BF16:
    return {kDLBfloat, bits, 1};
  case ElementType::I8:
  case ElementType::I16:
  case ElementType::I32:
  case ElementType::I64:
    return {kDLInt, bits, 1};
  case ElementType::F8E4M3FN:
    return {dlpackE4M3FN, bits, 1};
  case ElementType::F8E4M3FNUZ:
    return {dlpackE4M3FNUZ, bits, 1};
  case ElementType::F8E5M2:
    return {dlpackE5M2, bits, 1};
  case ElementType::F8E5M2FNUZ:
    return {dlpackE5M2FNUZ, bits, 1};
  case ElementType::F8E8M0:
    return {dlpackE8M0, bits, 1};
  default:
    return {kDLUInt, bits, 1};
  }
}

/// Whether tensors of type `given` may be those of a port of type `type`.
bool matches(DLDataType given, ElementType type) {
  DLDataType wanted = dataTypeOf(type);
  bool hasCode = given.code == wanted.code || (type == ElementType::Bool && given.code == dlpackBool) ||
                 (runtime::isNarrow(type) && given.code == kDLUInt);
  return hasCode && given.bits == wanted.bits && given.lanes == 1;
}

absl::Status describePort(const std::vector<runtime::PortInfo> &ports, size_t index, dovetail_port *port) {
  if (!port)
    return isNull("port");
  if (index >= ports.size())
    return absl::InvalidArgumentError(absl::StrCat("there is no port ", index, " of ", ports.size()));
  const runtime::PortInfo &info = ports[index];
  dovetail_port described = {};
  described.name = info.name.c_str();
  described.type = dataTypeOf(info.type);
  described.ndim = static_cast<int32_t>(info.shape.size());
  described.shape = info.shape.data();
  described.type_name = runtime::elementTypeName(info.type);
  return api::writeStruct("dovetail_port", described, port);
}

/// DLPack's tensors as the runtime's; types and shapes are compared with the ports by the runner.
/// There are some for each of `ranks`.
absl::StatusOr<std::vector<runtime::FullTensor>> convert(const char *kind, const std::vector<runtime::PortInfo> &ports,
                                                         const DLTensor *tensors, size_t count, size_t ranks = 1) {
  if (count != ports.size() * ranks)
    return absl::InvalidArgumentError(absl::StrCat("the program has ", ports.size(), " ", kind, "s",
                                                   ranks > 1 ? absl::StrCat(" on each of ", ranks, " ranks") : "",
                                                   ", but ", count, " were given"));
  if (!tensors && count > 0)
    return isNull("the list of tensors");
  std::vector<runtime::FullTensor> result;
  for (size_t i = 0; i < count; ++i) {
    const DLTensor &tensor = tensors[i];
    const runtime::PortInfo &port = ports[i % ports.size()];
    std::string where = absl::StrCat(kind, " '", port.name, "'");
    if (!matches(tensor.dtype, port.type))
      return absl::InvalidArgumentError(absl::StrCat(
          where, " has element type ", runtime::elementTypeName(port.type), ", but a tensor with type code ",
          static_cast<int>(tensor.dtype.code), " of ", static_cast<int>(tensor.dtype.bits), " bits was given"));
    if (tensor.ndim < 0 || (tensor.ndim > 0 && !tensor.shape))
      return isNull("the shape of a tensor");
    runtime::FullTensor host;
    host.data = tensor.data ? static_cast<std::byte *>(tensor.data) + tensor.byte_offset : nullptr;
    host.type = port.type;
    // Pinned memory is the host's.
    if (tensor.device.device_type != kDLCPU && tensor.device.device_type != kDLCUDAHost)
      host.device = tensor.device.device_type;
    host.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
    if (tensor.strides)
      host.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
    result.push_back(std::move(host));
  }
  return result;
}

absl::Status describePart(const dovetail_program *program, const std::vector<runtime::PortInfo> &ports, size_t index,
                          int32_t rank, int64_t *offsets, int64_t *extents) {
  const runtime::Plan &plan = program->program->getPlan();
  if (index >= ports.size())
    return absl::InvalidArgumentError(absl::StrCat("there is no port ", index, " of ", ports.size()));
  if (rank < 0 || rank >= plan.mesh.numRanks())
    return absl::InvalidArgumentError(
        absl::StrCat("there is no rank ", rank, "; the program has ", plan.mesh.numRanks()));
  layout::Box box = plan.tensorBox(ports[index].tensor, rank);
  if (box.rank() > 0 && (!offsets || !extents))
    return isNull(offsets ? "extents" : "offsets");
  for (int dim = 0; dim < box.rank(); ++dim) {
    offsets[dim] = box[dim].lo;
    extents[dim] = box[dim].size();
  }
  return absl::OkStatus();
}

/// The options of a caller of any version as the runtime's, whose defaults stay where they are 0.
absl::Status chooseOptions(const dovetail_runner_options *given, runtime::RunnerOptions &chosen) {
  dovetail_runner_options options;
  if (absl::Status status = api::readStruct("dovetail_runner_options", given, options); !status.ok())
    return status;
  if (options.threads != 0)
    chosen.threads = options.threads;
  if (options.timeout_seconds != 0) {
    if (!(options.timeout_seconds > 0 && options.timeout_seconds <= 1e6))
      return absl::InvalidArgumentError("timeout_seconds must be above 0 and at most 1000000");
    chosen.timeout = std::chrono::milliseconds(std::max(1, static_cast<int>(options.timeout_seconds * 1000)));
  }
  chosen.autotune = options.autotune != 0;
  chosen.pin = options.pin != 0;
  if (options.communicator)
    chosen.communicator = options.communicator;
  if (options.mpi_communicator) {
    chosen.processes = *options.mpi_communicator;
    if (!options.communicator)
      chosen.communicator = "mpi";
  }
  return absl::OkStatus();
}

absl::Status loadFile(const char *path, dovetail_program **program, bool checkWeights) {
  if (!path || !program)
    return isNull(path ? "program" : "path");
  if (absl::Status status = api::checkOtherVersions(); !status.ok())
    return status;
  auto loaded = runtime::Program::load(std::string(path), {.checkWeights = checkWeights});
  if (!loaded.ok())
    return loaded.status();
  *program = new dovetail_program{*std::move(loaded)};
  return absl::OkStatus();
}

} // namespace

const char *dovetail_version(void) { return runtime::version(); }

void dovetail_set_interruptible(int32_t is_interruptible) { runtime::setInterruptible(is_interruptible != 0); }

const char *dovetail_last_error(void) { return lastError().c_str(); }

dovetail_status dovetail_program_load(const char *path, dovetail_program **program) {
  return guard([&] { return loadFile(path, program, /*checkWeights=*/true); });
}

dovetail_status dovetail_program_open(const char *path, dovetail_program **program) {
  return guard([&] { return loadFile(path, program, /*checkWeights=*/false); });
}

dovetail_status dovetail_program_load_bytes(const void *bytes, size_t size, dovetail_program **program) {
  return guard([&]() -> absl::Status {
    if (!program || (!bytes && size > 0))
      return isNull(program ? "bytes" : "program");
    if (absl::Status status = api::checkOtherVersions(); !status.ok())
      return status;
    auto loaded = runtime::Program::load(absl::MakeConstSpan(static_cast<const std::byte *>(bytes), size));
    if (!loaded.ok())
      return loaded.status();
    *program = new dovetail_program{*std::move(loaded)};
    return absl::OkStatus();
  });
}

dovetail_status dovetail_program_bytes(const dovetail_program *program, const void **bytes, size_t *size) {
  return guard([&]() -> absl::Status {
    if (!program || !bytes || !size)
      return isNull(!program ? "program" : !bytes ? "bytes" : "size");
    absl::Span<const std::byte> artifact = program->program->getArtifact();
    *bytes = artifact.data();
    *size = artifact.size();
    return absl::OkStatus();
  });
}

void dovetail_program_free(dovetail_program *program) { delete program; }

const char *dovetail_program_model(const dovetail_program *program) {
  return program->program->getPlan().model.c_str();
}

const char *dovetail_program_target(const dovetail_program *program) {
  return program->program->getPlan().target.c_str();
}

size_t dovetail_program_num_axes(const dovetail_program *program) {
  return program->program->getPlan().mesh.getAxes().size();
}

dovetail_status dovetail_program_axis(const dovetail_program *program, size_t index, const char **name, int32_t *size) {
  return guard([&]() -> absl::Status {
    if (!program || !name || !size)
      return isNull(!program ? "program" : !name ? "name" : "size");
    const auto &axes = program->program->getPlan().mesh.getAxes();
    if (index >= axes.size())
      return absl::InvalidArgumentError(absl::StrCat("there is no axis ", index, "; the mesh has ", axes.size()));
    *name = axes[index].name.c_str();
    *size = axes[index].size;
    return absl::OkStatus();
  });
}

int32_t dovetail_program_num_ranks(const dovetail_program *program) { return program->program->numRanks(); }

size_t dovetail_program_num_inputs(const dovetail_program *program) {
  return program->program->getPlan().inputs.size();
}

size_t dovetail_program_num_outputs(const dovetail_program *program) {
  return program->program->getPlan().outputs.size();
}

dovetail_status dovetail_program_input(const dovetail_program *program, size_t index, dovetail_port *port) {
  return guard(
      [&] { return program ? describePort(program->program->getPlan().inputs, index, port) : isNull("program"); });
}

dovetail_status dovetail_program_output(const dovetail_program *program, size_t index, dovetail_port *port) {
  return guard(
      [&] { return program ? describePort(program->program->getPlan().outputs, index, port) : isNull("program"); });
}

dovetail_status dovetail_program_input_part(const dovetail_program *program, size_t index, int32_t rank,
                                            int64_t *offsets, int64_t *extents) {
  return guard([&] {
    return program ? describePart(program, program->program->getPlan().inputs, index, rank, offsets, extents)
                   : isNull("program");
  });
}

dovetail_status dovetail_program_output_part(const dovetail_program *program, size_t index, int32_t rank,
                                             int64_t *offsets, int64_t *extents) {
  return guard([&] {
    return program ? describePart(program, program->program->getPlan().outputs, index, rank, offsets, extents)
                   : isNull("program");
  });
}

dovetail_status dovetail_program_input_length(const dovetail_program *program, size_t index, int32_t dim,
                                              const char **name) {
  return guard([&]() -> absl::Status {
    if (!program || !name)
      return isNull(program ? "name" : "program");
    const runtime::Plan &plan = program->program->getPlan();
    if (index >= plan.inputs.size())
      return absl::InvalidArgumentError(absl::StrCat("there is no port ", index, " of ", plan.inputs.size()));
    const runtime::PortInfo &input = plan.inputs[index];
    if (dim < 0 || static_cast<size_t>(dim) >= input.shape.size())
      return absl::InvalidArgumentError(
          absl::StrCat("input '", input.name, "' has no dimension ", dim, " of ", input.shape.size()));
    int32_t count = plan.getCount(input, static_cast<size_t>(dim));
    *name = count < 0 ? nullptr : plan.counts[count].name.c_str();
    return absl::OkStatus();
  });
}

dovetail_status dovetail_program_feedback(const dovetail_program *program, size_t input, int64_t *output) {
  return guard([&]() -> absl::Status {
    if (!program || !output)
      return isNull(program ? "output" : "program");
    const std::vector<runtime::PortInfo> &inputs = program->program->getPlan().inputs;
    if (input >= inputs.size())
      return absl::InvalidArgumentError(absl::StrCat("there is no input ", input, "; the program has ", inputs.size()));
    *output = inputs[input].fedBy;
    return absl::OkStatus();
  });
}

dovetail_status dovetail_runner_create(const dovetail_program *program, const dovetail_runner_options *options,
                                       dovetail_runner **runner) {
  return guardLong([&]() -> absl::Status {
    if (!program || !runner)
      return isNull(program ? "runner" : "program");
    runtime::RunnerOptions chosen;
    if (options) {
      if (absl::Status status = chooseOptions(options, chosen); !status.ok())
        return status;
    }
    auto created = runtime::ProgramRunner::create(program->program, chosen);
    if (!created.ok())
      return created.status();
    std::string remark = (*created)->remark();
    *runner = new dovetail_runner{program->program, *std::move(created), std::move(remark)};
    return absl::OkStatus();
  });
}

const char *dovetail_runner_remark(const dovetail_runner *runner) { return runner ? runner->remark.c_str() : ""; }

void dovetail_runner_free(dovetail_runner *runner) { delete runner; }

dovetail_status dovetail_runner_run(dovetail_runner *runner, const DLTensor *inputs, size_t num_inputs,
                                    const DLTensor *outputs, size_t num_outputs) {
  return dovetail_runner_run_steps(runner, inputs, num_inputs, outputs, num_outputs, 1);
}

dovetail_status dovetail_runner_run_steps(dovetail_runner *runner, const DLTensor *inputs, size_t num_inputs,
                                          const DLTensor *outputs, size_t num_outputs, int64_t steps) {
  return guardLong([&]() -> absl::Status {
    if (!runner)
      return isNull("runner");
    const runtime::Plan &plan = runner->program->getPlan();
    auto in = convert("input", plan.inputs, inputs, num_inputs);
    if (!in.ok())
      return in.status();
    if (num_outputs == 0 && !runner->runner->isFirst())
      return runner->runner->run(*in, {}, steps);
    auto out = convert("output", plan.outputs, outputs, num_outputs);
    if (!out.ok())
      return out.status();
    return runner->runner->run(*in, *out, steps);
  });
}

dovetail_status dovetail_runner_ranks(const dovetail_runner *runner, int32_t *first, int32_t *count) {
  return guard([&]() -> absl::Status {
    if (!runner || !first || !count)
      return isNull(!runner ? "runner" : !first ? "first" : "count");
    *first = runner->runner->ranks().front();
    *count = static_cast<int32_t>(runner->runner->ranks().size());
    return absl::OkStatus();
  });
}

dovetail_status dovetail_runner_run_local(dovetail_runner *runner, const DLTensor *inputs, size_t num_inputs,
                                          const DLTensor *outputs, size_t num_outputs) {
  return guardLong([&]() -> absl::Status {
    if (!runner)
      return isNull("runner");
    const runtime::Plan &plan = runner->program->getPlan();
    size_t ranks = runner->runner->ranks().size();
    auto in = convert("input", plan.inputs, inputs, num_inputs, ranks);
    if (!in.ok())
      return in.status();
    auto out = convert("output", plan.outputs, outputs, num_outputs, ranks);
    if (!out.ok())
      return out.status();
    return runner->runner->runLocal(*in, *out);
  });
}

dovetail_status dovetail_runner_output_shape(const dovetail_runner *runner, size_t index, int64_t *shape) {
  return guard([&]() -> absl::Status {
    if (!runner || !shape)
      return isNull(runner ? "shape" : "runner");
    size_t count = runner->program->getPlan().outputs.size();
    if (index >= count)
      return absl::InvalidArgumentError(absl::StrCat("there is no output ", index, "; the program has ", count));
    std::vector<int64_t> extents = runner->runner->getOutputShape(index);
    std::copy(extents.begin(), extents.end(), shape);
    return absl::OkStatus();
  });
}

/// For tests, and so in no header: see MemoryFill.h.
extern "C" DOVETAIL_API void dovetail_fill_memory(uint8_t value) { runtime::fillMemory(std::byte{value}); }
