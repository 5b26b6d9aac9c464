//===- Report.cpp - What was decided about a model -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes reports: as JSON what `dovetail inspect --json` prints and the times of the phases, as HTML the same for
// people.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Report.h"

#include "dovetail/Driver/Execution.h"
#include "dovetail/tools/RunCommands.h"
#include "dovetail/tools/Support.h"
#include "dovetail/tools/TensorFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <nlohmann/json.hpp>

using namespace dovetail;
using llvm::LogicalResult;
using llvm::StringRef;
using nlohmann::json;

namespace {

/// Writes one page without references to anything outside.
class HtmlReport {
public:
  HtmlReport(const json &report, llvm::raw_ostream &os) : report(report), os(os) {}

  void write();

private:
  using Row = std::vector<std::string>;

  void writeText(StringRef text) { llvm::printHTMLEscaped(text, os); }
  void writeTable(StringRef title, const Row &head, const std::vector<Row> &rows);
  /// One bar for each of `values`, with its text.
  void writeBars(StringRef title, llvm::ArrayRef<std::string> labels, llvm::ArrayRef<double> values,
                 llvm::ArrayRef<std::string> texts);
  void writePorts(StringRef title, const char *key);
  void writeExchanges();
  void writeSteps(StringRef title, const char *key);
  void writeRanks();
  void writePhases();

  const json &report;
  llvm::raw_ostream &os;
};

} // namespace

/// The name of a step for people.
static std::string getTitle(const json &step) { return step.value("source", step["name"].get<std::string>()); }

static std::string getBytes(const json &value) { return tools::formatBytes(value.get<int64_t>()); }

void HtmlReport::writeTable(StringRef title, const Row &head, const std::vector<Row> &rows) {
  os << "<h2>" << title << "</h2>\n<table>\n";
  auto writeRow = [&](const Row &row, StringRef cell) {
    os << "<tr>";
    for (const std::string &text : row) {
      os << "<" << cell << ">";
      writeText(text);
      os << "</" << cell << ">";
    }
    os << "</tr>\n";
  };
  writeRow(head, "th");
  for (const Row &row : rows)
    writeRow(row, "td");
  os << "</table>\n";
}

void HtmlReport::writeBars(StringRef title, llvm::ArrayRef<std::string> labels, llvm::ArrayRef<double> values,
                           llvm::ArrayRef<std::string> texts) {
  double largest = 0;
  for (double value : values)
    largest = std::max(largest, value);
  os << "<h2>" << title << "</h2>\n<table>\n";
  for (auto [label, value, text] : llvm::zip_equal(labels, values, texts)) {
    os << "<tr><td>";
    writeText(label);
    os << llvm::format("</td><td class=\"bar\"><div style=\"width:%.1f%%\"></div></td><td>",
                       largest > 0 ? 100 * value / largest : 0.0);
    writeText(text);
    os << "</td></tr>\n";
  }
  os << "</table>\n";
}

void HtmlReport::writePorts(StringRef title, const char *key) {
  std::vector<Row> rows;
  for (const json &port : report[key])
    rows.push_back({port["name"], port["type"], tools::shortenSharding(port["sharding"]), port["format"]});
  writeTable(title, {"name", "type", "cut", "format"}, rows);
}

void HtmlReport::writeExchanges() {
  std::vector<Row> rows;
  for (const json &exchange : report["exchanges"])
    for (const json &move : exchange["moves"])
      rows.push_back({std::to_string(exchange["step"].get<int64_t>()), move["class"], exchange["kind"],
                      getTitle(exchange), move["tensor"], tools::shortenSharding(move["from"]),
                      tools::shortenSharding(move["to"]), getBytes(move["bytes"]), getBytes(move["lower_bound_bytes"]),
                      tools::formatByRank(move["received_bytes"], ", ", tools::formatBytes)});
  writeTable(
      "Exchanges",
      {"step", "class", "kind", "name", "tensor", "from", "to", "bytes", "least possible", "received by each rank"},
      rows);
}

void HtmlReport::writeSteps(StringRef title, const char *key) {
  std::vector<Row> rows;
  for (const auto &[index, step] : llvm::enumerate(report[key])) {
    Row row = {std::to_string(index), step["kind"], getTitle(step), "", "", ""};
    auto add = [&](size_t cell, const std::string &text) { row[cell] += (row[cell].empty() ? "" : "; ") + text; };
    for (const json &tensor : step["writes"]) {
      add(3, tensor["type"]);
      add(4, tools::shortenSharding(tensor["sharding"]));
      add(5, tensor["format"]);
    }
    // Of waits, the steps that are waited for.
    for (const char *name : {"complete", "read"})
      if (step.contains(name) && !step[name].empty())
        row[3] += (row[3].empty() ? "" : "; ") + std::string(name) + " " + step[name].dump();
    rows.push_back(std::move(row));
  }
  writeTable(title, {"#", "kind", "name", "result", "cut", "format"}, rows);
}

