//===- InspectCommand.cpp - What is in an artifact -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/RunSupport.h"

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/Schedule.h"
#include "dovetail/tools/RankGroups.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <utility>

using namespace dovetail;
using namespace dovetail::tools;
using nlohmann::json;
using runtime::Plan;

namespace {

/// One entry of a sharding: `_`, or axes with cuts or windows.
std::string formatDim(const Plan &plan, const layout::DimSharding &dim, int64_t extent) {
  if (!dim.isSplit())
    return "_";
  std::string text = absl::StrJoin(
      dim.axes, "+", [&](std::string *out, int axis) { absl::StrAppend(out, plan.mesh.getAxes()[axis].name); });
  if (auto cuts = dim.cuts(extent)) {
    std::vector<int64_t> sizes;
    for (layout::Interval piece : dim.pieces)
      sizes.push_back(piece.size());
    return absl::StrCat(text, ":", absl::StrJoin(sizes, "+"));
  }
  return absl::StrCat(text, ":", absl::StrJoin(dim.pieces, "", [](std::string *out, layout::Interval piece) {
                        absl::StrAppend(out, piece.str());
                      }));
}

std::string formatSharding(const Plan &plan, uint32_t tensor) {
  const layout::Sharding &sharding = plan.tensors[tensor].sharding;
  const std::vector<int64_t> &shape = plan.bufferOf(tensor).shape;
  std::vector<std::string> dims;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    dims.push_back(formatDim(plan, sharding.dims[dim], shape[dim]));
  std::string text = absl::StrCat("[", absl::StrJoin(dims, ", "), "]");
  if (sharding.isPartial())
    absl::StrAppend(&text, " partial ", layout::stringifyReductionKind(sharding.partialKind), " over ",
                    absl::StrJoin(sharding.partialAxes, "+", [&](std::string *out, int axis) {
                      absl::StrAppend(out, plan.mesh.getAxes()[axis].name);
                    }));
  return text;
}

json describeTensor(const Plan &plan, uint32_t tensor) {
  const runtime::BufferInfo &buffer = plan.bufferOf(tensor);
  return {{"name", plan.tensors[tensor].name},
          {"type", formatType(buffer.type, buffer.shape)},
          {"sharding", formatSharding(plan, tensor)},
          {"format", buffer.format.str()}};
}

json describePorts(const Plan &plan, const std::vector<runtime::PortInfo> &ports) {
  json result = json::array();
  for (const runtime::PortInfo &port : ports) {
    json entry = describeTensor(plan, port.tensor);
    entry["name"] = port.name;
    for (int32_t count : plan.tensors[port.tensor].counts)
      entry["bounded"].push_back(count >= 0);
    if (port.fedBy >= 0)
      entry["fed_by"] = plan.outputs[port.fedBy].name;
    result.push_back(std::move(entry));
  }
  return result;
}

/// Adds what users call a step to what is said of it. Its name stays what programs find it by.
void addSource(json &entry, const runtime::StepInfo &step) {
  if (!step.source.empty())
    entry["source"] = step.source;
}

json describeSteps(const Plan &plan, const std::vector<runtime::StepInfo> &steps) {
  json result = json::array();
  for (const runtime::StepInfo &step : steps) {
    json entry = {{"name", step.name}, {"kind", step.kind()}, {"writes", json::array()}};
    addSource(entry, step);
    if (const auto *call = std::get_if<runtime::KernelCall>(&step.action))
      entry["symbol"] = call->symbol;
    if (const auto *call = std::get_if<runtime::MatMulCall>(&step.action); call && call->rowDims > 1)
      entry["row_dims"] = call->rowDims;
    if (step.division)
      entry["division"] = {
          {"loop", step.division->loop}, {"step", step.division->step}, {"grain", step.division->grain}};
    if (const auto *call = std::get_if<runtime::WaitCall>(&step.action)) {
      entry["complete"] = call->complete;
      entry["read"] = call->read;
    }
    for (uint32_t tensor : step.writes())
      entry["writes"].push_back(describeTensor(plan, tensor));
    result.push_back(std::move(entry));
  }
  return result;
}

/// What kernels for devices take, each with all architectures that code was generated for.
json describeKernels(const Plan &plan) {
  json result = json::array();
  for (const runtime::KernelUse &use : plan.kernelUses)
    result.push_back({{"symbol", use.symbol},
                      {"arch", use.arch},
                      {"registers", use.registers},
                      {"shared_bytes", use.sharedBytes},
                      {"spill_bytes", use.spillStores + use.spillLoads}});
  return result;
}

/// One move of an exchange; `received` has for each rank what it receives.
json describeMove(const Plan &plan, const runtime::MoveInfo &move, std::vector<int64_t> &received) {
  runtime::MoveScheduler scheduler(plan, move);
  std::vector<int64_t> bytes;
  int64_t total = 0, bound = 0;
  for (int rank = 0, ranks = plan.mesh.numRanks(); rank < ranks; ++rank) {
    bytes.push_back(scheduler.receivedBytes(rank));
    received[rank] += bytes.back();
    total += bytes.back();
    bound += scheduler.lowerBoundBytes(rank);
  }
  const runtime::BufferInfo &buffer = plan.bufferOf(move.source);
  return {{"class", layout::stringifyExchangeClass(scheduler.getClass())},
          {"tensor", formatType(buffer.type, buffer.shape)},
          {"from", formatSharding(plan, move.source)},
          {"to", formatSharding(plan, move.target)},
          {"bytes", total},
          {"lower_bound_bytes", bound},
          {"received_bytes", bytes}};
}

json describeExchanges(const Plan &plan, std::vector<int64_t> &received) {
  json result = json::array();
  received.assign(plan.mesh.numRanks(), 0);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto *call = std::get_if<runtime::ExchangeCall>(&plan.steps[i].action);
    if (!call)
      continue;
    json moves = json::array();
    int64_t bytes = 0;
    for (const runtime::MoveInfo &move : call->moves) {
      moves.push_back(describeMove(plan, move, received));
      bytes += moves.back()["bytes"].get<int64_t>();
    }
    result.push_back({{"step", i},
                      {"name", plan.steps[i].name},
                      {"kind", layout::stringifyExchangeKind(call->kind)},
                      {"bytes", bytes},
                      {"moves", moves}});
    addSource(result.back(), plan.steps[i]);
  }
  return result;
}

