//===- Options.cpp - Reading options -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements parseOptions.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Options.h"

#include "dovetail/CodeGen/CPU/Compile.h"
#include "dovetail/Text/Suggestion.h"
#include "dovetail/runtime/HostFeatures.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace dovetail;
using llvm::FailureOr;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;

/// More ranks than any machine has; keeps tables of pieces small.
static constexpr int64_t kMaxRanks = 1 << 16;

/// More than a file that describes a cluster has, in bytes.
static constexpr uint64_t kMaxClusterFile = 16 << 20;

/// Costs that the search looks at in a second, about.
static constexpr double kSearchWorkPerSecond = 5e8;
static constexpr double kMaxSearchSeconds = 86400;

namespace {

/// Reads options, reporting errors as usage errors.
class OptionParser {
public:
  explicit OptionParser(Diagnostics &diagnostics) : diagnostics(diagnostics) {}

  LogicalResult parseMesh(StringRef text);
  LogicalResult parseShard(StringRef text);
  LogicalResult parseSizes(StringRef text);
  LogicalResult parseDim(StringRef text);
  LogicalResult parseBound(StringRef text);
  LogicalResult parseWhen(StringRef option, const std::optional<std::string> &text, When &when);
  LogicalResult parseShape(StringRef text);
  LogicalResult parseArchs(StringRef text);
  LogicalResult parseMath(StringRef text);
  LogicalResult parseTarget(const CompileArguments &arguments);
  /// After the mesh and the target.
  LogicalResult parseCluster(const std::optional<std::string> &fileOrName);
  /// After the cluster, whose devices say otherwise what ranks have.
  LogicalResult parseMemory(StringRef text);

  CompileOptions options;

private:
  LogicalResult usage(const Twine &message) { return diagnostics.error(ExitCode::Usage, message); }
  /// Numbers of at least `least`, separated by commas or `separator`. `option` is as in messages.
  LogicalResult parseNumbers(StringRef option, StringRef text, int64_t least, llvm::SmallVectorImpl<int64_t> &numbers,
                             char separator = ',');

  Diagnostics &diagnostics;
  bool hasMesh = false;
  llvm::StringSet<> sharded;
  llvm::StringSet<> sized;
};

} // namespace

static bool isAxisName(StringRef name) {
  auto isNameChar = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  return !name.empty() && llvm::isAlpha(name.front()) && llvm::all_of(name, isNameChar);
}

static std::vector<std::string> getAxisNames(const layout::Mesh &mesh) {
  std::vector<std::string> names;
  for (const layout::MeshAxis &axis : mesh.getAxes())
    names.push_back(axis.name);
  return names;
}

std::string dovetail::listAxes(const layout::Mesh &mesh) {
  std::string list;
  for (const layout::MeshAxis &axis : mesh.getAxes())
    list += (list.empty() ? "'" : ", '") + axis.name + "'";
  return list;
}

