//===- Inputs.cpp - Inputs as commands are given them -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common.h"

#include "dovetail/tools/InputSource.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <map>

using namespace dovetail;
using namespace dovetail::tools;
using runtime::PortInfo;

namespace {

std::string listPorts(const std::vector<PortInfo> &ports) {
  return absl::StrJoin(ports, ", ", [](std::string *text, const PortInfo &port) {
    absl::StrAppend(text, "'", port.name, "' ", formatType(port.type, port.shape));
  });
}

/// What random integers of the input in tensor `input` stay below, so that those that kernels look up as they are find
/// something everywhere; 10 if nothing looks them up.
int64_t getLimit(const runtime::Plan &plan, uint32_t input) {
  // Buffers in which the input lies now, at least on some ranks.
  std::vector<bool> holds(plan.buffers.size());
  auto bufferOf = [&](uint32_t tensor) { return plan.tensors[tensor].buffer; };
  holds[bufferOf(input)] = true;
  int64_t limit = 10;
  for (const runtime::StepInfo &step : plan.steps) {
    if (const auto *kernel = std::get_if<runtime::KernelCall>(&step.action))
      for (const runtime::IndexCheck &check : kernel->checks)
        if (check.tensor >= 0 && holds[bufferOf(static_cast<uint32_t>(check.tensor))])
          limit = std::min(limit, check.extent);
    if (const auto *exchange = std::get_if<runtime::ExchangeCall>(&step.action)) {
      // No move reads what another one writes.
      for (const runtime::MoveInfo &move : exchange->moves)
        holds[bufferOf(move.target)] = holds[bufferOf(move.source)];
      continue;
    }
    bool copies = std::holds_alternative<runtime::ReorderCall>(step.action) && holds[bufferOf(step.reads().front())];
    for (uint32_t tensor : step.writes())
      holds[bufferOf(tensor)] = copies;
  }
  return limit;
}

/// One specification. An archive without a name gives several inputs.
struct InputSpec {
  enum Kind { Npy, Raw, Npz, WholeNpz, Random };

  Kind kind;
  std::string text, name, path;
  uint64_t seed = 0;
};

absl::StatusOr<InputSpec> parseSpec(const std::string &text) {
  if (!text.empty() && text[0] == '@')
    return InputSpec{InputSpec::WholeNpz, text, "", text.substr(1)};
  // Names may contain '=', values cannot begin in another way.
  size_t file = text.rfind("=@"), random = text.rfind("=random:");
  size_t split = file != std::string::npos ? file : random;
  if (split == std::string::npos || split == 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "--input ", text, ": write NAME=@FILE.npy, NAME=@FILE.npz, @FILE.npz, NAME=@FILE.raw or NAME=random:SEED"));
  InputSpec spec{InputSpec::Random, text, text.substr(0, split), ""};
  if (split == file) {
    spec.path = text.substr(split + 2);
    spec.kind = absl::EndsWith(spec.path, ".npz")   ? InputSpec::Npz
                : absl::EndsWith(spec.path, ".raw") ? InputSpec::Raw
                                                    : InputSpec::Npy;
    return spec;
  }
  std::string seed = text.substr(split + 8);
  if (!absl::SimpleAtoi(seed, &spec.seed))
    return absl::InvalidArgumentError(absl::StrCat("--input ", text, ": the seed in 'random:", seed,
                                                   "' is no number; write for example ", spec.name, "=random:0"));
  return spec;
}

/// Null if there is none of that name.
const PortInfo *findInput(const runtime::Plan &plan, const std::string &name) {
  for (const PortInfo &port : plan.inputs)
    if (port.name == name)
      return &port;
  return nullptr;
}

