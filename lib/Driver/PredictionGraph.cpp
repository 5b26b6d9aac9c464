//===- PredictionGraph.cpp - Pictures of how things are split -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Draws what ranks hold of inputs and outputs, and the steps of a program by how they are split.
//
//===----------------------------------------------------------------------===//

#include "PredictionPage.h"

#include "dovetail/Text/SourceName.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <set>

using namespace dovetail;
using llvm::formatv;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

/// The dimensions of a tensor that are drawn downwards and to the right: those that are split, else the last ones. -1:
/// there is none.
static std::pair<int, int> getDrawnDims(const layout::Sharding &sharding, llvm::ArrayRef<int64_t> shape) {
  std::vector<int> dims;
  auto add = [&](auto mayTake) {
    for (int dim = static_cast<int>(shape.size()) - 1; dim >= 0 && dims.size() < 2; --dim)
      if (!llvm::is_contained(dims, dim) && mayTake(dim))
        dims.push_back(dim);
  };
  add([&](int dim) { return sharding.dims[dim].isSplit(); });
  add([&](int dim) { return shape[dim] > 1; });
  llvm::sort(dims);
  if (dims.empty())
    return {-1, -1};
  return dims.size() == 1 ? std::pair(-1, dims[0]) : std::pair(dims[0], dims[1]);
}

/// Of more parts only the lines between them are drawn.
static constexpr size_t kMaxParts = 256;

static std::string formatShape(llvm::ArrayRef<int64_t> shape) {
  return llvm::join(llvm::map_range(shape, [](int64_t extent) { return std::to_string(extent); }), " x ");
}

/// Draws where parts begin that are too many to be drawn one by one. Lines that are closer than two pixels become one.
static void drawBegins(Picture &picture, const std::map<std::vector<int64_t>, std::vector<int>> &holders, double rows,
                       double columns, double height, double width) {
  std::set<int64_t> tops, lefts;
  for (const auto &[key, ranks] : holders) {
    tops.insert(key[0]);
    lefts.insert(key[2]);
  }
  constexpr double least = 2;
  auto draw = [&](const std::set<int64_t> &begins, double scale, auto drawAt) {
    double last = 0;
    for (int64_t begin : begins)
      if (double at = double(begin) * scale; at - last >= least) {
        last = at;
        drawAt(1 + at);
      }
  };
  constexpr StringRef style = "stroke:#333;stroke-width:0.7";
  draw(tops, height / rows, [&](double y) { picture.addLine(1, y, 1 + width, y, style); });
  draw(lefts, width / columns, [&](double x) { picture.addLine(x, 1, x, 1 + height, style); });
}

static void drawPort(const PredictedRun &run, const runtime::PortInfo &port, StringRef what, llvm::raw_ostream &os) {
  const runtime::Plan &plan = run.plan;
  const layout::Sharding &sharding = plan.tensors[port.tensor].sharding;
  auto [down, right] = getDrawnDims(sharding, port.shape);
  constexpr double most = 240, least = 36, caption = 20;
  double rows = down < 0 ? 1 : double(port.shape[down]), columns = right < 0 ? 1 : double(port.shape[right]);
  double scale = most / std::max({rows, columns, 1.0});
  double height = std::max(rows * scale, least), width = std::max(columns * scale, least);
  std::map<std::vector<int64_t>, std::vector<int>> holders;
  for (int rank = 0; rank < run.getNumRanks(); ++rank) {
    layout::Box box = plan.tensorBox(port.tensor, rank);
    std::vector<int64_t> key;
    for (int dim : {down, right})
      key.insert(key.end(), {dim < 0 ? 0 : box[dim].lo, dim < 0 ? 1 : box[dim].hi});
    if (!box.empty())
      holders[key].push_back(rank);
  }
  os << "<div><b>";
  llvm::printHTMLEscaped(port.name, os);
  os << "</b> (" << what << ")<br>" << formatShape(port.shape);
  if (down >= 0)
    os << ", dimension " << down << " downwards, " << right << " to the right";
  Picture picture(os, std::max(width, 120.0) + 4, height + caption);
  picture.addBox(1, 1, width, height, "fill:#fff;stroke:#888");
  bool isEachDrawn = holders.size() <= kMaxParts;
  auto drawPart = [&](size_t number, const std::vector<int64_t> &key, const std::vector<int> &ranks) {
    double y = 1 + double(key[0]) / rows * height, h = double(key[1] - key[0]) / rows * height;
    double x = 1 + double(key[2]) / columns * width, w = double(key[3] - key[2]) / columns * width;
    std::string text = tools::nameRanks(ranks);
    std::string title = text;
    if (down >= 0)
      title += formatv(": [{0}, {1}) x [{2}, {3})", key[0], key[1], key[2], key[3]).str();
    else if (right >= 0)
      title += formatv(": [{0}, {1})", key[2], key[3]).str();
    picture.addBox(x, y, w, h, ("fill-opacity:0.35;stroke:#333;stroke-width:0.7;fill:" + getColor(number)).str(),
                   title);
    // Six pixels for a letter, and twelve for a line.
    if (h >= 12 && w >= 6.0 * double(text.size()))
      picture.addText(x + w / 2, y + h / 2 + 4, text, "middle");
    else if (h >= 12 && w >= 6.0 * double(tools::formatRanks(ranks).size()))
      picture.addText(x + w / 2, y + h / 2 + 4, tools::formatRanks(ranks), "middle");
  };
  if (!isEachDrawn)
    drawBegins(picture, holders, rows, columns, height, width);
  else
    for (auto [number, part] : llvm::enumerate(holders))
      drawPart(number, part.first, part.second);
  bool isWhole = holders.size() == 1 && run.getNumRanks() > 1;
  picture.addText(1, height + 15,
                  isWhole ? "every rank has all of it"
                          : formatv("{0} parts{1}", holders.size(), isEachDrawn ? "" : ", not all drawn").str());
}