std::string dovetail::formatMesh(const layout::Mesh &mesh) {
  std::string text;
  for (const layout::MeshAxis &axis : mesh.getAxes())
    text += (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  return text;
}

/// The items of a list. Brackets around it and spaces do not matter: people copy lists from what `inspect` and Python
/// print.
static SmallVector<StringRef> splitList(StringRef text, char separator = ',') {
  text = text.trim();
  for (auto [begin, end] : {std::pair('[', ']'), {'(', ')'}})
    if (text.size() >= 2 && text.front() == begin && text.back() == end) {
      text = text.drop_front().drop_back();
      break;
    }
  SmallVector<StringRef> parts;
  text.split(parts, separator);
  for (StringRef &part : parts)
    part = part.trim();
  return parts;
}

LogicalResult OptionParser::parseNumbers(StringRef option, StringRef text, int64_t least,
                                         llvm::SmallVectorImpl<int64_t> &numbers, char separator) {
  for (StringRef part : splitList(text, separator)) {
    int64_t number;
    if (part.getAsInteger(10, number) || number < least)
      return usage("'" + option + "': '" + part + "' is not a whole number of at least " + Twine(least));
    numbers.push_back(number);
  }
  return llvm::success();
}

LogicalResult OptionParser::parseMesh(StringRef text) {
  std::string option = ("--mesh " + text).str();
  SmallVector<StringRef> parts = splitList(text);
  if (int64_t number; text.starts_with("auto=")) {
    if (text.drop_front(5).getAsInteger(10, number) || number < 1 || number > kMaxRanks)
      return usage("'" + option + "': expected a number of ranks from 1 to " + Twine(kMaxRanks));
    options.autoRanks = number;
    options.mesh = layout::Mesh({{"auto", static_cast<int>(number)}});
    return llvm::success();
  }
  std::vector<layout::MeshAxis> axes;
  int64_t ranks = 1;
  for (StringRef part : parts) {
    auto [name, size] = part.split('=');
    int64_t number;
    if (!isAxisName(name))
      return usage("'" + option + "': expected axes as NAME=SIZE, such as 'y=4,x=2'; '" + part +
                   "' does not begin with a name of letters, digits and '_'");
    if (size.getAsInteger(10, number) || number < 1)
      return usage("'" + option + "': the size of axis '" + name + "' must be a positive whole number, not '" + size +
                   "'");
    if (number > kMaxRanks || (ranks *= number) > kMaxRanks)
      return usage("'" + option + "': the mesh has more than " + Twine(kMaxRanks) + " ranks");
    if (llvm::any_of(axes, [&](const layout::MeshAxis &axis) { return axis.name == name; }))
      return usage("'" + option + "': there are two axes called '" + name + "'");
    axes.push_back({name.str(), static_cast<int>(number)});
  }
  options.mesh = layout::Mesh(std::move(axes));
  hasMesh = true;
  return llvm::success();
}

/// Other notations for a dimension that is not split.
static bool isMeantUnsplit(StringRef entry) {
  return llvm::is_contained({"", "-", "*", ":", ".", "?", "0", "1"}, entry) || entry.equals_insensitive("none");
}

/// The entries of a sharding with '_' in place of what is meant by it.
static std::string fixUnsplit(llvm::ArrayRef<StringRef> entries) {
  return llvm::join(llvm::map_range(entries, [](StringRef entry) { return isMeantUnsplit(entry) ? "_" : entry; }), ",");
}

LogicalResult OptionParser::parseShard(StringRef text) {
  std::string option = ("--shard " + text).str();
  // Names of tensors may contain '=', entries may not.
  auto [name, spec] = text.rsplit('=');
  if (name.empty() || spec.empty())
    return usage("'" + option + "': expected NAME=ENTRIES with one entry for each dimension, such as 'image=_,_,y,_'");
  if (!sharded.insert(name).second)
    return usage("'" + option + "': tensor '" + name + "' already has a --shard");
  ShardRequest request;
  request.tensor = name.str();
  llvm::StringMap<size_t> dimOf;
  SmallVector<StringRef> entries = splitList(spec);
  for (auto [dim, entry] : llvm::enumerate(entries)) {
    std::vector<std::string> &axes = request.dims.emplace_back();
    if (entry == "_")
      continue;
    if (isMeantUnsplit(entry))
      return usage("'" + option + "': entry " + Twine(dim) + " is '" + entry +
                   "'; write '_' for a dimension that stays whole: --shard " + name + "=" + fixUnsplit(entries));
    // A tuple of axes, or what `inspect` prints of an axis and its pieces.
    if (auto [axis, pieces] = entry.split(':'); !pieces.empty())
      return usage("'" + option + "': entry " + Twine(dim) + " is '" + entry + "'; write the axis '" + axis +
                   "' alone, and the extents of its shards as --sizes " + name + ":" + Twine(dim) + "=" + pieces);
    for (StringRef axis : splitList(entry, '+')) {
      if (axis.empty())
        return usage("'" + option + "': entry " + Twine(dim) + " is '" + entry +
                     "'; expected '_', an axis, or axes joined by '+'");
      if (options.autoRanks)
        return usage("'" + option + "': the compiler makes the axes of '--mesh auto=" + Twine(*options.autoRanks) +
                     "'; give a mesh with names of axes, such as --mesh y=" + Twine(*options.autoRanks));
      if (!hasMesh)
        return usage("'" + option + "': there is no --mesh with an axis '" + axis + "'; add --mesh " + axis +
                     "=N for N ranks");
      if (!options.mesh.axisIndex({axis.data(), axis.size()}))
        return usage("'" + option + "': the mesh has no axis '" + axis + "'; it has " + listAxes(options.mesh) +
                     text::suggest(axis, getAxisNames(options.mesh)));
      auto [first, isNew] = dimOf.try_emplace(axis, dim);
      if (!isNew)
        return usage("'" + option + "': axis '" + axis + "' splits dimension " + Twine(first->second) + " and again " +
                     "dimension " + Twine(dim) + "; an axis can split one dimension of a tensor");
      axes.push_back(axis.str());
    }
  }
  options.shards.push_back(std::move(request));
  return llvm::success();
}

LogicalResult OptionParser::parseSizes(StringRef text) {
  std::string option = ("--sizes " + text).str();
  auto [target, sizes] = text.rsplit('=');
  auto [name, dim] = target.rsplit(':');
  SizesRequest request;
  if (name.empty() || sizes.empty() || dim.getAsInteger(10, request.dim))
    return usage(
        "'" + option +
        "': expected NAME:DIM=SIZES, such as 'image:2=300,212': a dimension, counted from 0 or from the end (-1), "
        "and the extents of its shards, 'chunk' or 'balanced'");
  request.tensor = name.str();
  // A --shard has an entry for each dimension. Without one there is an error later on.
  auto shard = llvm::find_if(options.shards, [&](const ShardRequest &each) { return each.tensor == request.tensor; });
  if (request.dim < 0 && shard != options.shards.end()) {
    request.dim += static_cast<int64_t>(shard->dims.size());
    if (request.dim < 0)
      return usage("'" + option + "': --shard gives tensor '" + name + "' " + Twine(shard->dims.size()) +
                   " dimensions, so the first one is -" + Twine(shard->dims.size()));
  }
  std::string key = (name + ":" + Twine(request.dim)).str();
  if (!sized.insert(key).second)
    return usage("'" + option + "': dimension " + Twine(request.dim) + " of tensor '" + name + "' already has --sizes");
  if (sizes == "chunk") {
    request.kind = SizesKind::Chunk;
  } else if (sizes == "balanced") {
    request.kind = SizesKind::Balanced;
  } else {
    SmallVector<int64_t> numbers;
    // `inspect` prints them with '+'.
    if (failed(parseNumbers(option, sizes, 0, numbers, sizes.contains('+') ? '+' : ',')))
      return llvm::failure();
    request.sizes.assign(numbers.begin(), numbers.end());
  }
  options.sizes.push_back(std::move(request));
  return llvm::success();
}

LogicalResult OptionParser::parseDim(StringRef text) {
  auto [name, extent] = text.rsplit('=');
  int64_t number;
  if (name.empty() || extent.getAsInteger(10, number) || number < 0)
    return usage("'--dim " + text + "': expected NAME=EXTENT, such as 'N=1', with an extent of at least 0");
  if (!options.import.dims.try_emplace(name, number).second)
    return usage("'--dim " + text + "': dimension '" + name + "' already has an extent");
  return llvm::success();
}

LogicalResult OptionParser::parseBound(StringRef text) {
  auto [name, extent] = text.rsplit('=');
  int64_t number;
  if (name.empty() || extent.getAsInteger(10, number) || number < 1)
    return usage("'--bound " + text +
                 "': expected NAME=EXTENT, such as 'N=512' or 'tokens:1=512', with an extent of at least 1");
  if (!options.import.bounds.try_emplace(name, number).second)
    return usage("'--bound " + text + "': dimension '" + name + "' already has a bound");
  return llvm::success();
}

LogicalResult OptionParser::parseShape(StringRef text) {
  std::string option = ("--shape " + text).str();
  auto [name, extents] = text.rsplit('=');
  if (name.empty() || !text.contains('='))
    return usage("'" + option + "': expected NAME=EXTENTS, such as 'image=1,3,736,1280', or 'NAME=' for a scalar");
  SmallVector<int64_t> numbers;
  if (!extents.empty() && failed(parseNumbers(option, extents, 0, numbers)))
    return llvm::failure();
  if (!options.import.shapes.try_emplace(name, numbers).second)
    return usage("'" + option + "': input '" + name + "' already has a shape");
  return llvm::success();
}

LogicalResult OptionParser::parseArchs(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  llvm::ArrayRef<std::string> known = options.target->getArchs();
  if (!llvm::all_of(parts, [&](StringRef part) { return llvm::is_contained(known, part); }))
    return usage("'--arch " + text + "': expected architectures such as 'sm_80,sm_90'; the architectures are " +
                 llvm::join(known, ", "));
  for (const std::string &arch : known)
    if (llvm::is_contained(parts, arch))
      options.codeGen.archs.push_back(arch);
  return llvm::success();
}

LogicalResult OptionParser::parseMath(StringRef text) {
  llvm::ArrayRef<plan::MathMode> modes = options.target->getMathModes();
  std::optional<plan::MathMode> mode = plan::symbolizeMathMode(text);
  if (!mode || !llvm::is_contained(modes, *mode))
    return usage("'--math " + text + "': target '" + options.target->getName() + "' computes in " +
                 llvm::join(llvm::map_range(modes, plan::stringifyMathMode), ", "));
  if (!options.libraries && *mode != modes.front())
    return usage("'--math " + text +
                 "' with '--no-libraries': the option is for library calls, which '--no-libraries' excludes; leave out "
                 "one of them");
  options.math = *mode;
  return llvm::success();
}

LogicalResult OptionParser::parseWhen(StringRef option, const std::optional<std::string> &text, When &when) {
  if (!text)
    return llvm::success();
  auto found = llvm::StringSwitch<std::optional<When>>(*text)
                   .Case("gain", When::Gain)
                   .Case("never", When::Never)
                   .Case("always", When::Always)
                   .Default(std::nullopt);
  if (!found)
    return usage("'" + option + " " + *text + "': expected 'gain', 'never' or 'always'");
  when = *found;
  return llvm::success();
}

static std::optional<Objective> parseObjective(StringRef text) {
  if (text == "time")
    return Objective::Time;
  if (text == "bytes")
    return Objective::Bytes;
  if (text == "memory")
    return Objective::Memory;
  return std::nullopt;
}

LogicalResult OptionParser::parseTarget(const CompileArguments &arguments) {
  options.target = findTarget(arguments.target);
  if (!options.target)
    return usage("'--target " + arguments.target + "': this target does not exist; the targets are " + listTargets());
  bool hasArchs = !options.target->getArchs().empty();
  if (hasArchs && arguments.cpu)
    return usage("'--cpu " + *arguments.cpu + "': target '" + arguments.target + "' runs no code on CPUs; pass --arch");
  if (!hasArchs && arguments.arch)
    return usage("'--arch " + *arguments.arch + "': target '" + arguments.target + "' compiles for CPUs; pass --cpu");
  if (arguments.cpu && !isKnownCpu(*arguments.cpu))
    return usage("'--cpu " + *arguments.cpu + "': this CPU is not known" + adviseCpu(*arguments.cpu));
  if (absl::StatusOr<runtime::CpuLevel> limit = runtime::maxCpuLevel(); !hasArchs && !limit.ok())
    return usage(std::string(limit.status().message()));
  options.codeGen.cpu = arguments.cpu.value_or("native");
  options.libraries = !arguments.noLibraries;
  options.indexChecks = !arguments.noIndexChecks;
  options.sourceNames = !arguments.noSourceNames;
  if (arguments.prepack && !options.target->runsHere())
    return usage("'--prepack': target '" + arguments.target +
                 "' packs no weights, only target 'cpu' does; leave out the option");
  options.prepackThreads = arguments.prepack.value_or(0);
  if (arguments.autotune && !options.target->runsHere())
    return usage("'--autotune': the algorithms of target '" + arguments.target + "' are measured where programs run; " +
                 "pass --autotune to `dovetail run`");
  options.autotuneThreads = arguments.autotune.value_or(0);
  options.shardingsSeed = arguments.shardingsSeed;
  options.spareCallMemory = arguments.spareCallMemory;
  options.generalizes = arguments.generalizes;
  options.following = arguments.following;
  if (failed(parseWhen("--halos", arguments.halos, options.halos)) ||
      failed(parseWhen("--split-launches", arguments.splitLaunches, options.splitLaunches)))
    return llvm::failure();
  if (arguments.objective) {
    std::optional<Objective> objective = parseObjective(*arguments.objective);
    if (!objective)
      return usage("'--objective " + *arguments.objective + "': expected 'time', 'bytes' or 'memory'");
    options.objective = *objective;
  }
  if (arguments.follow) {
    double percent = 0;
    if (!llvm::to_float(*arguments.follow, percent) || !(percent >= 0 && percent <= 100))
      return usage("'--follow " + *arguments.follow + "': give a number from 0 to 100, in percent");
    options.follow = percent / 100;
    if (options.objective != Objective::Time)
      diagnostics.warning("'--follow " + *arguments.follow + "' has no effect with --objective " +
                          *arguments.objective + ": it is about predicted time");
  }
  if (arguments.searchSeconds) {
    double seconds = *arguments.searchSeconds;
    if (!(seconds > 0 && seconds <= kMaxSearchSeconds))
      return usage("'--search-seconds': expected a number above 0, and at most 86400");
    options.searchWork = static_cast<uint64_t>(std::ceil(seconds * kSearchWorkPerSecond));
  }
  if (arguments.math && failed(parseMath(*arguments.math)))
    return llvm::failure();
  return arguments.arch ? parseArchs(*arguments.arch) : llvm::success();
}

FailureOr<Cluster> dovetail::readCluster(StringRef fileOrName, Diagnostics &diagnostics) {
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::exists(llvm::sys::fs::status(fileOrName, status) ? llvm::sys::fs::file_status() : status)) {
    if (std::optional<Cluster> builtIn = Cluster::getBuiltIn(fileOrName))
      return std::move(*builtIn);
    return diagnostics.error(ExitCode::Usage,
                             "'--cluster " + fileOrName +
                                 "': neither a file nor a built-in cluster has this name; the built-in clusters are " +
                                 llvm::join(Cluster::getBuiltInNames(), ", "));
  }
  if (!llvm::sys::fs::is_regular_file(status) || status.getSize() > kMaxClusterFile)
    return diagnostics.error(ExitCode::File,
                             "'--cluster " + fileOrName +
                                 "': expected a JSON file that describes a cluster, as docs/cluster-files.md "
                                 "says");
  auto buffer = llvm::MemoryBuffer::getFile(fileOrName, /*IsText=*/true);
  if (!buffer)
    return diagnostics.error(ExitCode::File, "cannot read '" + fileOrName + "': " + buffer.getError().message());
  llvm::Expected<Cluster> cluster = Cluster::parse((*buffer)->getBuffer(), fileOrName);
  if (!cluster)
    return diagnostics.error(ExitCode::Usage, llvm::toString(cluster.takeError()));
  return std::move(*cluster);
}

