//===- RunSupport.cpp - What the commands share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/RunSupport.h"

#include "dovetail/runtime/BoxCopy.h"
#include "dovetail/runtime/MemoryFill.h"
#include "dovetail/runtime/MemoryView.h"
#include "dovetail/runtime/RankGroup.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::tools;

void tools::setAction(CLI::App &app, CLI::App &command, int &exitCode, std::function<absl::Status()> body) {
  command.callback([&app, &exitCode, body = std::move(body)] {
    absl::Status status = body();
    if (!status.ok())
      std::fprintf(stderr, "%s: error: %s\n", app.get_name().c_str(), std::string(status.message()).c_str());
    exitCode = runtime::exitCodeOf(status);
  });
}

CLI::Option *tools::addRepeatable(CLI::App &command, const std::string &name, std::vector<std::string> &values,
                                  const std::string &description) {
  return command.add_option(name, values, description)->expected(1)->take_all()->allow_extra_args(false);
}

/// The heading of options for ranks that are processes.
static constexpr char processGroup[] = "Options of ranks that are processes";

void tools::addRunOptions(CLI::App &command, RunArguments &arguments) {
  command.add_option("artifact", arguments.artifact, "Compiled program (.dvt)")->required()->type_name("ARTIFACT");
  addRepeatable(command, "--input,-i", arguments.inputs,
                "An input: NAME=FILE.npy, .npz or .raw, NAME=random:SEED, NAME='FOLDER/*.npy' for steps, or FILE.npz "
                "for all inputs. No default.")
      ->type_name("SPEC");
  command
      .add_option("--threads", arguments.threads,
                  "Threads of this process, divided among its ranks; each rank has at least one.")
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--comm", arguments.communicator,
                  "How ranks communicate: local (threads), mpi, nccl, or another transport that `devices` lists. "
                  "Default: fits the launcher.")
      ->type_name("NAME");
  command.add_option("--timeout", arguments.timeout, "Seconds without progress of a rank after which the run fails.")
      ->type_name("SECONDS")
      ->capture_default_str();
  command
      .add_option("--device", arguments.device,
                  "Device of this process's ranks, counted from 0. Default: ranks take turns.")
      ->group(processGroup)
      ->type_name("N");
  command.add_option("--rank", arguments.rank, "Rank of this process, counted from 0. Default: as the launcher says.")
      ->group(processGroup)
      ->type_name("N");
  command.add_option("--world", arguments.world, "Number of all ranks, with --rank. Default: as the launcher says.")
      ->group(processGroup)
      ->type_name("N");
  command
      .add_option("--address", arguments.address,
                  "Machine of rank 0 and a free port there. Default: as the launcher says.")
      ->group(processGroup)
      ->type_name("HOST[:PORT]");
  command.add_flag("--pin", arguments.pin, "Bind each thread of the ranks to a processor of its own.")
      ->group(expertGroup);
  command
      .add_flag("--autotune", arguments.autotune,
                "Measure the algorithms of a device's libraries first, and use the fastest ones.")
      ->group(expertGroup);
  // For tests: a group without a name is not part of the help.
  command.add_option("--fill-memory", arguments.memoryFill, "What each byte of memory is before it is written to")
      ->group("")
      ->check(CLI::Range(0, 255))
      ->type_name("BYTE");
}

