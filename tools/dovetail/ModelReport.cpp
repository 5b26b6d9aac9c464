//===- ModelReport.cpp - What there is to say about a model ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements describeModel, and formatModel from its result.
//
//===----------------------------------------------------------------------===//

#include "ModelReport.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Driver/Requests.h"
#include "dovetail/Import/ModelSummary.h"
#include "dovetail/Text/Shell.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

#include <nlohmann/json.hpp>

using namespace dovetail;
using llvm::StringRef;
using nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

/// Entries of a list in the text.
static constexpr size_t kMaxEntries = 20;

//===----------------------------------------------------------------------===//
// Description
//===----------------------------------------------------------------------===//

static json describe(const TensorSummary &tensor) {
  json entry = {{"name", tensor.name}, {"type", tensor.type}, {"shape", nullptr}};
  if (!tensor.node.empty())
    entry["node"] = tensor.node;
  if (!tensor.hasShape)
    return entry;
  entry["shape"] = json::array();
  for (const DimSummary &dim : tensor.dims) {
    entry["shape"].push_back(dim.extent ? json(*dim.extent) : json(dim.text));
    entry["lengths"].push_back(dim.isBound ? json(dim.text) : json(nullptr));
  }
  if (llvm::none_of(tensor.dims, [](const DimSummary &dim) { return dim.isBound; }))
    entry.erase("lengths");
  return entry;
}

static json describe(StringRef name, StringRef node, mlir::Type type) {
  auto tensor = llvm::cast<mlir::RankedTensorType>(type);
  std::string element;
  llvm::raw_string_ostream(element) << tensor.getElementType();
  json entry = {{"name", name.str()}, {"type", element}, {"shape", json::array()}};
  for (int64_t extent : tensor.getShape())
    entry["shape"].push_back(extent);
  if (!node.empty())
    entry["node"] = node.str();
  return entry;
}

/// The extents that options have to give, each with the dimensions that need it.
static json describeOpen(const ModelSummary &summary) {
  json open = json::array();
  auto add = [&](const std::string &name, const std::string &option, json place) {
    auto known = llvm::find_if(open, [&](const json &entry) { return entry["option"] == option; });
    if (known == open.end()) {
      open.push_back({{"name", name}, {"option", option}, {"dimensions", json::array()}});
      known = std::prev(open.end());
    }
    (*known)["dimensions"].push_back(std::move(place));
  };
  for (const TensorSummary &input : summary.inputs) {
    std::string shape;
    for (const DimSummary &dim : input.dims)
      shape += (shape.empty() ? "" : ",") + (dim.extent ? std::to_string(*dim.extent) : "...");
    std::string shapeOption = "--shape " + text::quoteForShell(input.name + "=" + (input.hasShape ? shape : "..."));
    if (!input.hasShape)
      add(input.name, shapeOption, {{"input", input.name}});
    for (auto [index, dim] : llvm::enumerate(input.dims)) {
      if (dim.extent)
        continue;
      json place = {{"input", input.name}, {"dimension", index}, {"extent", dim.text}};
      for (const std::string &name : dim.missing)
        add(name, "--dim " + text::quoteForShell(name + "=..."), place);
      if (dim.missing.empty())
        add(input.name, shapeOption, std::move(place));
    }
  }
  return open;
}

/// How often each operation occurs, and what its results amount to.
static void describeOperations(mlir::func::FuncOp main, json &report) {
  struct Usage {
    int64_t count = 0, bytes = 0;
  };
  std::map<std::string, Usage> usages;
  int64_t constantBytes = 0;
  for (mlir::Operation &op : main.getBody().front().without_terminator()) {
    int64_t bytes = getByteSize(llvm::cast<mlir::RankedTensorType>(op.getResult(0).getType()));
    if (llvm::isa<ConstantOp>(op)) {
      constantBytes += bytes;
      continue;
    }
    Usage &usage = usages[op.getName().stripDialect().str()];
    ++usage.count;
    usage.bytes += bytes;
  }
  report["operations"] = json::array();
  for (const auto &[name, usage] : usages)
    report["operations"].push_back({{"name", name}, {"count", usage.count}, {"result_bytes", usage.bytes}});
  report["constant_bytes"] = constantBytes;
}