/// Sets `report` to all that there is to say about a program, whose ranks have so many threads each; `schedule` is the
/// result of the schedule check.
absl::Status describe(const runtime::Program &program, const std::string &path, const absl::Status &schedule,
                      int threads, json &report) {
  const Plan &plan = program.getPlan();
  struct stat info = {};
  ::stat(path.c_str(), &info);
  json mesh = json::array();
  for (const layout::MeshAxis &axis : plan.mesh.getAxes())
    mesh.push_back({{"name", axis.name}, {"size", axis.size}});
  std::vector<int64_t> received;
  json exchanges = describeExchanges(plan, received);
  json ranks = json::array();
  runtime::MemoryEstimator estimator(plan, threads);
  for (int rank = 0; rank < plan.mesh.numRanks(); ++rank) {
    absl::StatusOr<runtime::SessionStatistics> memory = estimator.estimateStatistics(rank);
    if (!memory.ok())
      return memory.status();
    json entry = describeMemory(rank, *memory);
    // Only processes need memory for messages.
    entry["total_bytes"] = memory->totalBytes() - memory->messageBytes;
    entry["received_bytes"] = received[rank];
    ranks.push_back(std::move(entry));
  }
  absl::StatusOr<runtime::ArtifactHeader> header = runtime::readHeader(program.getArtifact());
  if (!header.ok())
    return header.status();
  report = {{"file", path},
            {"file_bytes", static_cast<int64_t>(info.st_size)},
            {"format", header->format},
            {"oldest_reader", header->oldestReader},
            {"producer", plan.producer},
            {"model", plan.model},
            {"target", plan.target},
            {"math", runtime::mathModeName(plan.math)},
            {"cpu", plan.cpu},
            {"cpu_features", plan.cpuFeatures},
            {"code_bytes", program.getCodeSize()},
            {"weights_bytes", program.getWeights().size()},
            {"mesh", mesh},
            {"num_ranks", plan.mesh.numRanks()},
            {"inputs", describePorts(plan, plan.inputs)},
            {"outputs", describePorts(plan, plan.outputs)},
            {"prologue", describeSteps(plan, plan.prologue)},
            {"steps", describeSteps(plan, plan.steps)},
            {"kernels", describeKernels(plan)},
            {"exchanges", exchanges},
            {"threads", threads},
            {"ranks", ranks},
            {"schedule", schedule.ok() ? "ok" : std::string(schedule.message())}};
  return absl::OkStatus();
}

std::string text(const json &value) { return value.get<std::string>(); }

/// The name of a step for people.
std::string title(const json &step) { return step.value("source", text(step["name"])); }

std::string formatPorts(const json &ports) {
  std::vector<std::vector<std::string>> rows = {{"name", "type", "cut", "format"}};
  for (const json &port : ports) {
    rows.push_back({text(port["name"]), absl::StrCat(text(port["type"]), port.contains("bounded") ? " at most" : ""),
                    shortenSharding(text(port["sharding"])), text(port["format"])});
    if (port.contains("fed_by"))
      rows.back().push_back(absl::StrCat("in the next run output ", text(port["fed_by"])));
  }
  return formatTable(rows);
}