/// Which rank this process is: as arguments say, and then its environment.
static absl::StatusOr<runtime::LaunchEnvironment> findProcess(const RunArguments &arguments) {
  std::map<std::string, std::string> given;
  if (arguments.rank >= 0 || arguments.world >= 0) {
    if (arguments.rank < 0 || arguments.world < 1 || arguments.rank >= arguments.world)
      return absl::InvalidArgumentError(absl::StrCat("--rank ", arguments.rank, " --world ", arguments.world,
                                                     ": give both, with a rank from 0 to one less than the world"));
    if (arguments.address.empty() && arguments.world > 1)
      return absl::InvalidArgumentError("--rank: add --address HOST:PORT, where all ranks find rank 0");
    given = {{"DOVETAIL_RANK", absl::StrCat(arguments.rank)}, {"DOVETAIL_WORLD_SIZE", absl::StrCat(arguments.world)}};
  }
  if (!arguments.address.empty()) {
    // A number of IPv6 has colons of its own, and brackets if a port follows.
    const std::string &address = arguments.address;
    size_t colon = address.rfind(':'), bracket = address.rfind(']');
    bool hasPort =
        colon != std::string::npos && (address.find(':') == colon || (bracket != std::string::npos && bracket < colon));
    std::string host = hasPort ? address.substr(0, colon) : address;
    int port = 0;
    if (hasPort && (!absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 1 || port > 65535))
      return absl::InvalidArgumentError(
          absl::StrCat("--address ", address, ": the port must be a number from 1 to 65535"));
    if (host.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("--address ", address, ": name the machine of rank 0, as HOST or HOST:PORT"));
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
      host = host.substr(1, host.size() - 2);
    given["DOVETAIL_ADDRESS"] = host;
    if (hasPort)
      given["DOVETAIL_PORT"] = absl::StrCat(port);
  }
  absl::StatusOr<runtime::LaunchEnvironment> found =
      runtime::readLaunchEnvironment([&](const char *name) -> const char * {
        auto it = given.find(name);
        return it != given.end() ? it->second.c_str() : std::getenv(name);
      });
  if (found.ok() && arguments.world >= 0)
    found->launcher = "--world";
  return found;
}

/// The communicator of a process for which none is given. A process among several of a launcher is a rank: else each of
/// them would run all ranks, and write the same files.
static absl::StatusOr<std::string> defaultCommunicator(const RunArguments &arguments) {
  // Jobs of PyTorch have variables of their own, whatever starts processes in them.
  bool isOfMpi = std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("PMI_RANK");
  absl::StatusOr<runtime::LaunchEnvironment> process =
      runtime::readLaunchEnvironment([&](const char *name) -> const char * {
        bool isOfOthers = absl::string_view(name) == "RANK" || absl::string_view(name) == "DOVETAIL_RANK";
        return isOfMpi && isOfOthers ? nullptr : std::getenv(name);
      });
  // Slurm sets the variables of a rank in scripts, too, which are no rank.
  if (!process.ok() || process->size == 1 || process->launcher == "srun")
    return "local";
  absl::StatusOr<std::shared_ptr<const runtime::Program>> program =
      runtime::Program::load(arguments.artifact, {.checkWeights = false});
  if (!program.ok())
    return program.status();
  std::string name = (*program)->getPlan().isForDevice() ? "nccl" : process->launcher == "mpirun" ? "mpi" : "";
  absl::StatusOr<bool> connects =
      name.empty() ? absl::NotFoundError("these processes cannot be connected on CPUs; start them with mpirun")
                   : runtime::connectsProcesses(name);
  if (connects.ok())
    return name;
  return absl::InvalidArgumentError(absl::StrCat(
      "this process is one of ", process->size, ", as ", process->launcher, " says, and each would run all ",
      "ranks: ", connects.status().message(), "; if each process is meant to run all ranks, add --comm local"));
}

