//===- DevicesCommand.cpp - What this machine has -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/RunSupport.h"

#include "dovetail/runtime/Device.h"
#include "dovetail/runtime/HostFeatures.h"
#include "dovetail/runtime/Plan.h"
#include "dovetail/runtime/RankGroup.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <CLI/CLI.hpp>
#include <dnnl.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

std::string cpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (absl::StartsWith(line, "model name")) {
      size_t colon = line.find(": ");
      return colon == std::string::npos ? "" : line.substr(colon + 2);
    }
  return "unknown";
}

/// Processors that this process may use.
int usableProcessors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0)
    return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return CPU_COUNT(&set);
}

std::string vectorInstructions() {
  if (runtime::hostHasFeature("avx512f"))
    return "AVX-512";
  if (runtime::hostHasFeature("avx2"))
    return "AVX2";
  return "SSE";
}

using Table = std::vector<std::vector<std::string>>;

void addCpu(runtime::CpuLevel limit, Table &table, nlohmann::json &json) {
  int64_t memory = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE);
  const dnnl_version_t *version = dnnl_version();
  std::string library = absl::StrCat(version->major, ".", version->minor, ".", version->patch);
  json["devices"].push_back({{"kind", "cpu"},
                             {"name", cpuModel()},
                             {"processors", usableProcessors()},
                             {"vectors", vectorInstructions()},
                             {"memory_bytes", memory}});
  json["libraries"]["oneDNN"] = library;
  table.insert(table.end(), {{"cpu", cpuModel()},
                             {"processors", absl::StrCat(usableProcessors())},
                             {"vectors", vectorInstructions()},
                             {"memory", formatBytes(memory)},
                             {"libraries", absl::StrCat("oneDNN ", library)}});
  if (limit != runtime::CpuLevel::Unlimited) {
    json["devices"].back()["max_cpu"] = runtime::cpuLevelName(limit);
    table.push_back({"limited to", absl::StrCat(runtime::cpuLevelName(limit), " by DOVETAIL_MAX_CPU")});
  }
}

/// What connects ranks whose memory is of this kind.
void addTransports(const std::string &memory, Table &table, nlohmann::json &json) {
  for (const runtime::TransportInfo &transport : runtime::listTransports()) {
    if (transport.isUsable && !transport.memory.empty() && transport.memory != memory)
      continue;
    table.push_back({absl::StrCat("--comm ", transport.name), transport.description});
    if (transport.isUsable)
      json["communicators"][transport.name] = transport.description;
    for (const auto &[name, version] : transport.libraries) {
      json["libraries"][name] = version;
      table.push_back({name, version});
    }
  }
}

/// The devices of the plug-in for `target`. Errors: UNAVAILABLE, when there are none.
absl::Status addDevices(const std::string &target, Table &table, nlohmann::json &json) {
  absl::StatusOr<const runtime::DevicePlugin *> plugin = runtime::openDevicePlugin(target);
  if (!plugin.ok())
    return plugin.status();
  absl::StatusOr<int> count = (*plugin)->countDevices();
  if (!count.ok())
    return count.status();
  if (*count == 0)
    return absl::UnavailableError(absl::StrCat("this machine has no device for target '", target, "'"));
  for (int ordinal = 0; ordinal < *count; ++ordinal) {
    absl::StatusOr<std::unique_ptr<runtime::Device>> device = (*plugin)->openDevice(ordinal);
    if (!device.ok())
      return device.status();
    const runtime::DeviceInfo &info = (*device)->info();
    json["devices"].push_back({{"kind", target},
                               {"ordinal", ordinal},
                               {"name", info.name},
                               {"description", info.description},
                               {"arch", info.arch},
                               {"multiprocessors", info.multiprocessors},
                               {"memory_bytes", info.memoryBytes}});
    for (const auto &[name, version] : info.libraries)
      json["libraries"][name] = version;
    table.insert(table.end(), {{absl::StrCat(target, " ", ordinal), info.name},
                               {"architecture", info.arch},
                               {"multiprocessors", absl::StrCat(info.multiprocessors)},
                               {"memory", formatBytes(info.memoryBytes)}});
    for (const auto &[name, version] : info.libraries)
      table.push_back({name, version});
  }
  if ((*plugin)->listLibraries)
    for (const auto &[name, version] : (*plugin)->listLibraries()) {
      json["libraries"][name] = version;
      table.push_back({name, version});
    }
  addTransports((*plugin)->memory, table, json);
  return absl::OkStatus();
}

absl::Status printDevices(const std::string &target, bool json) {
  Table table;
  nlohmann::json result;
  if (target.empty() || target == runtime::hostTarget) {
    absl::StatusOr<runtime::CpuLevel> limit = runtime::maxCpuLevel();
    if (!limit.ok())
      return limit.status();
    addCpu(*limit, table, result);
    addTransports(runtime::hostMemory, table, result);
  }
  if (target.empty()) {
    // A machine without GPUs is nothing wrong, unless they were asked for.
    if (absl::Status status = addDevices("cuda", table, result); !status.ok()) {
      result["unavailable"]["cuda"] = std::string(status.message());
      table.push_back({"cuda", absl::StrCat("none: ", status.message())});
    }
  } else if (target != runtime::hostTarget) {
    if (absl::Status status = addDevices(target, table, result); !status.ok())
      return status;
  }
  std::string text =
      json ? result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n" : formatTable(table, "");
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

} // namespace

void tools::addDevicesCommand(CLI::App &app, int &exitCode) {
  CLI::App *command = app.add_subcommand("devices", "List the devices and libraries that programs can use here");
  auto json = std::make_shared<bool>(false);
  auto target = std::make_shared<std::string>();
  command
      ->add_option("--target", *target,
                   "List devices for programs of this target only, such as cpu or cuda. Default: all targets.")
      ->type_name("NAME");
  command->add_flag("--json", *json, "Print JSON.");
  command->footer("Examples:\n"
                  "  " +
                  app.get_name() +
                  " devices\n"
                  "  " +
                  app.get_name() + " devices --target cuda --json");
  setAction(app, *command, exitCode, [json, target] { return printDevices(*target, *json); });
}
