//===- PredictionPage.h - Pictures of predictions ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the pictures of a page about a prediction, each an inline SVG.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DRIVER_PREDICTIONPAGE_H
#define DOVETAIL_LIB_DRIVER_PREDICTIONPAGE_H

#include "dovetail/Driver/Prediction.h"

namespace dovetail {

/// Writes the elements of one picture, and closes it. Lengths are pixels.
class Picture {
public:
  Picture(llvm::raw_ostream &os, double width, double height);
  ~Picture() { os << "</svg>\n"; }
  Picture(const Picture &) = delete;
  Picture &operator=(const Picture &) = delete;

  /// A rectangle; what `title` says is shown where one points at it.
  void addBox(double x, double y, double width, double height, llvm::StringRef style, llvm::StringRef title = "");
  void addLine(double x1, double y1, double x2, double y2, llvm::StringRef style);
  /// `path` as SVG's attribute d.
  void addPath(llvm::StringRef path, llvm::StringRef style, llvm::StringRef title = "");
  /// `anchor`: start, middle or end.
  void addText(double x, double y, llvm::StringRef text, llvm::StringRef anchor = "start", llvm::StringRef style = "");

private:
  llvm::raw_ostream &os;
};

/// A colour for each of a few things; they repeat after ten.
llvm::StringRef getColor(size_t number);
/// Fill and what it stands for, in a row above pictures.
void writeLegend(llvm::ArrayRef<std::pair<std::string, std::string>> entries, llvm::raw_ostream &os);

/// What each rank does when.
void drawLanes(const Prediction &prediction, llvm::raw_ostream &os);
/// What each rank's memory holds when.
void drawMemory(const Prediction &prediction, llvm::raw_ostream &os);
/// What each rank holds of inputs and outputs.
void drawCuts(const Prediction &prediction, llvm::raw_ostream &os);
/// The steps, coloured by how they are split, with what they read of each other.
void drawGraph(const Prediction &prediction, llvm::raw_ostream &os);

} // namespace dovetail

#endif // DOVETAIL_LIB_DRIVER_PREDICTIONPAGE_H
