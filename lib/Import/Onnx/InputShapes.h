//===- InputShapes.h - Static shapes of a model's inputs -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares resolveInputTypes, which says what the inputs of a model are.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_INPUTSHAPES_H
#define DOVETAIL_LIB_IMPORT_ONNX_INPUTSHAPES_H

#include "../Build/Reporter.h"
#include "dovetail/Import/ModelSummary.h"
#include "mlir/IR/BuiltinTypes.h"
#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace dovetail::importer {

/// What the inputs of a model are.
struct InputTypes {
  llvm::SmallVector<mlir::RankedTensorType> types; ///< Of each input, with bounds for what varies.
  std::vector<std::string> names;                  ///< Of lengths, which vary from run to run.
  /// For each input and dimension the number of its length, or -1; empty for inputs without any.
  llvm::SmallVector<llvm::SmallVector<int64_t>> lengths;
};

/// The inputs of a graph. Old models list their weights among the inputs; newer ones may, to make them defaults.
llvm::SmallVector<const onnx::ValueInfoProto *> getInputs(const onnx::GraphProto &graph);

/// The static types of `inputs`, with what the model leaves open taken from `options`. All that is still open is
/// reported at once.
llvm::FailureOr<InputTypes> resolveInputTypes(llvm::ArrayRef<const onnx::ValueInfoProto *> inputs,
                                              const ImportOptions &options, Reporter &reporter);

/// The shape of an input, as far as it is known.
struct InputSummary {
  bool hasShape = true;
  std::vector<DimSummary> dims;
};

/// The summaries of `inputs` with the options, which are checked.
llvm::FailureOr<std::vector<InputSummary>> summarizeInputs(llvm::ArrayRef<const onnx::ValueInfoProto *> inputs,
                                                           const ImportOptions &options, Reporter &reporter);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_INPUTSHAPES_H
