//===- Inputs.cpp - Inputs as commands are given them -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/InputSequence.h"
#include "dovetail/tools/RunSupport.h"

#include "dovetail/Text/Suggestion.h"
#include "dovetail/tools/InputSource.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <map>
#include <sys/stat.h>

using namespace dovetail;
using namespace dovetail::tools;
using runtime::PortInfo;

namespace {

/// `float32[2, seq<=512]`.
std::string formatPort(const runtime::Plan &plan, const PortInfo &port) {
  return absl::StrCat(runtime::elementTypeName(port.type), "[", absl::StrJoin(plan.describeExtents(port), ", "), "]");
}

std::string listInputs(const runtime::Plan &plan) {
  return absl::StrJoin(plan.inputs, ", ", [&](std::string *text, const PortInfo &port) {
    absl::StrAppend(text, "'", port.name, "' ", formatPort(plan, port));
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

/// Null if there is none of that name.
const PortInfo *findInput(const runtime::Plan &plan, const std::string &name) {
  for (const PortInfo &port : plan.inputs)
    if (port.name == name)
      return &port;
  return nullptr;
}

/// Whether a value without '@' is a file or a pattern: one that is there, or has an extension that files have.
bool isFile(const std::string &value) {
  struct stat info;
  return absl::EndsWith(value, ".npy") || absl::EndsWith(value, ".npz") || absl::EndsWith(value, ".raw") ||
         isPattern(value) || (!value.empty() && ::stat(value.c_str(), &info) == 0);
}

/// Where the name of an input ends that files are given to, with or without '@'; npos if none does. Of several places
/// the one behind the name of an input is meant.
size_t findFile(const runtime::Plan &plan, const std::string &text) {
  if (size_t file = text.rfind("=@"); file != std::string::npos)
    return file;
  size_t last = std::string::npos;
  for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
    if (absl::StartsWith(text.substr(at), "=random:") || !isFile(text.substr(at + 1)))
      continue;
    if (findInput(plan, text.substr(0, at)))
      return at;
    last = at;
  }
  return last;
}

/// Says what to write in place of `text`, which is no input.
absl::Status describeSpec(const runtime::Plan &plan, const std::string &text) {
  std::string name = plan.inputs.empty() ? "NAME" : plan.inputs.front().name;
  if (isFile(text))
    return absl::InvalidArgumentError(
        absl::StrCat("--input ", text, ": the name of the input is missing; write --input ", name, "=", text));
  return absl::InvalidArgumentError(absl::StrCat("--input ", text, ": this file does not exist; write --input ", name,
                                                 "=FILE.npy, with .npz or .raw if it is such a file, or --input ", name,
                                                 "=random:0"));
}

absl::StatusOr<InputSpec> parseSpec(const runtime::Plan &plan, const std::string &text) {
  if (!text.empty() && text[0] == '@')
    return InputSpec{InputSpec::WholeNpz, text, "", text.substr(1)};
  // Names may contain '=', values cannot begin in another way.
  size_t file = findFile(plan, text), random = text.rfind("=random:");
  size_t split = file != std::string::npos ? file : random;
  if (split == std::string::npos && absl::EndsWith(text, ".npz"))
    return InputSpec{InputSpec::WholeNpz, text, "", text};
  if (split == std::string::npos || split == 0)
    return describeSpec(plan, text);
  InputSpec spec{InputSpec::Random, text, text.substr(0, split), ""};
  if (split == file) {
    spec.path = text.substr(split + (text[split + 1] == '@' ? 2 : 1));
    spec.kind = absl::EndsWith(spec.path, ".npz")   ? InputSpec::Npz
                : absl::EndsWith(spec.path, ".raw") ? InputSpec::Raw
                                                    : InputSpec::Npy;
    return spec;
  }
  std::string seed = text.substr(split + 8);
  if (!absl::SimpleAtoi(seed, &spec.seed))
    return absl::InvalidArgumentError(absl::StrCat("--input ", text, ": the seed in 'random:", seed,
                                                   "' is not a number; write for example ", spec.name, "=random:0"));
  return spec;
}

/// Arrays of an archive, with the names of inputs.
template <typename T> using Arrays = std::vector<std::pair<std::string, T>>;

/// Those of `arrays`, all of an archive's, that are asked for.
template <typename T> absl::StatusOr<Arrays<T>> choose(const InputSpec &spec, Arrays<T> arrays) {
  if (spec.kind == InputSpec::WholeNpz)
    return arrays;
  bool isAlone = arrays.size() == 1;
  for (auto &[name, array] : arrays)
    if (name == spec.name || isAlone) {
      Arrays<T> chosen;
      chosen.emplace_back(spec.name, std::move(array));
      return chosen;
    }
  return absl::NotFoundError(absl::StrCat("'", spec.path, "' has no array '", spec.name, "'"));
}

absl::StatusOr<Arrays<NamedTensor>> readArchive(const InputSpec &spec) {
  absl::StatusOr<std::vector<NamedTensor>> tensors = readNpz(spec.path, spec.name);
  if (!tensors.ok())
    return tensors.status();
  Arrays<NamedTensor> arrays;
  for (NamedTensor &tensor : *tensors)
    arrays.emplace_back(tensor.name, std::move(tensor));
  absl::StatusOr<Arrays<NamedTensor>> chosen = choose(spec, std::move(arrays));
  if (chosen.ok())
    for (auto &[name, tensor] : *chosen)
      tensor.name = name;
  return chosen;
}

/// What is compressed is read whole and kept, unless other processes do the same (`areProcesses`).
absl::StatusOr<Arrays<std::unique_ptr<InputSource>>> openArchive(const InputSpec &spec, bool areProcesses) {
  absl::StatusOr<std::vector<ArchivedArray>> opened = openNpz(spec.path, spec.name);
  if (!opened.ok())
    return opened.status();
  Arrays<std::unique_ptr<InputSource>> all;
  for (ArchivedArray &array : *opened)
    all.emplace_back(std::move(array.name), std::move(array.source));
  absl::StatusOr<Arrays<std::unique_ptr<InputSource>>> chosen = choose(spec, std::move(all));
  if (!chosen.ok())
    return chosen;
  auto compressed = std::find_if(chosen->begin(), chosen->end(), [](const auto &array) { return !array.second; });
  if (compressed == chosen->end())
    return chosen;
  if (areProcesses)
    return absl::InvalidArgumentError(absl::StrCat("--input ", spec.text, ": array '", compressed->first, "' in '",
                                                   spec.path, "' is compressed, so that no process can read its part ",
                                                   "alone; save it with numpy.savez, or as .npy"));
  absl::StatusOr<Arrays<NamedTensor>> tensors = readArchive(spec);
  if (!tensors.ok())
    return tensors.status();
  chosen->clear();
  for (auto &[name, tensor] : *tensors)
    chosen->emplace_back(name, holdTensor(std::move(tensor)));
  return chosen;
}

absl::Status describeUnnamed(const PortInfo &port) {
  return absl::InvalidArgumentError(absl::StrCat("input '", port.name, "' ", formatType(port.type, port.shape),
                                                 " is given elements of one byte whose type the file does not name; "
                                                 "convert them with astype"));
}

/// How the inputs of a command come to be what it takes them as.
template <typename T> struct Ways {
  absl::FunctionRef<T(const PortInfo &port, uint64_t seed)> makeRandom;
  /// An archive, of one input or all.
  absl::FunctionRef<absl::StatusOr<Arrays<T>>(const InputSpec &spec)> openArchive;
  /// A file of another kind.
  absl::FunctionRef<absl::StatusOr<T>(const InputSpec &spec, const PortInfo &port)> open;
};

const std::vector<int64_t> &extentsOf(const NamedTensor &tensor) { return tensor.shape; }
const std::vector<int64_t> &extentsOf(const std::unique_ptr<InputSource> &source) { return source->shape(); }
/// They may differ from step to step.
std::vector<int64_t> extentsOf(const InputSequence &) { return {}; }

/// Sets the bounds of `ports` to the lengths that a tensor of `port`, one of these, has.
void setLengths(const runtime::Plan &plan, const PortInfo &port, const std::vector<int64_t> &extents,
                std::vector<PortInfo> &ports) {
  if (extents.size() != port.shape.size())
    return;
  for (size_t dim = 0; dim < extents.size(); ++dim)
    for (PortInfo &other : ports)
      for (size_t otherDim = 0; otherDim < other.shape.size(); ++otherDim)
        if (int32_t count = plan.getCount(port, dim); count >= 0 && plan.getCount(other, otherDim) == count)
          other.shape[otherDim] = std::min(other.shape[otherDim], extents[dim]);
}

/// What the inputs are that `specs` give, in the order of the plan's. With `randomDefault` those that are not given are
/// random, from `seed` on, and as long as those that are.
template <typename T>
absl::StatusOr<std::vector<T>> collect(const runtime::Plan &plan, const std::vector<std::string> &specs,
                                       const Ways<T> &ways, bool randomDefault, uint64_t seed) {
  std::map<std::string, T> given;
  std::map<std::string, uint64_t> random;
  for (const std::string &text : specs) {
    absl::StatusOr<InputSpec> spec = parseSpec(plan, text);
    if (!spec.ok())
      return spec.status();
    auto add = [&](const std::string &name, T value) {
      if (random.contains(name) || !given.emplace(name, std::move(value)).second)
        return absl::InvalidArgumentError(absl::StrCat("--input ", text, ": input '", name, "' is given twice"));
      return absl::OkStatus();
    };
    auto unknown = [&](const std::string &name) {
      return absl::InvalidArgumentError(absl::StrCat("--input ", text, ": the program has no input '", name,
                                                     "'; its inputs are ", listInputs(plan),
                                                     text::suggest(name, namesOf(plan.inputs))));
    };
    const PortInfo *port = findInput(plan, spec->name);
    if (spec->kind != InputSpec::WholeNpz && !port)
      return unknown(spec->name);
    absl::Status status;
    if (spec->kind == InputSpec::Random) {
      if (given.contains(spec->name) || !random.emplace(spec->name, spec->seed).second)
        return absl::InvalidArgumentError(absl::StrCat("--input ", text, ": input '", spec->name, "' is given twice"));
    } else if (spec->kind == InputSpec::WholeNpz || (spec->kind == InputSpec::Npz && !isPattern(spec->path))) {
      absl::StatusOr<Arrays<T>> arrays = ways.openArchive(*spec);
      status = arrays.status();
      for (size_t i = 0; status.ok() && i < arrays->size(); ++i) {
        auto &[name, array] = (*arrays)[i];
        status = findInput(plan, name) ? add(name, std::move(array)) : unknown(name);
      }
    } else {
      absl::StatusOr<T> value = ways.open(*spec, *port);
      status = value.ok() ? add(spec->name, *std::move(value)) : value.status();
    }
    if (!status.ok())
      return status;
  }
  std::vector<PortInfo> ports = plan.inputs;
  for (const PortInfo &port : plan.inputs)
    if (auto it = given.find(port.name); it != given.end())
      setLengths(plan, port, extentsOf(it->second), ports);
  std::vector<T> inputs;
  for (const PortInfo &port : ports) {
    auto it = given.find(port.name);
    auto seeded = random.find(port.name);
    if (it == given.end() && seeded == random.end() && !randomDefault)
      return absl::InvalidArgumentError(absl::StrCat("input '", port.name, "' ", formatPort(plan, port),
                                                     " is not given; add --input ", port.name, "=FILE.npy or --input ",
                                                     port.name, "=random:0"));
    uint64_t own = seeded != random.end() ? seeded->second : seed + inputs.size();
    inputs.push_back(it == given.end() ? ways.makeRandom(port, own) : std::move(it->second));
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

/// A file of elements alone, of an input.
absl::StatusOr<std::unique_ptr<InputSource>> openRawOf(const runtime::Plan &plan, const PortInfo &port,
                                                       const std::string &path) {
  absl::StatusOr<std::unique_ptr<InputSource>> source = openRaw(path, port.type, port.shape);
  if (!plan.isBounded(port) || source.status().code() != absl::StatusCode::kOutOfRange)
    return source;
  return absl::OutOfRangeError(
      absl::StrCat(source.status().message(), ", as ", formatPort(plan, port),
                   " has at its bounds; give shorter data in a file with extents, such as .npy"));
}

absl::StatusOr<std::unique_ptr<InputSource>> openSource(const runtime::Plan &plan, const InputSpec &spec,
                                                        const std::string &path, const PortInfo &port,
                                                        bool areProcesses) {
  if (spec.kind != InputSpec::Npz)
    return spec.kind == InputSpec::Raw ? openRawOf(plan, port, path) : openNpy(path);
  absl::StatusOr<Arrays<std::unique_ptr<InputSource>>> arrays =
      openArchive({spec.kind, spec.text, spec.name, path}, areProcesses);
  if (!arrays.ok())
    return arrays.status();
  return std::move(arrays->front().second);
}

/// That a source is of the input's type, and of its shape or, if it has `steps`, of one dimension more.
absl::Status checkSource(const runtime::Plan &plan, const PortInfo &port, InputSource &source, bool hasSteps) {
  if (!source.nameType(port.type))
    return describeUnnamed(port);
  absl::Span<const int64_t> shape = source.shape();
  if (source.type() == port.type && plan.fits(port, shape.subspan(hasSteps ? 1 : 0)))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input '", port.name, "' is ", formatPort(plan, port),
                                                 ", but a tensor ", formatType(source.type(), source.shape()),
                                                 " was given; convert it, or compile the model for that shape"));
}

/// Whether the first dimension of a source is that of steps.
bool hasSteps(const runtime::Plan &plan, const PortInfo &port, absl::Span<const int64_t> shape) {
  return shape.size() == port.shape.size() + 1 && plan.fits(port, shape.subspan(1));
}

} // namespace

absl::StatusOr<std::vector<NamedTensor>>
tools::readInputs(const runtime::Plan &plan, const std::vector<std::string> &specs, bool randomDefault, uint64_t seed) {
  auto random = [&](const PortInfo &port, uint64_t number) { return makeRandomTensor(plan, port, number); };
  auto open = [&](const InputSpec &spec, const PortInfo &port) -> absl::StatusOr<NamedTensor> {
    absl::StatusOr<NamedTensor> tensor = NamedTensor();
    if (spec.kind == InputSpec::Raw) {
      absl::StatusOr<std::unique_ptr<InputSource>> source = openRawOf(plan, port, spec.path);
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
    if (tensor.ok())
      tensor->name = spec.name;
    return tensor;
  };
  absl::StatusOr<std::vector<NamedTensor>> inputs =
      collect<NamedTensor>(plan, specs, {random, readArchive, open}, randomDefault, seed);
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
  auto random = [&](const PortInfo &port, uint64_t number) { return makeRandomSource(plan, port, number); };
  bool areProcesses = plan.mesh.numRanks() > 1;
  auto archive = [&](const InputSpec &spec) { return openArchive(spec, areProcesses); };
  auto open = [&](const InputSpec &spec, const PortInfo &port) {
    return openSource(plan, spec, spec.path, port, areProcesses);
  };
  absl::StatusOr<std::vector<Source>> sources =
      collect<Source>(plan, specs, {random, archive, open}, randomDefault, /*seed=*/0);
  for (size_t i = 0; sources.ok() && i < sources->size(); ++i)
    if (absl::Status status = checkSource(plan, plan.inputs[i], *(*sources)[i], /*hasSteps=*/false); !status.ok())
      return status;
  return sources;
}

bool tools::haveSteps(const runtime::Plan &plan, const std::vector<std::string> &specs) {
  return std::any_of(specs.begin(), specs.end(), [&](const std::string &text) {
    absl::StatusOr<InputSpec> spec = parseSpec(plan, text);
    const PortInfo *port = spec.ok() ? findInput(plan, spec->name) : nullptr;
    if (!port || spec->kind == InputSpec::Random)
      return false;
    // To open a pipe, and not to read it, would be noticed at its other end.
    struct stat info;
    if (spec->kind != InputSpec::Npy || ::stat(spec->path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
      return isPattern(spec->path);
    absl::StatusOr<std::unique_ptr<InputSource>> source = openNpy(spec->path);
    return source.ok() && hasSteps(plan, *port, (*source)->shape());
  });
}

absl::StatusOr<std::unique_ptr<InputSource>> tools::openInputFile(const runtime::Plan &plan, const PortInfo &port,
                                                                  const std::string &path) {
  absl::StatusOr<std::unique_ptr<InputSource>> source = openNpy(path);
  if (source.ok())
    if (absl::Status status = checkSource(plan, port, **source, /*hasSteps=*/false); !status.ok())
      return status;
  return source;
}

absl::StatusOr<std::vector<InputSequence>>
tools::openSequences(const runtime::Plan &plan, const std::vector<std::string> &specs, bool areProcesses) {
  absl::Status wrong; // With a file that is there from the beginning.
  auto make = [&](const PortInfo &port, std::shared_ptr<InputSource> source, std::string file) {
    bool isStacked = hasSteps(plan, port, source->shape());
    if (absl::Status status = checkSource(plan, port, *source, isStacked); !status.ok() && wrong.ok())
      wrong = status;
    return InputSequence(std::move(source), isStacked, std::move(file));
  };
  auto random = [&](const PortInfo &port, uint64_t number) {
    return make(port, makeRandomSource(plan, port, number), "");
  };
  auto archive = [&](const InputSpec &spec) -> absl::StatusOr<Arrays<InputSequence>> {
    absl::StatusOr<Arrays<std::unique_ptr<InputSource>>> arrays = openArchive(spec, areProcesses);
    if (!arrays.ok())
      return arrays.status();
    Arrays<InputSequence> result;
    for (auto &[name, source] : *arrays) {
      const PortInfo *port = findInput(plan, name);
      result.emplace_back(name, port ? make(*port, std::move(source), spec.path)
                                     : InputSequence(std::move(source), /*isStacked=*/false, spec.path));
    }
    return result;
  };
  auto open = [&](const InputSpec &spec, const PortInfo &port) -> absl::StatusOr<InputSequence> {
    if (!isPattern(spec.path)) {
      absl::StatusOr<std::unique_ptr<InputSource>> source = openSource(plan, spec, spec.path, port, areProcesses);
      if (!source.ok())
        return source.status();
      return make(port, *std::move(source), spec.path);
    }
    absl::StatusOr<std::vector<std::string>> files = expandPattern(spec.path);
    if (!files.ok())
      return absl::Status(files.status().code(), absl::StrCat("--input ", spec.text, ": ", files.status().message()));
    return InputSequence(
        *std::move(files),
        [spec, &plan, &port, areProcesses](const std::string &path) -> absl::StatusOr<std::unique_ptr<InputSource>> {
          absl::StatusOr<std::unique_ptr<InputSource>> source = openSource(plan, spec, path, port, areProcesses);
          if (!source.ok())
            return source;
          absl::Status status = checkSource(plan, port, **source, /*hasSteps=*/false);
          if (!status.ok())
            return absl::Status(status.code(), absl::StrCat("'", path, "': ", status.message()));
          return source;
        });
  };
  absl::StatusOr<std::vector<InputSequence>> sequences =
      collect<InputSequence>(plan, specs, {random, archive, open}, /*randomDefault=*/false, /*seed=*/0);
  return sequences.ok() && !wrong.ok() ? wrong : std::move(sequences);
}
