//===- ModelSummary.h - What a model states of itself -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares summarizeModel, which reads models whose dimensions are open, too.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_IMPORT_MODELSUMMARY_H
#define DOVETAIL_IMPORT_MODELSUMMARY_H

#include "dovetail/Import/Import.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dovetail {

/// A dimension, as far as it is known.
struct DimSummary {
  std::string text = "?"; ///< As the model states it: a number, a name, an expression or "?".
  std::optional<int64_t> extent = std::nullopt;
  bool isBound = false;                  ///< Whether that is the largest one of a length that varies.
  std::vector<std::string> missing = {}; ///< The names that `--dim` has to give; none for "?".
};

struct TensorSummary {
  std::string name, node; ///< The node that computes it; empty for inputs.
  std::string type;       ///< Of its elements; empty if the model does not say it.
  bool hasShape = false;
  std::vector<DimSummary> dims = {};
};

struct ModelSummary {
  std::string name, producer;
  std::vector<std::pair<std::string, int64_t>> opsets;
  std::vector<TensorSummary> inputs, outputs;
  /// The other tensors that nodes compute. They and the outputs are as the model declares them.
  std::vector<TensorSummary> tensors;

  /// Whether options have to give extents before the model can be imported.
  bool isOpen() const;
};

/// The summary of a model, or why there is none.
struct SummaryResult {
  std::optional<ModelSummary> summary;
  ImportError error = ImportError::InvalidModel; ///< Meaningful if there is no summary.
};

/// Summarizes the model in the file `path`, with the extents that `options` give. As `importOnnx`, failures are
/// diagnostics.
SummaryResult summarizeModel(llvm::StringRef path, const ImportOptions &options, mlir::MLIRContext &context);
/// The same for the contents of a file, whose name is the buffer's identifier.
SummaryResult summarizeModel(llvm::MemoryBufferRef model, const ImportOptions &options, mlir::MLIRContext &context);

} // namespace dovetail

#endif // DOVETAIL_IMPORT_MODELSUMMARY_H
