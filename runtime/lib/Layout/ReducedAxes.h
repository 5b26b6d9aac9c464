//===- ReducedAxes.h - Axes over which an exchange combines -----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares findReducedAxes.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_LAYOUT_REDUCEDAXES_H
#define DOVETAIL_RUNTIME_LIB_LAYOUT_REDUCEDAXES_H

#include "dovetail/Layout/Sharding.h"

namespace dovetail::layout {

/// Axes, ascending, on which `from` is partial and `to` is not.
std::vector<int> findReducedAxes(const Sharding &from, const Sharding &to);
/// Those of more than one coordinate: on the others there is nothing to combine.
std::vector<int> findReducedAxes(const Mesh &mesh, const Sharding &from, const Sharding &to);

} // namespace dovetail::layout

#endif // DOVETAIL_RUNTIME_LIB_LAYOUT_REDUCEDAXES_H
