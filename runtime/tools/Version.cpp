//===- Version.cpp - What a program consists of ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Says which versions a program and its libraries are of, and what it finds on the machine, without opening plug-ins.
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/Version.h"

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/PluginFiles.h"
#include "dovetail/runtime/Version.h"
#include "dovetail/tools/Support.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <CLI/CLI.hpp>
#include <dnnl.h>
#include <memory>
#include <nlohmann/json.hpp>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

std::string describeText(const std::string &program, const nlohmann::json &facts) {
  std::vector<std::vector<std::string>> rows;
  if (facts.contains("commit"))
    rows.push_back({"commit", facts["commit"]});
  if (facts.contains("llvm"))
    rows.push_back({"LLVM", facts["llvm"]});
  rows.push_back({"oneDNN", facts["onednn"]});
  int format = facts["artifact_format"], oldest = facts["oldest_read_format"];
  rows.push_back({"artifact format",
                  oldest == format ? absl::StrCat(format) : absl::StrCat(format, ", reads ", oldest, " and newer")});
  rows.push_back({"targets", absl::StrJoin(facts["targets"].get<std::vector<std::string>>(), ", ")});
  for (const nlohmann::json &plugin : facts["plugins"])
    rows.push_back({absl::StrCat("plug-in ", plugin["name"].get<std::string>()),
                    plugin.contains("file") ? plugin["file"] : plugin["missing"]});
  return absl::StrCat(program, " ", facts["version"].get<std::string>(), "\n", formatTable(rows));
}

nlohmann::json describe(const ProgramFacts &facts) {
  const dnnl_version_t *library = dnnl_version();
  nlohmann::json result = {{"version", runtime::version()},
                           {"onednn", absl::StrCat(library->major, ".", library->minor, ".", library->patch)},
                           {"artifact_format", runtime::artifactFormat},
                           {"oldest_read_format", runtime::oldestReadFormat},
                           {"plugins", nlohmann::json::array()}};
  if (!facts.commit.empty())
    result["commit"] = facts.commit;
  if (!facts.llvm.empty())
    result["llvm"] = facts.llvm;
  std::vector<std::string> targets = facts.targets;
  for (const runtime::PluginFile &plugin : runtime::findPluginFiles()) {
    bool isThere = !plugin.path.empty();
    result["plugins"].push_back(
        {{"name", plugin.name}, {isThere ? "file" : "missing", isThere ? plugin.path : plugin.problem}});
    if (facts.targets.empty() && isThere && plugin.isForDevice())
      targets.push_back(plugin.name);
  }
  if (facts.targets.empty())
    targets.insert(targets.begin(), runtime::hostTarget);
  result["targets"] = targets;
  return result;
}

} // namespace

void tools::addVersionFlags(CLI::App &app, const ProgramFacts &facts) {
  // Evaluated before the version is printed.
  auto json = std::make_shared<bool>(false);
  CLI::Option *format = app.add_flag("--json", *json, "With --version: print JSON.");
  std::string name = app.get_name();
  CLI::Option *version = app.set_version_flag(
      "--version",
      [json, name, facts] {
        nlohmann::json described = describe(facts);
        if (*json)
          return described.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
        std::string text = describeText(name, described);
        // The parser ends it by a line break of its own.
        text.pop_back();
        return text;
      },
      "Print versions, targets and plug-ins.");
  format->needs(version);
}