LogicalResult OptionParser::parseMemory(StringRef text) {
  std::optional<double> bytes = parseBytes(text);
  if (!bytes || !(*bytes >= 1))
    return usage("'--memory " + text + "': expected a size such as '80GiB' or '512MB'");
  options.memory.assign(options.mesh.numRanks(), *bytes);
  return llvm::success();
}

LogicalResult OptionParser::parseCluster(const std::optional<std::string> &fileOrName) {
  FailureOr<Cluster> cluster =
      readCluster(fileOrName ? StringRef(*fileOrName) : options.target->getCluster(), diagnostics);
  if (failed(cluster))
    return llvm::failure();
  std::optional<int64_t> numRanks = cluster->getNumRanks();
  if (numRanks && options.mesh.numRanks() > *numRanks)
    return usage("'--cluster " + *fileOrName + "': it has " + Twine(*numRanks) + " ranks, but the mesh has " +
                 Twine(options.mesh.numRanks()) + "; pass a smaller --mesh, or add to 'ranks' of the file");
  // Devices of files may be anything. Those that are built in reach into each other's memory only if they are CPUs.
  auto isOfCpus = [](const Cluster &cluster) { return cluster.getLinks().front().isCopied; };
  bool areCpus = isOfCpus(*Cluster::getBuiltIn(options.target->getCluster()));
  if (fileOrName && !llvm::sys::fs::exists(*fileOrName) && isOfCpus(*cluster) != areCpus)
    diagnostics.warning("'--cluster " + *fileOrName + "' has " + (areCpus ? "GPUs" : "CPUs") + ", but target '" +
                        options.target->getName() + "' is for " + (areCpus ? "CPUs" : "GPUs") +
                        ": the prediction holds for no machine; " +
                        (areCpus ? "add --target cuda, or leave out --cluster" : "leave out --cluster"));
  // What is built in for the target says nothing about the user's devices.
  if (fileOrName)
    for (int rank = 0, e = options.mesh.numRanks(); rank < e; ++rank) {
      int64_t bytes = cluster->getDevice(rank).memoryBytes;
      options.memory.push_back(bytes > 0 ? static_cast<double>(bytes) : std::numeric_limits<double>::infinity());
    }
  if (llvm::all_of(options.memory, [](double bytes) { return std::isinf(bytes); }))
    options.memory.clear();
  options.cluster = std::make_shared<const Cluster>(std::move(*cluster));
  return llvm::success();
}

