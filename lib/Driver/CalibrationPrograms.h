//===- CalibrationPrograms.h - What a machine is measured by ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the models that calibration compiles and runs.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DRIVER_CALIBRATIONPROGRAMS_H
#define DOVETAIL_LIB_DRIVER_CALIBRATIONPROGRAMS_H

#include <string>
#include <vector>

namespace dovetail {

/// A model as ONNX text, and how it is compiled.
struct CalibrationProgram {
  std::string name, text;
  /// As of `dovetail compile`.
  std::vector<std::string> options = {};
};

/// Names of nodes that are not measured begin so. They write what others read and read what these write, so that it
/// lies in caches and in memory that is used again, as in a model, and not in inputs and outputs.
inline constexpr char kAsidePrefix[] = "aside";

/// Products, kernels and copies of several sizes, on one rank. Sizes are those of layers of common models, and between.
std::vector<CalibrationProgram> getStepPrograms();
/// Exchanges of several sizes between so many ranks.
std::vector<CalibrationProgram> getExchangePrograms(int numRanks);

} // namespace dovetail

#endif // DOVETAIL_LIB_DRIVER_CALIBRATIONPROGRAMS_H
