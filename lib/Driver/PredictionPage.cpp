//===- PredictionPage.cpp - Pages about predictions -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes the page about a prediction, with its pictures of time and memory.
//
//===----------------------------------------------------------------------===//

#include "PredictionPage.h"

#include "dovetail/tools/Support.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace dovetail;
using llvm::formatv;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Picture::Picture(llvm::raw_ostream &os, double width, double height) : os(os) {
  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:f0}\" height=\"{1:f0}\" viewBox=\"0 0 {0:f0} "
                "{1:f0}\">\n",
                width, height);
}

static void writeTitle(StringRef title, StringRef element, llvm::raw_ostream &os) {
  if (title.empty()) {
    os << "/>\n";
    return;
  }
  os << "><title>";
  llvm::printHTMLEscaped(title, os);
  os << "</title></" << element << ">\n";
}

void Picture::addBox(double x, double y, double width, double height, StringRef style, StringRef title) {
  os << formatv("<rect x=\"{0:f2}\" y=\"{1:f2}\" width=\"{2:f2}\" height=\"{3:f2}\" style=\"{4}\"", x, y, width, height,
                style);
  writeTitle(title, "rect", os);
}

void Picture::addLine(double x1, double y1, double x2, double y2, StringRef style) {
  os << formatv("<line x1=\"{0:f2}\" y1=\"{1:f2}\" x2=\"{2:f2}\" y2=\"{3:f2}\" style=\"{4}\"/>\n", x1, y1, x2, y2,
                style);
}

void Picture::addPath(StringRef path, StringRef style, StringRef title) {
  os << "<path d=\"" << path << "\" style=\"" << style << "\"";
  writeTitle(title, "path", os);
}

void Picture::addText(double x, double y, StringRef text, StringRef anchor, StringRef style) {
  os << formatv("<text x=\"{0:f1}\" y=\"{1:f1}\" text-anchor=\"{2}\" style=\"{3}\">", x, y, anchor, style);
  llvm::printHTMLEscaped(text, os);
  os << "</text>\n";
}

StringRef dovetail::getColor(size_t number) {
  static constexpr StringRef colors[] = {"#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756",
                                         "#72b7b2", "#9d755d", "#eeca3b", "#ff9da6", "#79706e"};
  return colors[number % std::size(colors)];
}

void dovetail::writeLegend(llvm::ArrayRef<std::pair<std::string, std::string>> entries, llvm::raw_ostream &os) {
  os << "<p class=\"legend\">";
  for (const auto &[color, text] : entries) {
    os << "<span><i style=\"background:" << color << "\"></i>";
    llvm::printHTMLEscaped(text, os);
    os << "</span>";
  }
  os << "</p>\n";
}

static std::string fill(StringRef color) { return ("fill:" + color).str(); }