void dovetail::drawCuts(const Prediction &prediction, llvm::raw_ostream &os) {
  const runtime::Plan &plan = prediction.run.plan;
  constexpr size_t most = 8;
  os << "<h2>What ranks hold of inputs and outputs</h2>\n<div class=\"inputs\">\n";
  for (auto [what, ports] : {std::pair("input", &plan.inputs), std::pair("output", &plan.outputs)})
    for (const runtime::PortInfo &port : llvm::ArrayRef(*ports).take_front(most)) {
      drawPort(prediction.run, port, what, os);
      os << "</div>\n";
    }
  os << "</div>\n";
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// The loops of a step; none if it has none.
static const std::vector<runtime::LoopInfo> *getLoops(const runtime::StepInfo &step) {
  return std::visit(
      [](const auto &action) -> const std::vector<runtime::LoopInfo> * {
        if constexpr (requires { action.loops; })
          return &action.loops;
        else
          return nullptr;
      },
      step.action);
}

namespace {
/// How a step is split: which mesh axes divide its results, and which its sums.
struct Split {
  std::string results, sums;

  std::string str() const {
    if (results.empty() && sums.empty())
      return "not split: every rank does all of it";
    std::string text = results.empty() ? "" : "results split over " + results;
    return sums.empty() ? text : text + (text.empty() ? "" : ", ") + "sums split over " + sums;
  }
};
} // namespace

static Split getSplit(const runtime::Plan &plan, const runtime::StepInfo &step) {
  Split split;
  size_t rank = plan.bufferOf(step.writes().front()).shape.size();
  auto add = [&](std::string &text, const layout::DimSharding &dim) {
    for (int axis : dim.axes)
      text += (text.empty() ? "" : ", ") + plan.mesh.getAxes()[axis].name;
  };
  if (const std::vector<runtime::LoopInfo> *loops = getLoops(step)) {
    for (auto [number, loop] : llvm::enumerate(*loops))
      if (loop.dim.isSplit())
        add(number < rank ? split.results : split.sums, loop.dim);
  } else {
    for (const layout::DimSharding &dim : plan.tensors[step.writes().front()].sharding.dims)
      add(split.results, dim);
  }
  return split;
}

/// Extents of the loops over a step's results, with the axes that split them: `1 x 16 x 517/y x 389`.
static std::string describeLoops(const runtime::Plan &plan, const runtime::StepInfo &step) {
  const std::vector<int64_t> &shape = plan.bufferOf(step.writes().front()).shape;
  const std::vector<runtime::LoopInfo> *loops = getLoops(step);
  std::string text;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const layout::DimSharding &sharding =
        loops ? (*loops)[dim].dim : plan.tensors[step.writes().front()].sharding.dims[dim];
    text += (text.empty() ? "" : " x ") + std::to_string(shape[dim]);
    for (int axis : sharding.axes)
      text += "/" + plan.mesh.getAxes()[axis].name;
  }
  return text;
}

namespace {
/// A picture with a row for each step but waits, in their order, and lines from what a step writes to who reads it.
class StepGraph {
public:
  StepGraph(const PredictedRun &run, llvm::raw_ostream &os) : run(run), os(os) {}

  void draw();

private:
  static constexpr double kRow = 21, kBar = 150, kBox = 350, kBoxLeft = 170, kArcs = 300;
  static constexpr size_t kMaxRows = 400;

  void findRows();
  void drawRow(Picture &picture, size_t row);
  void drawEdges(Picture &picture);

  const PredictedRun &run;
  llvm::raw_ostream &os;
  std::vector<size_t> steps;
  std::map<std::string, size_t> colors;
  double longest = 0;
};
} // namespace