FailureOr<CompileOptions> dovetail::parseOptions(const CompileArguments &arguments, Diagnostics &diagnostics) {
  OptionParser parser(diagnostics);
  if (failed(parser.parseTarget(arguments)) || (arguments.mesh && failed(parser.parseMesh(*arguments.mesh))) ||
      failed(parser.parseCluster(arguments.cluster)) ||
      (arguments.memory && failed(parser.parseMemory(*arguments.memory))))
    return llvm::failure();
  auto parseAll = [&](const std::vector<std::string> &texts, LogicalResult (OptionParser::*parse)(StringRef)) {
    for (const std::string &text : texts)
      if (failed((parser.*parse)(text)))
        return llvm::failure();
    return llvm::success();
  };
  if (failed(parseAll(arguments.shards, &OptionParser::parseShard)) ||
      failed(parseAll(arguments.sizes, &OptionParser::parseSizes)) ||
      failed(parseAll(arguments.dims, &OptionParser::parseDim)) ||
      failed(parseAll(arguments.bounds, &OptionParser::parseBound)) ||
      failed(parseAll(arguments.shapes, &OptionParser::parseShape)))
    return llvm::failure();
  parser.options.feedback = arguments.feedback;
  parser.options.feedback = arguments.feedback;
  return std::move(parser.options);
}