/// A round number of which a few make `most`.
static double getTick(double most) {
  double tick = std::pow(10, std::floor(std::log10(most / 5)));
  for (double factor : {2.0, 2.5, 2.0})
    if (most / tick > 8)
      tick *= factor;
  return tick;
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

namespace {
constexpr double kLabel = 130, kWidth = 1000, kLane = 16, kMoves = 7, kGap = 7, kAxis = 24;
/// More ranks than this are not told apart in a picture.
constexpr size_t kMaxLanes = 32, kMaxCurves = 10;

const StringRef kProducts = "#4c78a8", kElements = "#f58518", kCopies = "#b279a2", kExchanging = "#54a24b",
                kWaiting = "#f4b8b6";

/// Draws what one rank does; neighbours of one colour that nobody could tell apart become one box.
class Lane {
public:
  Lane(Picture &picture, double y, double height, double scale)
      : picture(picture), y(y), height(height), scale(scale) {}
  ~Lane() { flush(); }

  void add(double begin, double end, StringRef newColor, const std::string &newTitle) {
    double from = kLabel + begin * scale, to = kLabel + end * scale;
    if (to <= from)
      return;
    if (newColor == color && from - right < 0.3 && (to - from < 1 || right - left < 1)) {
      right = to;
      ++count;
      return;
    }
    flush();
    left = from;
    right = to;
    color = newColor;
    title = newTitle;
    count = 1;
  }

private:
  void flush() {
    if (count > 0)
      picture.addBox(left, y, std::max(right - left, 0.2), height, fill(color),
                     count == 1 ? title : std::to_string(count) + " steps from " + title);
    count = 0;
  }

  Picture &picture;
  double y, height, scale;
  double left = 0, right = -1;
  StringRef color;
  std::string title;
  int count = 0;
};
} // namespace

static StringRef getColorOf(const PlanStep &step, int rank) {
  switch (step.kind) {
  case PlanStep::Kind::Exchange:
    return kExchanging;
  case PlanStep::Kind::Wait:
    return kWaiting;
  case PlanStep::Kind::Compute:
    break;
  }
  switch (step.getWork(rank).kind) {
  case StepWork::Kind::Product:
    return kProducts;
  case StepWork::Kind::Elements:
    return kElements;
  case StepWork::Kind::Copy:
    return kCopies;
  }
  llvm_unreachable("covered switch");
}

static void drawTimeAxis(Picture &picture, double seconds, double height) {
  double tick = getTick(seconds);
  for (double at = 0; at <= seconds * 1.001; at += tick) {
    double x = kLabel + at / seconds * kWidth;
    picture.addLine(x, 0, x, height - kAxis + 4, "stroke:#ddd;stroke-width:1");
    picture.addText(x, height - 8, formatSeconds(at), "middle");
  }
}

void dovetail::drawLanes(const Prediction &prediction, llvm::raw_ostream &os) {
  const PredictedRun &run = prediction.run;
  double seconds = run.simulation.getSeconds();
  if (seconds <= 0)
    return;
  bool isBeside = run.work.engine == ExchangeEngine::Streams && run.getNumRanks() > 1;
  os << "<h2>Time of ranks</h2>\n";
  std::vector<std::pair<std::string, std::string>> legend = {
      {kProducts.str(), "products"}, {kElements.str(), "kernels and pools"}, {kCopies.str(), "copies"}};
  if (run.getNumRanks() > 1) {
    legend.push_back({kExchanging.str(), isBeside ? "exchanges, beside the steps" : "exchanges"});
    legend.push_back({kWaiting.str(), "waiting"});
  }
  writeLegend(legend, os);
  std::vector<std::vector<int>> alike = run.getAlikeRanks();
  size_t lanes = std::min(alike.size(), kMaxLanes);
  double row = kLane + (isBeside ? kMoves + 1 : 0) + kGap, height = lanes * row + kAxis;
  {
    Picture picture(os, kLabel + kWidth + 40, height);
    drawTimeAxis(picture, seconds, height);
    for (size_t number = 0; number < lanes; ++number) {
      int rank = alike[number].front();
      double y = number * row + 2;
      std::string label = tools::nameRanks(alike[number]);
      // Few words: the legend of memory names more ranks.
      if (label.size() > 17)
        label = formatv("{0}, ... ({1} ranks)", rank, alike[number].size()).str();
      picture.addText(kLabel - 8, y + kLane - 4, label, "end");
      picture.addBox(kLabel, y, kWidth, kLane, "fill:#f3f3f3");
      Lane steps(picture, y, kLane, kWidth / seconds), moves(picture, y + kLane + 1, kMoves, kWidth / seconds);
      double lastExchange = 0;
      for (auto [step, planned] : llvm::enumerate(run.work.steps)) {
        double begin = run.simulation.getBegin(step, rank), end = run.simulation.getEnd(step, rank);
        bool isMove = isBeside && planned.kind == PlanStep::Kind::Exchange;
        if (isMove) {
          begin = std::max(begin, lastExchange);
          lastExchange = std::max(lastExchange, end);
        }
        std::string title = formatv("{0} {1} {2}: {3} from {4}", step, planned.type, run.plan.steps[step].title(),
                                    formatSeconds(end - begin), formatSeconds(begin))
                                .str();
        // A rank that copies itself stands still first, at least as far as a picture can tell.
        double waiting = 0;
        if (!isMove && planned.kind == PlanStep::Kind::Exchange)
          waiting = run.simulation.getWaiting(step, rank);
        if (waiting > 0)
          steps.add(begin, begin + waiting, kWaiting, "waiting for " + title);
        (isMove ? moves : steps).add(begin + waiting, end, getColorOf(planned, rank), title);
      }
    }
  }
  if (alike.size() > lanes)
    os << "<p>" << alike.size() - lanes << " more ranks or groups of equal ranks are not shown.</p>\n";
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// A line through what a rank uses, from the writing of inputs to the reading of outputs.
static std::string getCurve(const PredictedRun &run, int rank, double xScale, double yScale, double bottom) {
  std::string path;
  llvm::raw_string_ostream os(path);
  size_t steps = run.work.steps.size();
  double lastY = bottom - double(run.getMemory(rank, 0)) * yScale, lastX = kLabel;
  os << formatv("M{0:f1},{1:f1}", lastX, lastY);
  for (size_t step = 0; step <= steps; ++step) {
    double seconds = step < steps ? run.simulation.getBegin(step, rank) : run.simulation.getSeconds();
    double x = kLabel + seconds * xScale, y = bottom - double(run.getMemory(rank, step + 1)) * yScale;
    // What is gone again within a pixel is drawn if it is more.
    if (x - lastX < 0.3 && y >= lastY)
      continue;
    os << formatv("H{0:f1}V{1:f1}", x, y);
    lastX = x;
    lastY = y;
  }
  os << formatv("H{0:f1}", kLabel + run.simulation.getSeconds() * xScale);
  return path;
}

void dovetail::drawMemory(const Prediction &prediction, llvm::raw_ostream &os) {
  const PredictedRun &run = prediction.run;
  double seconds = run.simulation.getSeconds(), most = 1, available = 0;
  if (seconds <= 0)
    return;
  for (int rank = 0; rank < run.getNumRanks(); ++rank) {
    most = std::max(most, double(run.getMemory(rank)));
    available = std::max(available, double(prediction.getAvailable(rank)));
  }
  os << "<h2>Memory of ranks</h2>\n<p>Weights, which stay, and values and scratch memory on top. "
     << "Dashed: all that the rank with most takes, gaps between values included";
  if (available > 0)
    os << formatv(", {0:f1} % of what it has", 100 * most / available);
  os << ".</p>\n";
  std::vector<std::vector<int>> alike = run.getAlikeRanks();
  // Each has a colour of its own. Of more groups than colours, those that take most are drawn.
  size_t numGroups = alike.size();
  llvm::stable_sort(alike,
                    [&](const auto &a, const auto &b) { return run.getMemory(a.front()) > run.getMemory(b.front()); });
  alike.resize(std::min(numGroups, kMaxCurves));
  llvm::sort(alike);
  size_t curves = alike.size();
  std::vector<std::pair<std::string, std::string>> legend;
  for (size_t number = 0; number < curves; ++number) {
    const std::vector<int> &ranks = alike[number];
    legend.push_back({getColor(number).str(), tools::nameRanks(ranks)});
  }
  writeLegend(legend, os);
  if (numGroups > curves)
    os << "<p>" << numGroups - curves << " of " << numGroups
       << " groups of equal ranks, which take no more than these, are not shown.</p>\n";
  constexpr double height = 260, bottom = height - kAxis;
  double top = most;
  if (available > most && available < 1.6 * most)
    top = available;
  top *= 1.06;
  Picture picture(os, kLabel + kWidth + 40, height);
  drawTimeAxis(picture, seconds, height);
  double yScale = (bottom - 6) / top, tick = std::exp2(std::ceil(std::log2(top / 8)));
  for (double bytes = 0; bytes <= top; bytes += tick) {
    double y = bottom - bytes * yScale;
    picture.addLine(kLabel, y, kLabel + kWidth, y, "stroke:#eee;stroke-width:1");
    picture.addText(kLabel - 8, y + 4, tools::formatBytes(static_cast<int64_t>(bytes)), "end");
  }
  auto addLimit = [&](double bytes, StringRef color, StringRef text) {
    double y = bottom - bytes * yScale;
    picture.addLine(kLabel, y, kLabel + kWidth, y, ("stroke-dasharray:4 3;stroke-width:1;stroke:" + color).str());
    if (!text.empty())
      picture.addText(kLabel + kWidth - 4, y - 4, text, "end", fill(color));
  };
  addLimit(most, "#666", "");
  if (available > 0 && available <= top)
    addLimit(available, "#c00", "what ranks have: " + tools::formatBytes(static_cast<int64_t>(available)));
  for (size_t number = 0; number < curves; ++number) {
    int rank = alike[number].front();
    picture.addPath(getCurve(run, rank, kWidth / seconds, yScale, bottom),
                    ("fill:none;stroke-width:1.3;stroke:" + getColor(number)).str(), "rank " + std::to_string(rank));
  }
}

//===----------------------------------------------------------------------===//
// The page
//===----------------------------------------------------------------------===//

static void writeSummary(const Prediction &prediction, llvm::raw_ostream &os) {
  const PredictedRun &run = prediction.run;
  std::vector<std::pair<std::string, std::string>> cards = {
      {formatSeconds(run.simulation.getSeconds()), "predicted time of a run"}};
  if (prediction.alone) {
    cards.push_back({formatv("{0:f2} x", prediction.getSpeedup()).str(),
                     "as fast as one device, which takes " + formatSeconds(prediction.alone->simulation.getSeconds())});
    cards.push_back({formatv("{0:f1} %", 100 * prediction.getEfficiency()).str(),
                     "efficiency of " + std::to_string(run.getNumRanks()) + " ranks"});
  }
  double bytes = 0;
  int64_t memory = 0;
  bool fits = true;
  for (size_t link = 0; link < prediction.cluster.getLinks().size(); ++link)
    bytes += run.simulation.getLinkBytes(link);
  for (int rank = 0; rank < run.getNumRanks(); ++rank) {
    memory = std::max(memory, run.getMemory(rank));
    fits &= prediction.fits(rank);
  }
  if (run.getNumRanks() > 1)
    cards.push_back({tools::formatBytes(static_cast<int64_t>(bytes)), "that ranks send each other in a run"});
  cards.push_back({tools::formatBytes(memory),
                   fits ? "memory of the rank that takes most" : "memory of a rank, which does NOT FIT"});
  os << "<div class=\"cards\">";
  for (const auto &[number, text] : cards) {
    os << "<div><b>" << number << "</b><br>";
    llvm::printHTMLEscaped(text, os);
    os << "</div>";
  }
  os << "</div>\n";
}

void dovetail::writePredictionPage(const Prediction &prediction, llvm::raw_ostream &os) {
  os << R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Dovetail plan</title><style>
body { font: 14px sans-serif; margin: 2em; color: #222; max-width: 1180px }
h1 { font-size: 22px; margin-bottom: 0.2em }
h2 { margin: 1.8em 0 0.4em; font-size: 16px }
svg { display: block; margin: 4px 0 }
svg text { font: 11px sans-serif; fill: #444 }
.cards { display: flex; flex-wrap: wrap; gap: 12px; margin: 1em 0 }
.cards div { border: 1px solid #ddd; border-radius: 6px; padding: 10px 16px; max-width: 200px; color: #555 }
.cards b { font-size: 22px; color: #222 }
.legend span { margin-right: 16px; white-space: nowrap }
.legend i { display: inline-block; width: 11px; height: 11px; margin-right: 5px; vertical-align: -1px }
.inputs { display: flex; flex-wrap: wrap; gap: 28px }
pre { background: #f7f7f7; padding: 12px; overflow-x: auto; font-size: 12px }
</style></head><body>
<h1>)";
  llvm::printHTMLEscaped(prediction.model, os);
  os << "</h1>\n<p>Predicted for " << prediction.run.getNumRanks()
     << (prediction.run.getNumRanks() == 1 ? " rank" : " ranks") << " of cluster ";
  llvm::printHTMLEscaped(prediction.cluster.getName(), os);
  os << ", mesh ";
  llvm::printHTMLEscaped(formatMesh(prediction.run.work.mesh), os);
  os << ". Nothing was run.</p>\n";
  writeSummary(prediction, os);
  drawCuts(prediction, os);
  drawLanes(prediction, os);
  drawMemory(prediction, os);
  drawGraph(prediction, os);
  os << "<h2>Numbers</h2>\n<pre>";
  std::string text;
  llvm::raw_string_ostream textOs(text);
  printPrediction(prediction, textOs);
  llvm::printHTMLEscaped(text, os);
  os << "</pre>\n</body></html>\n";
}
