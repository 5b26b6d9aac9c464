//===- DevicesCommand.cpp - What this machine has -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <dnnl.hpp>
#include <fstream>
#include <memory>
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
  if (__builtin_cpu_supports("avx512f"))
    return "AVX-512";
  if (__builtin_cpu_supports("avx2"))
    return "AVX2";
  return "SSE";
}

absl::Status printDevices(bool json) {
  int64_t memory = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE);
  const dnnl_version_t *version = dnnl_version();
  std::string library = absl::StrCat(version->major, ".", version->minor, ".", version->patch);
  if (json) {
    nlohmann::json result = {{"devices",
                              {{{"kind", "cpu"},
                                {"name", cpuModel()},
                                {"processors", usableProcessors()},
                                {"vectors", vectorInstructions()},
                                {"memory_bytes", memory}}}},
                             {"libraries", {{"oneDNN", library}}},
                             {"communicators", {"local"}}};
    std::fputs((result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n").c_str(), stdout);
    return absl::OkStatus();
  }
  std::fputs(formatTable({{"cpu", cpuModel()},
                          {"processors", absl::StrCat(usableProcessors())},
                          {"vectors", vectorInstructions()},
                          {"memory", formatBytes(memory)},
                          {"libraries", absl::StrCat("oneDNN ", library)},
                          {"communicators", "local"}},
                         "")
                 .c_str(),
             stdout);
  return absl::OkStatus();
}

} // namespace

void tools::addDevicesCommand(CLI::App &app, int &exitCode) {
  CLI::App *command = app.add_subcommand("devices", "List the devices and libraries that programs can use here");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  setAction(app, *command, exitCode, [json] { return printDevices(*json); });
}