void HtmlReport::writeRanks() {
  // Ranks with the same number have one bar.
  for (auto [title, key] : {std::pair("Memory of each rank", "total_bytes"),
                            std::pair("Bytes received by each rank in a run", "received_bytes")}) {
    std::vector<std::vector<int64_t>> numbers;
    for (const json &rank : report["ranks"])
      numbers.push_back({rank[key].get<int64_t>()});
    tools::RankGroups groups = tools::groupRanks(numbers, 0);
    std::vector<std::string> labels, texts;
    std::vector<double> values;
    for (const auto &[number, ranks] : groups.groups) {
      labels.push_back(tools::nameRanks(ranks));
      values.push_back(static_cast<double>(number.front()));
      texts.push_back(tools::formatBytes(number.front()));
    }
    writeBars(title, labels, values, texts);
    if (groups.left > 0)
      os << "<p>" << groups.left << " more groups of ranks have less; --report FILE.json lists all ranks.</p>\n";
  }
}

void HtmlReport::writePhases() {
  std::vector<std::string> labels, texts;
  std::vector<double> values;
  for (const json &phase : report["phases"]) {
    labels.push_back(phase["name"]);
    values.push_back(phase["seconds"]);
    llvm::raw_string_ostream(texts.emplace_back())
        << llvm::format("%.3f s", values.back()) << ", peak memory " << getBytes(phase["peak_bytes"]);
  }
  writeBars("Compilation", labels, values, texts);
}

void HtmlReport::write() {
  os << R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Dovetail report</title><style>
body { font: 14px sans-serif; margin: 2em; color: #222 }
h2 { margin: 1.5em 0 0.4em; font-size: 16px }
table { border-collapse: collapse }
td, th { padding: 2px 10px; text-align: left; border-bottom: 1px solid #ddd; vertical-align: top }
td.bar { width: 300px; border: 0 }
td.bar div { height: 12px; background: #4a7ebb }
</style></head><body>
<h1>)";
  std::string model = report["model"], file = report["file"];
  writeText(model.empty() ? file : model);
  os << "</h1>\n";
  std::string axes;
  for (const json &axis : report["mesh"])
    axes += (axes.empty() ? "" : ", ") + axis["name"].get<std::string>() + "=" +
            std::to_string(axis["size"].get<int64_t>());
  std::string target = report["target"].get<std::string>() + " " + report["cpu"].get<std::string>();
  writeTable("Program", {"file", "size", "weights", "code", "mesh", "target", "schedule"},
             {{file, getBytes(report["file_bytes"]), getBytes(report["weights_bytes"]), getBytes(report["code_bytes"]),
               axes, target, report["schedule"]}});
  writePorts("Inputs", "inputs");
  writePorts("Outputs", "outputs");
  writeExchanges();
  writeRanks();
  writePhases();
  writeSteps("Prologue (runs once)", "prologue");
  writeSteps("Steps", "steps");
  os << "</body></html>\n";
}

LogicalResult dovetail::checkReport(StringRef report, Diagnostics &diagnostics) {
  if (report.ends_with(".html") || report.ends_with(".json"))
    return llvm::success();
  return diagnostics.error(ExitCode::Usage, "'--report " + report + "': the name must end in .html or .json");
}

LogicalResult dovetail::writeReport(StringRef artifact, llvm::ArrayRef<PhaseTime> times, StringRef path,
                                    Diagnostics &diagnostics) {
  absl::StatusOr<std::string> description = tools::describeArtifact(artifact.str());
  if (!description.ok())
    return diagnostics.error(ExitCode::Internal, std::string(description.status().message()));
  json report = json::parse(*description);
  for (const PhaseTime &time : times) {
    json &phase = report["phases"].emplace_back(json{{"name", time.getName().str()},
                                                     {"seconds", time.seconds},
                                                     {"processor_seconds", time.processorSeconds},
                                                     {"peak_bytes", time.peakBytes},
                                                     {"passes", json::array()}});
    for (const PassTime &pass : time.passes)
      phase["passes"].push_back({{"name", pass.name}, {"processor_seconds", pass.seconds}});
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  if (path.ends_with(".json"))
    os << report.dump(2) << "\n";
  else
    HtmlReport(report, os).write();
  if (absl::Status status = tools::writeText(path.str(), text); !status.ok())
    return diagnostics.error(ExitCode::File, std::string(status.message()));
  return llvm::success();
}
