//===- ModelFile.h - Reading ONNX files -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares readModel and checkModel.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_MODELFILE_H
#define DOVETAIL_LIB_IMPORT_ONNX_MODELFILE_H

#include "../Build/Reporter.h"
#include "onnx/onnx_pb.h"

#include <memory>

namespace dovetail::importer {

/// The oldest and the newest version of the ONNX operator set that is read.
inline constexpr int64_t kMinOpset = 7;
inline constexpr int64_t kMaxOpset = 27;

/// Parses the file that `reporter` is about; null if that failed. Metadata are condensed (`getSourceName`).
std::shared_ptr<const onnx::ModelProto> readModel(Reporter &reporter);
/// The same for the contents of such a file.
std::shared_ptr<const onnx::ModelProto> parseModel(llvm::StringRef bytes, Reporter &reporter);

/// Checks what holds for a model as a whole: versions, and that in each graph
/// and function every name is defined once, before its uses.
llvm::LogicalResult checkModel(const onnx::ModelProto &model, Reporter &reporter);

/// Names a node in messages: its name, or else its operator and first result.
std::string describeNode(const onnx::NodeProto &node);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_MODELFILE_H