/// With `withSymbols`, each kernel has the symbol by which there is more about it.
std::string formatSteps(const json &steps, bool withSymbols) {
  std::vector<std::vector<std::string>> rows = {{"#", "kind", "name"}};
  if (withSymbols)
    rows[0].push_back("symbol");
  rows[0].insert(rows[0].end(), {"result", "cut", "format"});
  for (size_t i = 0; i < steps.size(); ++i) {
    std::vector<std::string> row = {std::to_string(i), text(steps[i]["kind"]), title(steps[i])};
    if (withSymbols)
      row.push_back(steps[i].value("symbol", ""));
    for (const json &tensor : steps[i]["writes"]) {
      size_t described = row.size();
      row.insert(row.end(), {text(tensor["type"]), shortenSharding(text(tensor["sharding"])), text(tensor["format"])});
      rows.push_back(row);
      row.assign(described, "");
    }
    if (steps[i]["kind"] == "wait") {
      // The steps that are waited for, in place of a result.
      auto listed = [&](const char *what) {
        const auto positions = steps[i][what].get<std::vector<uint32_t>>();
        return positions.empty() ? std::string() : absl::StrCat(what, " ", absl::StrJoin(positions, ", "));
      };
      std::vector<std::string> parts = {listed("complete"), listed("read")};
      std::erase(parts, "");
      row.push_back(absl::StrJoin(parts, "; "));
    }
    if (steps[i]["writes"].empty())
      rows.push_back(row);
  }
  return formatTable(rows);
}

std::string formatExchanges(const json &exchanges) {
  std::vector<std::vector<std::string>> rows = {
      {"step", "class", "kind", "name", "tensor", "from", "to", "bytes", "received by each rank"}};
  for (const json &exchange : exchanges)
    for (const json &move : exchange["moves"])
      rows.push_back({std::to_string(exchange["step"].get<int64_t>()), text(move["class"]), text(exchange["kind"]),
                      title(exchange), text(move["tensor"]), shortenSharding(text(move["from"])),
                      shortenSharding(text(move["to"])), formatBytes(move["bytes"].get<int64_t>()),
                      formatByRank(move["received_bytes"].get<std::vector<int64_t>>(), " ",
                                   [](int64_t bytes) { return std::to_string(bytes); })});
  return formatTable(rows);
}

std::string formatKernels(const json &kernels) {
  std::vector<std::vector<std::string>> rows = {{"symbol", "arch", "registers", "shared memory", "spilled"}};
  for (const json &kernel : kernels)
    rows.push_back({text(kernel["symbol"]), text(kernel["arch"]), std::to_string(kernel["registers"].get<int64_t>()),
                    formatBytes(kernel["shared_bytes"].get<int64_t>()),
                    formatBytes(kernel["spill_bytes"].get<int64_t>())});
  return formatTable(rows);
}