absl::StatusOr<runtime::RunnerOptions> tools::runnerOptions(RunArguments &arguments) {
  runtime::RunnerOptions options;
  if (arguments.communicator.empty() && (arguments.rank >= 0 || arguments.world >= 0 || !arguments.address.empty()))
    arguments.communicator = "local";
  if (arguments.communicator.empty()) {
    absl::StatusOr<std::string> chosen = defaultCommunicator(arguments);
    if (!chosen.ok())
      return chosen.status();
    arguments.communicator = *std::move(chosen);
  }
  if (arguments.threads < 1 || arguments.threads > 4096)
    return absl::InvalidArgumentError(absl::StrCat("--threads ", arguments.threads, ": give a number from 1 to 4096"));
  if (!(arguments.timeout > 0 && arguments.timeout <= 1e6))
    return absl::InvalidArgumentError(
        absl::StrCat("--timeout ", arguments.timeout, ": give a number of seconds above 0, at most 1000000"));
  if (arguments.device < -1)
    return absl::InvalidArgumentError(absl::StrCat("--device ", arguments.device, ": devices are counted from 0"));
  options.threads = arguments.threads;
  options.timeout = std::chrono::milliseconds(std::max<int64_t>(1, static_cast<int64_t>(arguments.timeout * 1000)));
  runtime::fillMemory(static_cast<std::byte>(arguments.memoryFill));
  options.pin = arguments.pin;
  options.autotune = arguments.autotune;
  options.device = arguments.device;
  options.communicator = arguments.communicator;
  if (arguments.rank >= 0 || arguments.world >= 0 || !arguments.address.empty()) {
    absl::StatusOr<bool> connects = runtime::connectsProcesses(arguments.communicator);
    if (!connects.ok())
      return connects.status();
    if (!*connects)
      return absl::InvalidArgumentError(
          absl::StrCat("--rank, --world and --address are for ranks that are processes, but with --comm ",
                       arguments.communicator, " all ranks are in this one; leave them out, or add --comm nccl"));
    absl::StatusOr<runtime::LaunchEnvironment> process = findProcess(arguments);
    if (!process.ok())
      return process.status();
    options.process = *std::move(process);
  }
  return options;
}

std::string tools::formatType(runtime::ElementType type, const std::vector<int64_t> &shape) {
  return absl::StrCat(runtime::elementTypeName(type), "[", absl::StrJoin(shape, ", "), "]");
}

std::vector<NamedTensor> tools::makeOutputs(const runtime::Plan &plan) {
  std::vector<NamedTensor> outputs;
  for (const runtime::PortInfo &port : plan.outputs) {
    NamedTensor &tensor = outputs.emplace_back();
    tensor.name = port.name;
    tensor.type = port.type;
    tensor.shape = port.shape;
    tensor.allocate();
  }
  return outputs;
}

void tools::cutOutputs(const runtime::ProgramRunner &runner, std::vector<NamedTensor> &outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::vector<int64_t> shape = runner.getOutputShape(i);
    if (shape == outputs[i].shape)
      continue;
    NamedTensor cut{outputs[i].name, outputs[i].type, std::move(shape), {}};
    cut.allocate();
    auto viewOf = [](NamedTensor &tensor) {
      return runtime::MemoryView::rowMajor(tensor.type, layout::Box::ofShape(tensor.shape), tensor.bytes.data());
    };
    if (layout::Box box = layout::Box::ofShape(cut.shape); !box.empty())
      runtime::copyBox(viewOf(cut), viewOf(outputs[i]), box);
    outputs[i] = std::move(cut);
  }
}

std::vector<runtime::FullTensor> tools::viewsOf(std::vector<NamedTensor> &tensors) {
  std::vector<runtime::FullTensor> views;
  for (NamedTensor &tensor : tensors)
    views.push_back(tensor.view());
  return views;
}

absl::Status tools::ofArtifact(const std::string &path, const absl::Status &status) {
  if (status.ok() || absl::StrContains(status.message(), path))
    return status;
  return absl::Status(status.code(), absl::StrCat("'", path, "': ", status.message()));
}

bool tools::isSameFile(const std::string &a, const std::string &b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error) && !error)
    return true;
  auto canonical = [](const std::string &path) {
    std::error_code error;
    std::filesystem::path result = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
    return error ? std::filesystem::path(path) : result;
  };
  return canonical(a) == canonical(b);
}

