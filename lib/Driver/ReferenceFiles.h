//===- ReferenceFiles.h - Outputs as files have them -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares readReferences, for `dovetail verify --expect`.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DRIVER_REFERENCEFILES_H
#define DOVETAIL_LIB_DRIVER_REFERENCEFILES_H

#include "dovetail/Driver/Diagnostics.h"
#include "dovetail/tools/TensorFile.h"

#include <string>
#include <vector>

namespace dovetail {

/// Reads the outputs that `specs` name: `NAME=FILE.npy`, `NAME=FILE.npz`, `FILE.npz` with arrays of these names, or a
/// file alone if there is one output. A '@' before a file may be left out. The result has one tensor for each of
/// `outputs`, of its type and shape; one without a name where there is no file for it.
llvm::FailureOr<std::vector<tools::NamedTensor>>
readReferences(llvm::ArrayRef<std::string> specs, llvm::ArrayRef<tools::NamedTensor> outputs, Diagnostics &diagnostics);

} // namespace dovetail

#endif // DOVETAIL_LIB_DRIVER_REFERENCEFILES_H