void StepGraph::findRows() {
  for (auto [number, step] : llvm::enumerate(run.work.steps)) {
    if (step.kind == PlanStep::Kind::Wait || steps.size() >= kMaxRows)
      continue;
    steps.push_back(number);
    longest = std::max(longest, run.simulation.getSeconds(number));
    if (step.kind == PlanStep::Kind::Compute)
      colors.try_emplace(getSplit(run.plan, run.plan.steps[number]).str(), colors.size());
  }
}

void StepGraph::drawRow(Picture &picture, size_t row) {
  size_t number = steps[row];
  const PlanStep &step = run.work.steps[number];
  const runtime::StepInfo &info = run.plan.steps[number];
  double y = row * kRow + 2, seconds = run.simulation.getSeconds(number);
  bool isExchange = step.kind == PlanStep::Kind::Exchange;
  Split split = getSplit(run.plan, info);
  StringRef color = isExchange ? StringRef("#54a24b") : getColor(colors.at(split.str()));
  double bar = longest > 0 ? seconds / longest * (kBar - 60) : 0;
  picture.addBox(kBar - bar, y + 4, bar, kRow - 10, "fill:#bbb", formatSeconds(seconds));
  picture.addText(kBar - bar - 4, y + 13, formatSeconds(seconds), "end");
  std::string title = std::to_string(number) + " " + step.type + " " + info.title() + ", ";
  if (isExchange) {
    title += tools::formatBytes(static_cast<int64_t>(step.traffic->getBytes())) + " in all";
    picture.addBox(kBoxLeft + 24, y, kBox - 24, kRow - 5, "fill:#fff;stroke-dasharray:3 2;stroke:#54a24b", title);
  } else {
    title += split.str();
    picture.addBox(kBoxLeft, y, kBox, kRow - 5, ("fill-opacity:0.3;stroke:#999;stroke-width:0.7;fill:" + color).str(),
                   title);
  }
  std::string label = step.type + " " + text::clean(info.title(), 26);
  picture.addText(kBoxLeft + (isExchange ? 30 : 6), y + 12, label);
  std::string right =
      isExchange ? tools::formatBytes(static_cast<int64_t>(step.traffic->getBytes())) : describeLoops(run.plan, info);
  picture.addText(kBoxLeft + kBox - 6, y + 12, text::clean(right, 34), "end", "fill:#666");
}

void StepGraph::drawEdges(Picture &picture) {
  // Who wrote last what lies in a buffer. An exchange within one is passed through.
  std::map<uint32_t, size_t> writers;
  double left = kBoxLeft + kBox;
  for (auto [row, number] : llvm::enumerate(steps)) {
    const runtime::StepInfo &info = run.plan.steps[number];
    std::vector<size_t> sources;
    for (uint32_t tensor : info.reads())
      if (auto writer = writers.find(run.plan.tensors[tensor].buffer); writer != writers.end())
        sources.push_back(writer->second);
    llvm::sort(sources);
    sources.erase(llvm::unique(sources), sources.end());
    for (size_t source : sources) {
      double from = source * kRow + 2 + (kRow - 5) / 2, to = row * kRow + 2 + (kRow - 5) / 2;
      if (row == source + 1) {
        picture.addLine(kBoxLeft + kBox / 2, source * kRow + kRow - 3, kBoxLeft + kBox / 2, row * kRow + 2,
                        "stroke:#555;stroke-width:1.2");
        continue;
      }
      double reach = std::min(14 + 7.0 * double(row - source), kArcs);
      picture.addPath(
          formatv("M{0:f1},{1:f1}C{2:f1},{1:f1} {2:f1},{3:f1} {0:f1},{3:f1}", left, from, left + reach, to).str(),
          "fill:none;stroke:#555;stroke-opacity:0.55;stroke-width:1");
    }
    for (uint32_t tensor : info.writes())
      writers[run.plan.tensors[tensor].buffer] = row;
  }
}

void StepGraph::draw() {
  findRows();
  if (steps.empty())
    return;
  os << "<h2>Steps, by how they are split</h2>\n<p>From top to bottom, as each rank does them: how long they take, "
        "what "
     << "they are, the extents of their results with the mesh axes that divide these, and to the right who reads what "
     << "they write.</p>\n";
  std::vector<std::pair<std::string, std::string>> legend(colors.size());
  for (const auto &[text, number] : colors)
    legend[number] = {getColor(number).str(), text};
  legend.push_back({"#54a24b", "exchanges"});
  writeLegend(legend, os);
  {
    Picture picture(os, kBoxLeft + kBox + kArcs, steps.size() * kRow + 4);
    drawEdges(picture);
    for (size_t row = 0; row < steps.size(); ++row)
      drawRow(picture, row);
  }
  if (steps.size() == kMaxRows)
    os << "<p>Later steps are not shown.</p>\n";
}

void dovetail::drawGraph(const Prediction &prediction, llvm::raw_ostream &os) { StepGraph(prediction.run, os).draw(); }