absl::StatusOr<std::vector<NamedTensor>> readArchive(const InputSpec &spec) {
  absl::StatusOr<std::vector<NamedTensor>> tensors = readNpz(spec.path);
  if (!tensors.ok() || spec.kind == InputSpec::WholeNpz)
    return tensors;
  for (NamedTensor &tensor : *tensors)
    if (tensor.name == spec.name || tensors->size() == 1) {
      tensor.name = spec.name;
      return std::vector<NamedTensor>{std::move(tensor)};
    }
  return absl::NotFoundError(absl::StrCat("'", spec.path, "' has no array '", spec.name, "'"));
}

absl::Status describeUnnamed(const PortInfo &port) {
  return absl::InvalidArgumentError(absl::StrCat("input '", port.name, "' ", formatType(port.type, port.shape),
                                                 " is given elements of one byte whose type the file does not name; "
                                                 "convert them with astype"));
}

/// What the inputs are that `specs` give, in the order of the plan's. `add` hands over those of one specification, of
/// which there may be several; `makeDefault` makes those that are not given, if they may be missing.
template <typename T>
absl::StatusOr<std::vector<T>>
collect(const runtime::Plan &plan, const std::vector<std::string> &specs,
        absl::FunctionRef<absl::StatusOr<std::vector<std::pair<std::string, T>>>(const InputSpec &spec)> read,
        absl::FunctionRef<T(const PortInfo &port, size_t index)> makeDefault, bool randomDefault) {
  std::map<std::string, T> given;
  for (const std::string &text : specs) {
    absl::StatusOr<InputSpec> spec = parseSpec(text);
    if (!spec.ok())
      return spec.status();
    auto unknown = [&](const std::string &name) {
      return absl::InvalidArgumentError(absl::StrCat("--input ", text, ": the program has no input '", name,
                                                     "'; its inputs are ", listPorts(plan.inputs)));
    };
    if (spec->kind != InputSpec::WholeNpz && !findInput(plan, spec->name))
      return unknown(spec->name);
    auto values = read(*spec);
    if (!values.ok())
      return values.status();
    for (auto &[name, value] : *values) {
      if (!findInput(plan, name))
        return unknown(name);
      if (!given.emplace(name, std::move(value)).second)
        return absl::InvalidArgumentError(absl::StrCat("--input ", text, ": input '", name, "' is given twice"));
    }
  }
  std::vector<T> inputs;
  for (const PortInfo &port : plan.inputs) {
    auto it = given.find(port.name);
    if (it == given.end() && !randomDefault)
      return absl::InvalidArgumentError(absl::StrCat("input '", port.name, "' ", formatType(port.type, port.shape),
                                                     " is not given; add --input ", port.name, "=@FILE.npy or --input ",
                                                     port.name, "=random:0"));
    inputs.push_back(it == given.end() ? makeDefault(port, inputs.size()) : std::move(it->second));
  }
  return inputs;
}

NamedTensor makeRandomTensor(const runtime::Plan &plan, const PortInfo &port, uint64_t seed) {
  NamedTensor tensor;
  tensor.name = port.name;
  tensor.type = port.type;
  tensor.shape = port.shape;
  fillRandom(tensor, seed, getLimit(plan, port.tensor));
  return tensor;
}

std::unique_ptr<InputSource> makeRandomSource(const runtime::Plan &plan, const PortInfo &port, uint64_t seed) {
  return makeRandom(port.type, port.shape, seed, getLimit(plan, port.tensor));
}

} // namespace

