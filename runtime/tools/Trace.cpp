//===- Trace.cpp - Traces for Perfetto -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/RunSupport.h"

#include "dovetail/runtime/Schedule.h"

#include <algorithm>
#include <nlohmann/json.hpp>

using namespace dovetail;
using namespace dovetail::tools;
using nlohmann::json;

absl::Status tools::writeTrace(const std::string &path, const runtime::ProgramRunner &runner) {
  const runtime::Plan &plan = runner.getProgram().getPlan();
  int ranks = plan.mesh.numRanks();
  auto origin = std::chrono::steady_clock::time_point::max();
  for (int rank = 0; rank < ranks; ++rank)
    if (!runner.times(rank).empty())
      origin = std::min(origin, runner.times(rank).front().begin);
  auto microseconds = [](auto duration) { return std::chrono::duration<double, std::micro>(duration).count(); };

  json events = json::array();
  for (int rank = 0; rank < ranks; ++rank) {
    events.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", rank},
                      {"tid", 0},
                      {"args", {{"name", "rank " + std::to_string(rank)}}}});
    for (size_t i = 0; i < runner.times(rank).size(); ++i) {
      const runtime::StepInfo &step = plan.steps[i];
      const runtime::StepTime &time = runner.times(rank)[i];
      json arguments = {{"step", i}, {"kind", step.kind()}};
      // Viewers show the names of events.
      if (!step.source.empty())
        arguments["node"] = step.name;
      // Of other processes it is not known.
      if (i < runner.calls(rank).size() && !runner.calls(rank)[i].implementation.empty())
        arguments["implementation"] = runner.calls(rank)[i].implementation;
      if (time.share != 1)
        arguments["share"] = time.share;
      if (const auto *call = std::get_if<runtime::ExchangeCall>(&step.action)) {
        json classes = json::array();
        int64_t received = 0;
        for (const runtime::MoveInfo &move : call->moves) {
          runtime::MoveScheduler scheduler(plan, move);
          classes.push_back(layout::stringifyExchangeClass(scheduler.getClass()));
          received += scheduler.receivedBytes(rank);
        }
        arguments["classes"] = classes;
        arguments["exchange"] = layout::stringifyExchangeKind(call->kind);
        arguments["received bytes"] = received;
      }
      if (const auto *call = std::get_if<runtime::WaitCall>(&step.action)) {
        arguments["complete"] = call->complete;
        arguments["read"] = call->read;
        // What goes on beside the steps between has a row of its own.
        for (uint32_t exchange : call->complete)
          for (const char *phase : {"b", "e"})
            events.push_back(
                {{"name", plan.steps[exchange].title()},
                 {"cat", "under way"},
                 {"ph", phase},
                 // Ids are those of all processes.
                 {"id", std::to_string(rank) + "." + std::to_string(exchange)},
                 {"pid", rank},
                 {"tid", 0},
                 {"ts", microseconds((*phase == 'b' ? runner.times(rank)[exchange].begin : time.end) - origin)}});
      }
      events.push_back({{"name", step.title().empty() ? step.kind() : step.title()},
                        {"cat", step.kind()},
                        {"ph", "X"},
                        {"pid", rank},
                        {"tid", 0},
                        {"ts", microseconds(time.begin - origin)},
                        {"dur", microseconds(time.end - time.begin)},
                        {"args", arguments}});
    }
  }
  json trace = {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
  // Names come from models, which may contain any bytes.
  return writeText(path, trace.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}