/// Adds the outputs, and what is computed besides them, as `--shard` takes it.
static void describeTensors(mlir::func::FuncOp main, json &report) {
  llvm::StringSet<> names;
  for (const std::string &name : getInputNames(main))
    names.insert(name);
  std::vector<std::string> outputs = getOutputNames(main);
  mlir::Operation *terminator = main.getBody().front().getTerminator();
  for (auto [index, name] : llvm::enumerate(outputs)) {
    mlir::Operation *op = terminator->getOperand(index).getDefiningOp();
    report["outputs"].push_back(
        describe(name, op ? getNodeName(op->getLoc()) : StringRef(), main.getResultTypes()[index]));
    names.insert(name);
  }
  for (mlir::Operation &op : main.getBody().front().without_terminator())
    if (StringRef name = getTensorName(op.getLoc());
        !name.empty() && !llvm::isa<ConstantOp>(op) && names.insert(name).second)
      report["tensors"].push_back(describe(name, getNodeName(op.getLoc()), op.getResult(0).getType()));
}

/// A command that compiles the model, with a split of its largest input by the longest dimension.
static std::string suggestCommand(const ModelSource &model, const json &report) {
  std::string command = "dovetail compile " + text::quoteForShell(model.path);
  for (const json &option : report["given"])
    command += " " + option.get<std::string>();
  for (const json &entry : report["open"])
    command += " " + entry["option"].get<std::string>();
  const json *split = nullptr;
  size_t splitDim = 0;
  double mostElements = -1;
  for (const json &input : report["inputs"]) {
    if (input["shape"].empty())
      continue;
    double elements = 1, longest = 0;
    size_t dim = input["shape"].size() - 1;
    // Of an open extent nothing is known; the first one is often a batch of one.
    for (auto [index, extent] : llvm::enumerate(input["shape"])) {
      double number = extent.is_number() ? extent.get<double>() : index == 0 ? 1.5 : 1e3;
      elements *= number;
      if (number > longest) {
        longest = number;
        dim = index;
      }
    }
    if (elements > mostElements) {
      mostElements = elements;
      split = &input;
      splitDim = dim;
    }
  }
  if (!split)
    return command + " --mesh auto=2";
  std::string spec = (*split)["name"].get<std::string>() + "=";
  for (size_t dim = 0; dim < (*split)["shape"].size(); ++dim)
    spec += (dim ? "," : "") + std::string(dim == splitDim ? "y" : "_");
  return command + " --mesh y=2 --shard " + text::quoteForShell(spec);
}

/// The options that were given, sorted.
static json describeGiven(const ImportOptions &options) {
  std::vector<std::string> given;
  for (const auto &entry : options.dims)
    given.push_back("--dim " + text::quoteForShell((entry.getKey() + "=" + llvm::Twine(entry.getValue())).str()));
  for (const auto &entry : options.bounds)
    given.push_back("--bound " + text::quoteForShell((entry.getKey() + "=" + llvm::Twine(entry.getValue())).str()));
  for (const auto &entry : options.shapes) {
    auto extents = llvm::map_range(entry.getValue(), [](int64_t extent) { return std::to_string(extent); });
    given.push_back("--shape " + text::quoteForShell((entry.getKey() + "=" + llvm::join(extents, ",")).str()));
  }
  llvm::sort(given);
  return given;
}

