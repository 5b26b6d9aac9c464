//===- InputShapes.h - Static shapes of a model's inputs -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares resolveInputTypes.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_INPUTSHAPES_H
#define DOVETAIL_LIB_IMPORT_INPUTSHAPES_H

#include "Reporter.h"
#include "mlir/IR/BuiltinTypes.h"
#include "onnx/onnx_pb.h"

namespace dovetail::importer {

/// The static types of `inputs`, with what the model leaves open taken from `options`. All that is still open is
/// reported at once.
llvm::FailureOr<llvm::SmallVector<mlir::RankedTensorType>>
resolveInputTypes(llvm::ArrayRef<const onnx::ValueInfoProto *> inputs, const ImportOptions &options,
                  Reporter &reporter);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_INPUTSHAPES_H