/// The files that an input's specification may name: names of inputs may contain '=', and '@' may be left out.
static std::vector<std::string> possibleFiles(const std::string &spec) {
  std::vector<std::string> files;
  for (size_t begin = 0; begin <= spec.size(); begin = spec.find('=', begin) + 1) {
    std::string file = spec.substr(begin);
    if (!file.empty() && file.front() == '@')
      file.erase(0, 1);
    if (!file.empty())
      files.push_back(std::move(file));
    if (spec.find('=', begin) == std::string::npos)
      break;
  }
  return files;
}

absl::Status tools::checkOutputs(const RunArguments &arguments, const std::vector<std::string> &outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto fail = [&](absl::string_view what) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", outputs[i], "' would be written over ", what, "; give it another name"));
    };
    if (isSameFile(outputs[i], arguments.artifact))
      return fail("the program that runs");
    for (const std::string &spec : arguments.inputs)
      for (const std::string &file : possibleFiles(spec))
        if (isSameFile(outputs[i], file))
          return fail(absl::StrCat("the input ", spec));
    for (size_t j = 0; j < i; ++j)
      if (isSameFile(outputs[i], outputs[j]))
        return fail("another output");
  }
  return absl::OkStatus();
}

void tools::printRemark(const runtime::ProgramRunner &runner) {
  if (std::string remark = runner.remark(); !remark.empty())
    std::fprintf(stderr, "dovetail: remark: %s\n", remark.c_str());
}

std::vector<Summary> tools::summarize(const std::vector<NamedTensor> &outputs) {
  std::vector<Summary> summaries(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    summaries[i].add(outputs[i].type, outputs[i].bytes.data(), outputs[i].numElements());
  return summaries;
}

std::vector<std::string> tools::namesOf(const std::vector<runtime::PortInfo> &ports) {
  std::vector<std::string> names;
  for (const runtime::PortInfo &port : ports)
    names.push_back(port.name);
  return names;
}

void tools::printNonFinite(const runtime::Plan &plan, const std::vector<Summary> &summaries) {
  if (std::string text = describeNonFinite(namesOf(plan.outputs), summaries); !text.empty())
    std::fprintf(stderr, "dovetail: remark: %s\n", text.c_str());
}

nlohmann::json tools::describeMemory(int rank, const runtime::SessionStatistics &memory) {
  return {{"rank", rank},
          {"values_bytes", memory.arenaBytes},
          {"scratch_bytes", memory.scratchBytes},
          {"prologue_bytes", memory.persistentBytes},
          {"start_bytes", memory.startBytes},
          {"weights_bytes", memory.weightBytes + memory.copiedBytes},
          {"packed_bytes", memory.packedBytes},
          {"message_bytes", memory.messageBytes},
          {"total_bytes", memory.totalBytes()}};
}

absl::Status tools::notEnoughMemory(const std::string &path, const runtime::Plan &plan) {
  int64_t bytes = 0, most = -1;
  const runtime::PortInfo *largest = nullptr;
  for (const std::vector<runtime::PortInfo> *ports : {&plan.inputs, &plan.outputs})
    for (const runtime::PortInfo &port : *ports) {
      int64_t size = layout::Box::ofShape(port.shape).volume() * runtime::elementSize(port.type);
      bytes += size;
      if (size <= most)
        continue;
      most = size;
      largest = &port;
    }
  return absl::ResourceExhaustedError(absl::StrCat(
      "'", path, "': there is not enough memory for its inputs and outputs, which take ", formatBytes(bytes),
      largest ? absl::StrCat("; the largest is '", largest->name, "' ", formatType(largest->type, largest->shape))
              : ""));
}

std::string tools::formatBytes(int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrCat(bytes, " B") : absl::StrFormat("%.1f %s", value, units[unit]);
}

absl::Status tools::flushOutput() {
  // The error of an earlier write is remembered, but not its kind.
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return absl::OkStatus();
  pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  if (errno == EPIPE || (::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0))
    return absl::CancelledError("the reader of the standard output has ended");
  return absl::PermissionDeniedError("cannot write to the standard output; is the disk full?");
}