absl::StatusOr<std::vector<NamedTensor>>
tools::readInputs(const runtime::Plan &plan, const std::vector<std::string> &specs, bool randomDefault, uint64_t seed) {
  using Values = std::vector<std::pair<std::string, NamedTensor>>;
  auto read = [&](const InputSpec &spec) -> absl::StatusOr<Values> {
    Values values;
    if (spec.kind == InputSpec::Random) {
      values.emplace_back(spec.name, makeRandomTensor(plan, *findInput(plan, spec.name), spec.seed));
      return values;
    }
    if (spec.kind == InputSpec::Npz || spec.kind == InputSpec::WholeNpz) {
      absl::StatusOr<std::vector<NamedTensor>> tensors = readArchive(spec);
      if (!tensors.ok())
        return tensors.status();
      for (NamedTensor &tensor : *tensors)
        values.emplace_back(std::string(tensor.name), std::move(tensor));
      return values;
    }
    absl::StatusOr<NamedTensor> tensor = NamedTensor();
    if (spec.kind == InputSpec::Raw) {
      const PortInfo &port = *findInput(plan, spec.name);
      absl::StatusOr<std::unique_ptr<InputSource>> source = openRaw(spec.path, port.type, port.shape);
      tensor->type = port.type;
      tensor->shape = port.shape;
      absl::Status status = source.status();
      if (status.ok()) {
        tensor->allocate();
        status = (*source)->read(layout::Box::ofShape(port.shape), tensor->bytes.data());
      }
      if (!status.ok())
        return status;
    } else {
      tensor = readNpy(spec.path);
    }
    if (!tensor.ok())
      return tensor.status();
    tensor->name = spec.name;
    values.emplace_back(spec.name, *std::move(tensor));
    return values;
  };
  absl::StatusOr<std::vector<NamedTensor>> inputs = collect<NamedTensor>(
      plan, specs, read, [&](const PortInfo &port, size_t index) { return makeRandomTensor(plan, port, seed + index); },
      randomDefault);
  for (size_t i = 0; inputs.ok() && i < inputs->size(); ++i) {
    NamedTensor &tensor = (*inputs)[i];
    // Files do not tell these types apart; bytes are their bits.
    if (runtime::isNarrow(plan.inputs[i].type) && tensor.type == runtime::ElementType::U8)
      tensor.type = plan.inputs[i].type;
    else if (tensor.isOpaque)
      return describeUnnamed(plan.inputs[i]);
  }
  return inputs;
}

absl::StatusOr<std::vector<std::unique_ptr<InputSource>>>
tools::openInputs(const runtime::Plan &plan, const std::vector<std::string> &specs, bool randomDefault) {
  using Source = std::unique_ptr<InputSource>;
  using Values = std::vector<std::pair<std::string, Source>>;
  auto open = [&](const InputSpec &spec) -> absl::StatusOr<Values> {
    Values values;
    if (spec.kind == InputSpec::Random) {
      values.emplace_back(spec.name, makeRandomSource(plan, *findInput(plan, spec.name), spec.seed));
      return values;
    }
    if (spec.kind == InputSpec::Npz || spec.kind == InputSpec::WholeNpz) {
      absl::StatusOr<std::vector<NamedTensor>> tensors = readArchive(spec);
      if (!tensors.ok())
        return tensors.status();
      for (NamedTensor &tensor : *tensors)
        values.emplace_back(std::string(tensor.name), holdTensor(std::move(tensor)));
      return values;
    }
    const PortInfo &port = *findInput(plan, spec.name);
    absl::StatusOr<Source> source =
        spec.kind == InputSpec::Raw ? openRaw(spec.path, port.type, port.shape) : openNpy(spec.path);
    if (!source.ok())
      return source.status();
    values.emplace_back(spec.name, *std::move(source));
    return values;
  };
  absl::StatusOr<std::vector<Source>> sources = collect<Source>(
      plan, specs, open, [&](const PortInfo &port, size_t index) { return makeRandomSource(plan, port, index); },
      randomDefault);
  for (size_t i = 0; sources.ok() && i < sources->size(); ++i) {
    const PortInfo &port = plan.inputs[i];
    InputSource &source = *(*sources)[i];
    if (!source.nameType(port.type))
      return describeUnnamed(port);
    if (source.type() != port.type || source.shape() != port.shape)
      return absl::InvalidArgumentError(absl::StrCat("input '", port.name, "' is ", formatType(port.type, port.shape),
                                                     ", but a tensor ", formatType(source.type(), source.shape()),
                                                     " was given; convert it, or compile the model for that shape"));
  }
  return sources;
}
