//===- Destination.cpp - Where outputs are written -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/Destination.h"

#include "dovetail/tools/RunSupport.h"

#include "dovetail/Text/Suggestion.h"
#include "dovetail/tools/TensorFile.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

using namespace dovetail;
using namespace dovetail::tools;

/// The file that a specification names: as for inputs, a '@' may stand before it.
static std::string fileOf(const std::string &text) { return text.substr(absl::StartsWith(text, "@") ? 1 : 0); }

absl::StatusOr<std::vector<Destination>> tools::parseOutputs(const runtime::Plan &plan,
                                                             const std::vector<std::string> &specs, bool willWrite) {
  std::vector<Destination> destinations;
  for (const std::string &spec : specs) {
    Destination destination;
    size_t split = spec.rfind('=');
    if (split == std::string::npos) {
      if (!absl::EndsWith(spec, ".npz"))
        return absl::InvalidArgumentError(
            absl::StrCat("--output ", spec, ": write NAME=FILE.npy, or FILE.npz for all outputs"));
      destination.path = fileOf(spec);
      destination.all = true;
    } else {
      std::string name = spec.substr(0, split), known;
      destination.path = fileOf(spec.substr(split + 1));
      destination.output = plan.outputs.size();
      for (size_t i = 0; i < plan.outputs.size(); ++i) {
        absl::StrAppend(&known, i ? ", '" : "'", plan.outputs[i].name, "'");
        if (plan.outputs[i].name == name)
          destination.output = i;
      }
      if (destination.output == plan.outputs.size())
        return absl::InvalidArgumentError(absl::StrCat("--output ", spec, ": the program has no output '", name,
                                                       "'; its outputs are ", known,
                                                       text::suggest(name, namesOf(plan.outputs))));
      // Another ending would be another kind of file, perhaps one that is still needed.
      if (!absl::EndsWith(destination.path, ".npy"))
        return absl::InvalidArgumentError(
            absl::StrCat("--output ", spec, ": the name of the file must end in .npy; write ", name, "=FILE.npy"));
    }
    // Better now than after the run.
    if (willWrite)
      if (absl::Status status = checkWritable(destination.path); !status.ok())
        return status;
    destinations.push_back(std::move(destination));
  }
  return destinations;
}

bool tools::hasPlaces(const std::string &path) {
  return absl::StrContains(path, stepPlace) || absl::StrContains(path, namePlace);
}

std::string tools::fillPlaces(const std::string &path, int64_t step, const std::string &name) {
  // As many digits as keep names in order, whatever the number of steps.
  return absl::StrReplaceAll(path, {{stepPlace, absl::StrFormat("%04d", step + 1)}, {namePlace, name}});
}