std::string formatReport(const json &report) {
  std::vector<std::string> axes;
  for (const json &axis : report["mesh"])
    axes.push_back(absl::StrCat(text(axis["name"]), "=", axis["size"].get<int64_t>()));
  std::vector<std::vector<std::string>> head = {
      {"file", absl::StrCat(text(report["file"]), " (", formatBytes(report["file_bytes"].get<int64_t>()), ": weights ",
                            formatBytes(report["weights_bytes"].get<int64_t>()), ", code ",
                            formatBytes(report["code_bytes"].get<int64_t>()), ")")},
      {"format", absl::StrCat(report["format"].get<uint32_t>(), ", for readers of format ",
                              report["oldest_reader"].get<uint32_t>(), " and newer")},
      {"model", text(report["model"])},
      {"compiler", text(report["producer"])},
      {"target", absl::StrCat(text(report["target"]), " ", text(report["cpu"]))},
      {"math", text(report["math"])},
      {"mesh", absl::StrCat(axes.empty() ? "none" : absl::StrJoin(axes, ","), " (", report["num_ranks"].get<int64_t>(),
                            report["num_ranks"] == 1 ? " rank)" : " ranks)")},
      {"schedule", text(report["schedule"]) == "ok" ? "ok: every send has its receive" : text(report["schedule"])}};
  std::string result = formatTable(head, "");
  absl::StrAppend(&result, "\nInputs\n", formatPorts(report["inputs"]), "\nOutputs\n", formatPorts(report["outputs"]));
  bool hasKernels = !report["kernels"].empty();
  if (!report["prologue"].empty())
    absl::StrAppend(&result, "\nPrologue (runs once)\n", formatSteps(report["prologue"], hasKernels));
  absl::StrAppend(&result, "\nSteps\n", formatSteps(report["steps"], hasKernels));
  if (hasKernels)
    absl::StrAppend(&result, "\nKernels\n", formatKernels(report["kernels"]));
  if (!report["exchanges"].empty())
    absl::StrAppend(&result, "\nExchanges\n", formatExchanges(report["exchanges"]));
  const std::pair<const char *, const char *> columns[] = {{"values and scratch", "values_bytes"},
                                                           {"of it scratch", "scratch_bytes"},
                                                           {"prologue", "prologue_bytes"},
                                                           {"weights", "weights_bytes"},
                                                           {"packed weights", "packed_bytes"},
                                                           {"total", "total_bytes"},
                                                           {"and for messages between processes", "message_bytes"},
                                                           {"received in a run", "received_bytes"}};
  std::vector<std::string> titles = {"rank"};
  for (const auto &[title, key] : columns)
    titles.push_back(title);
  // Ranks with the same numbers have one row. Of many, those that need most memory.
  constexpr size_t total = 5; // Of the columns, total_bytes.
  std::vector<std::vector<int64_t>> ofRanks;
  for (const json &rank : report["ranks"]) {
    std::vector<int64_t> &numbers = ofRanks.emplace_back();
    for (const auto &[title, key] : columns)
      numbers.push_back(rank[key].get<int64_t>());
  }
  RankGroups groups = groupRanks(ofRanks, total);
  std::vector<std::vector<std::string>> rows = {titles};
  for (const auto &[numbers, ranks] : groups.groups) {
    std::vector<std::string> &row = rows.emplace_back(1, formatRanks(ranks));
    for (int64_t bytes : numbers)
      row.push_back(formatBytes(bytes));
  }
  bool isForHost = text(report["target"]) == runtime::hostTarget;
  std::string note = isForHost ? absl::StrCat(" (threads of each: ", report["threads"].get<int64_t>(), ")") : "";
  absl::StrAppend(&result, "\nMemory of ranks", note, "\n", formatTable(rows));
  if (groups.left > 0)
    absl::StrAppend(&result, "  ", groups.left, " more groups of ranks need less; --json lists all ranks\n");
  return result;
}

} // namespace

absl::StatusOr<std::string> tools::describeArtifact(const std::string &path) {
  absl::StatusOr<std::shared_ptr<const runtime::Program>> program =
      runtime::Program::load(path, {/*executable=*/false});
  if (!program.ok())
    return program.status();
  absl::Status schedule = runtime::checkSchedule((*program)->getPlan());
  json report;
  if (absl::Status status = describe(**program, path, schedule, /*threads=*/1, report); !status.ok())
    return ofArtifact(path, status);
  return report.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

absl::Status tools::inspectArtifact(const std::string &path, bool asJson, int threads, std::string &text) {
  constexpr int maxThreads = 1 << 16;
  if (threads < 1 || threads > maxThreads)
    return absl::InvalidArgumentError(absl::StrCat("--threads ", threads, ": a rank has 1 to ", maxThreads));
  ProgressLine progress;
  progress.show("load");
  absl::StatusOr<std::shared_ptr<const runtime::Program>> program =
      runtime::Program::load(path, {/*executable=*/false});
  if (!program.ok())
    return program.status();
  progress.show("check the schedule");
  absl::Status schedule = runtime::checkSchedule((*program)->getPlan());
  progress.show("count bytes and memory of ranks");
  json report;
  if (absl::Status status = describe(**program, path, schedule, threads, report); !status.ok())
    return ofArtifact(path, status);
  progress.show("format");
  text = asJson ? report.dump(2, ' ', false, json::error_handler_t::replace) + "\n" : formatReport(report);
  progress.clear();
  return ofArtifact(path, schedule);
}

void tools::addInspectCommand(CLI::App &app, int &exitCode) {
  CLI::App *command = app.add_subcommand(
      "inspect",
      "Show what is in a compiled program: mesh, cuts, steps, exchanges with their bytes, memory of each rank");
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  auto threads = std::make_shared<int>(1);
  command->add_option("artifact", *path, "Compiled program (.dvt)")->required()->type_name("ARTIFACT");
  command->add_option("--threads", *threads, "Threads of each rank, for the scratch memory of library calls.")
      ->capture_default_str()
      ->type_name("N");
  command->add_flag("--json", *json, "Print JSON.");
  command->footer("Examples:\n"
                  "  " +
                  app.get_name() +
                  " inspect unet.dvt\n"
                  "  " +
                  app.get_name() + " inspect unet.dvt --json");
  setAction(app, *command, exitCode, [path, json, threads] {
    std::string text;
    absl::Status status = inspectArtifact(*path, *json, *threads, text);
    std::fputs(text.c_str(), stdout);
    return status;
  });
}
