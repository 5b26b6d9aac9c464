//===- NearSizes.h - Sizes with which less is exchanged ---------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares findNearSizes.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DRIVER_NEARSIZES_H
#define DOVETAIL_LIB_DRIVER_NEARSIZES_H

#include "dovetail/Driver/Compilation.h"

namespace dovetail {

/// For sizes that are asked for and cut between steps, as `kDeparturesAttrName` says: a text where ranks receive less
/// with others near them. `unsplit` is `lowered` at the end of the phase legalize and stays there.
std::vector<std::string> findNearSizes(Compilation &unsplit, Compilation &lowered,
                                       llvm::ArrayRef<mlir::DictionaryAttr> unalignedSizes);

} // namespace dovetail

#endif // DOVETAIL_LIB_DRIVER_NEARSIZES_H