llvm::FailureOr<json> dovetail::describeModel(const ModelSource &model, CompileOptions options,
                                              Diagnostics &diagnostics) {
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  // Weights that are not there change nothing of what is described.
  options.import.mayMissData = true;
  SummaryResult result;
  {
    Diagnostics::Scope scope(diagnostics, *context, ExitCode::InvalidModel);
    result = model.bytes ? summarizeModel({*model.bytes, model.path}, options.import, *context)
                         : summarizeModel(model.path, options.import, *context);
  }
  if (!result.summary) {
    diagnostics.reclassify(getImportCode(result.error));
    return llvm::failure();
  }
  const ModelSummary &summary = *result.summary;
  json report = {{"file", model.path},
                 {"model", summary.name},
                 {"producer", summary.producer},
                 {"opsets", json::object()},
                 {"given", describeGiven(options.import)},
                 {"open", describeOpen(summary)},
                 {"inputs", json::array()},
                 {"outputs", json::array()},
                 {"tensors", json::array()}};
  for (const auto &[domain, version] : summary.opsets)
    report["opsets"][domain] = version;
  for (const TensorSummary &input : summary.inputs)
    report["inputs"].push_back(describe(input));
  report["next"] = suggestCommand(model, report);
  if (summary.isOpen()) {
    for (const TensorSummary &output : summary.outputs)
      report["outputs"].push_back(describe(output));
    for (const TensorSummary &tensor : summary.tensors)
      report["tensors"].push_back(describe(tensor));
    return report;
  }
  Compilation compilation(*context, std::move(options), diagnostics);
  if (failed(compilation.import(model)))
    return llvm::failure();
  describeOperations(getMain(compilation.getModule()), report);
  if (failed(compilation.runTo(Phase::Legalize)))
    return llvm::failure();
  describeTensors(getMain(compilation.getModule()), report);
  report["missing_files"] = compilation.getMissingFiles();
  return report;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string getText(const json &entry, const char *key) { return entry.value(key, std::string()); }

/// A type such as `f32[1, N, 4*h4]`.
static std::string formatType(const json &tensor) {
  if (tensor["shape"].is_null())
    return getText(tensor, "type") + "[?]";
  std::string text;
  for (auto [index, extent] : llvm::enumerate(tensor["shape"])) {
    text += index ? ", " : "";
    if (tensor.contains("lengths") && !tensor["lengths"][index].is_null())
      text += tensor["lengths"][index].get<std::string>() + "<=";
    text += extent.is_string() ? extent.get<std::string>() : extent.dump();
  }
  return getText(tensor, "type") + "[" + text + "]";
}

namespace {
/// Writes lists, cut where they are long.
class ListWriter {
public:
  ListWriter(llvm::raw_ostream &os, bool all) : os(os), all(all) {}

  void write(StringRef title, std::vector<std::string> columns, const json &entries,
             llvm::function_ref<std::vector<std::string>(const json &)> getRow) {
    if (entries.empty())
      return;
    Rows rows = {std::move(columns)};
    size_t shown = all ? entries.size() : std::min(entries.size(), kMaxEntries);
    for (size_t index = 0; index < shown; ++index)
      rows.push_back(getRow(entries[index]));
    os << "\n" << title << "\n" << tools::formatTable(rows);
    if (shown < entries.size())
      os << "  " << shown << " of " << entries.size() << "; --all lists them all\n";
  }

private:
  llvm::raw_ostream &os;
  bool all;
};
} // namespace

/// Where an option is needed: the dimensions, with what the model says of their extents if that is an expression.
static std::string formatPlaces(const json &entry) {
  constexpr size_t most = 4;
  std::string text;
  for (auto [index, place] : llvm::enumerate(entry["dimensions"])) {
    if (index == most)
      return text + " and " + std::to_string(entry["dimensions"].size() - most) + " more";
    text += (text.empty() ? "" : ", ") + getText(place, "input");
    if (place.contains("dimension"))
      text += ":" + place["dimension"].dump();
    if (std::string extent = getText(place, "extent");
        extent != "?" && extent != getText(entry, "name") && !extent.empty())
      text += " (" + extent + ")";
  }
  return text;
}

std::string dovetail::formatModel(const json &report, bool all) {
  std::string text, opsets;
  llvm::raw_string_ostream os(text);
  for (const auto &[domain, version] : report["opsets"].items())
    opsets += (opsets.empty() ? "" : ", ") + domain + " " + version.dump();
  Rows head = {{"file", getText(report, "file")},
               {"model", getText(report, "model")},
               {"producer", getText(report, "producer")},
               {"operator sets", opsets}};
  bool isOpen = !report["open"].empty();
  if (!isOpen && !report["missing_files"].empty())
    head.push_back({"missing files", llvm::join(report["missing_files"].get<std::vector<std::string>>(), ", ")});
  os << tools::formatTable(head, "");
  ListWriter lists(os, all);
  lists.write("Inputs", {"name", "type"}, report["inputs"],
              [](const json &tensor) { return std::vector<std::string>{getText(tensor, "name"), formatType(tensor)}; });
  lists.write("Open dimensions", {"name", "extent of", "give"}, report["open"], [](const json &entry) {
    return std::vector<std::string>{getText(entry, "name"), formatPlaces(entry), getText(entry, "option")};
  });
  if (isOpen)
    os << "  For an extent that varies from run to run: --bound in place of --dim, with the largest one\n";
  auto getRow = [](const json &tensor) {
    return std::vector<std::string>{getText(tensor, "name"), formatType(tensor), getText(tensor, "node")};
  };
  lists.write("Outputs", {"name", "type", "node"}, report["outputs"], getRow);
  lists.write("Other tensors that --shard takes", {"name", "type", "node"}, report["tensors"], getRow);
  if (isOpen && !report["tensors"].empty())
    os << "  Some of them may be simplified away; once all extents are given, this list is exact\n";
  if (!isOpen) {
    lists.write("Operations, after import", {"operation", "count", "results"}, report["operations"],
                [](const json &usage) {
                  return std::vector<std::string>{getText(usage, "name"), usage["count"].dump(),
                                                  tools::formatBytes(usage["result_bytes"].get<int64_t>())};
                });
    os << "\nConstants: " << tools::formatBytes(report["constant_bytes"].get<int64_t>()) << "\n";
  }
  os << "\nNext" << (isOpen ? ", with a number for each '...'" : "") << "\n  " << getText(report, "next") << "\n";
  return text;
}
