//===- SourceNames.h - What users wrote where a node comes from -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how the name and the place of a node in the user's program are read from its metadata.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_SOURCENAMES_H
#define DOVETAIL_LIB_IMPORT_ONNX_SOURCENAMES_H

#include "../Build/SourceName.h"
#include "onnx/onnx_pb.h"

namespace dovetail::importer {

/// Replaces the metadata of each node in graphs and functions of `model` by its source name. Metadata may be large, and
/// the model lives as long as its weights are used.
void condenseMetadata(onnx::ModelProto &model);

/// The source name of a node of such a model; empty if its metadata have none.
SourceName getSourceName(const onnx::NodeProto &node);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_SOURCENAMES_H
