//===- ModelReport.h - What there is to say about a model -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares describeModel and formatModel, which `dovetail inspect` prints.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_DOVETAIL_MODELREPORT_H
#define DOVETAIL_TOOLS_DOVETAIL_MODELREPORT_H

#include "dovetail/Driver/Compilation.h"

#include <nlohmann/json_fwd.hpp>

namespace dovetail {

/// A model's inputs, outputs and other tensors that `--shard` takes. They are as in the phase
/// simplify. If options do not give all extents, they are as the model declares them, with a list of open dimensions.
llvm::FailureOr<nlohmann::json> describeModel(const ModelSource &model, CompileOptions options,
                                              Diagnostics &diagnostics);

/// The same as text. Lists are cut after 20 entries unless `all` is set.
std::string formatModel(const nlohmann::json &report, bool all);

} // namespace dovetail

#endif // DOVETAIL_TOOLS_DOVETAIL_MODELREPORT_H
