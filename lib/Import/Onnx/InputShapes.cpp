//===- InputShapes.cpp - Static shapes of a model's inputs -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements resolveInputTypes: first the options give extents to named dimensions, then every input is made static.
//
//===----------------------------------------------------------------------===//

#include "InputShapes.h"
#include "NamedExtents.h"
#include "TensorData.h"

#include "dovetail/Text/Shell.h"
#include "dovetail/Text/Suggestion.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace dovetail;
using namespace dovetail::importer;
using Dimension = onnx::TensorShapeProto::Dimension;

namespace {

class ShapeResolver {
public:
  ShapeResolver(llvm::ArrayRef<const onnx::ValueInfoProto *> inputs, const ImportOptions &options, Reporter &reporter)
      : inputs(inputs), options(options), reporter(reporter) {}

  /// Takes what options say. All else is after that.
  llvm::LogicalResult takeOptions() {
    for (const onnx::ValueInfoProto *input : inputs)
      for (const Dimension &dim : input->type().tensor_type().shape().dim())
        if (isOpen(dim) && isNamed(dim))
          extents.addName(dim.dim_param());
    if (failed(checkInputs()) || failed(takeDims()) || failed(takeBounds()) || failed(takeShapes()))
      return llvm::failure();
    if (std::optional<std::string> contradiction = extents.settle())
      return reporter.error(ImportError::Usage) << *contradiction;
    return llvm::success();
  }

  llvm::FailureOr<InputTypes> getTypes() {
    InputTypes result;
    std::string open;
    for (const onnx::ValueInfoProto *input : inputs) {
      llvm::SmallVector<int64_t> shape;
      if (!resolve(*input, shape)) {
        open += (open.empty() ? "" : "; ") + describeOpen(*input);
        continue;
      }
      if (!countElements(shape)) {
        bool isGiven = isAnyOpen(input);
        auto diagnostic = reporter.error(isGiven ? ImportError::Usage : ImportError::Unsupported);
        diagnostic << "input '" << input->name() << "' with the shape [";
        llvm::interleaveComma(shape, diagnostic);
        return diagnostic << "] is too large: an extent may be 2^40, and a tensor have 2^44 elements"
                          << (isGiven ? "; give --dim, --bound or --shape smaller extents" : "");
      }
      result.types.push_back(mlir::RankedTensorType::get(
          shape, convertElementType(input->type().tensor_type().elem_type(), reporter.getContext())));
      result.lengths.push_back(findLengths(*input, result.names));
    }
    if (!open.empty())
      return reporter.error(ImportError::Usage) << "shapes must be static: " << open << adviseBound();
    return result;
  }

  std::vector<InputSummary> summarize() {
    std::vector<InputSummary> summaries;
    for (const onnx::ValueInfoProto *input : inputs) {
      const auto &type = input->type().tensor_type();
      InputSummary &summary = summaries.emplace_back();
      auto shape = options.shapes.find(input->name());
      summary.hasShape = type.has_shape() || shape != options.shapes.end();
      if (!type.has_shape() && summary.hasShape)
        for (int64_t extent : shape->second)
          summary.dims.push_back({std::to_string(extent), extent});
      for (auto [index, dim] : llvm::enumerate(type.shape().dim()))
        summary.dims.push_back(summarize(*input, index, dim));
    }
    return summaries;
  }

private:
  DimSummary summarize(const onnx::ValueInfoProto &input, size_t index, const Dimension &dim) {
    if (!isOpen(dim))
      return {std::to_string(dim.dim_value()), dim.dim_value()};
    if (auto bound = bounded.find({&input, index}); bound != bounded.end())
      return {input.name() + ":" + std::to_string(index), bound->second, true};
    DimSummary summary{isNamed(dim) ? dim.dim_param() : "?"};
    const GivenExtent *known = isNamed(dim) ? extents.find(dim.dim_param()) : nullptr;
    if (known) {
      summary.extent = known->value;
      summary.isBound = known->isBound;
    } else if (auto shape = options.shapes.find(input.name()); shape != options.shapes.end()) {
      summary.extent = shape->second[index];
    } else if (isNamed(dim)) {
      for (llvm::StringRef name : extents.getMissing(dim.dim_param()))
        summary.missing.push_back(name.str());
    }
    return summary;
  }

  /// A dimension that only an option can give an extent. Some exporters write -1 for "any".
  static bool isOpen(const Dimension &dim) { return !dim.has_dim_value() || dim.dim_value() < 0; }

  /// True if an open dimension has a name that means the same extent everywhere; some exporters write "?" for "any".
  static bool isNamed(const Dimension &dim) { return !dim.dim_param().empty() && dim.dim_param() != "?"; }

  /// Whether an option has to say an extent of an input, or its rank.
  static bool isAnyOpen(const onnx::ValueInfoProto *input) {
    const auto &type = input->type().tensor_type();
    return !type.has_shape() || llvm::any_of(type.shape().dim(), isOpen);
  }

  /// Checks that all inputs are tensors, of known element types.
  llvm::LogicalResult checkInputs() {
    for (const onnx::ValueInfoProto *input : inputs) {
      if (input->type().value_case() == onnx::TypeProto::VALUE_NOT_SET)
        return reporter.invalid() << "input '" << input->name() << "' has no type";
      if (!input->type().has_tensor_type())
        return reporter.error(ImportError::Unsupported)
               << "input '" << input->name() << "' is not a dense tensor: sequences, maps, optional and sparse values "
               << "are not supported";
      int32_t elementType = input->type().tensor_type().elem_type();
      if (!convertElementType(elementType, reporter.getContext()))
        return reporter.error(ImportError::Unsupported)
               << "input '" << input->name() << "' has " << describeUnsupportedElements(elementType);
    }
    return llvm::success();
  }

  std::vector<std::string> getInputNames() const {
    std::vector<std::string> names;
    for (const onnx::ValueInfoProto *input : inputs)
      names.push_back(input->name());
    return names;
  }

  /// `; did you mean ...?` for the name of a dimension, or `INPUT:DIM`, that is neither.
  std::string suggestBounded(llvm::StringRef name) const {
    std::vector<std::string> names;
    for (llvm::StringRef known : extents.getKnown())
      if (extents.isName(known))
        names.push_back(known.str());
    if (auto [input, dim] = name.rsplit(':'); !dim.empty())
      for (const std::string &other : getInputNames())
        names.push_back(other + ":" + dim.str());
    return text::suggest(name, names);
  }

  llvm::LogicalResult takeDims() {
    llvm::SmallVector<llvm::StringRef> names = extents.getKnown();
    for (const auto &entry : options.dims) {
      if (!extents.isKnown(entry.getKey())) {
        auto diagnostic = reporter.error(ImportError::Usage);
        diagnostic << "--dim " << entry.getKey() << "=" << entry.getValue()
                   << ": no input has a dimension of this name";
        if (names.empty())
          return diagnostic << ", and no other has a name: "
                            << (llvm::any_of(inputs, isAnyOpen)
                                    ? "give --shape, or export the model with names for its dimensions"
                                    : "the model says all extents of its inputs");
        diagnostic << " (there are ";
        llvm::interleaveComma(names, diagnostic);
        return diagnostic << ")" << text::suggest(entry.getKey(), {names.begin(), names.end()});
      }
      if (entry.getValue() < 0)
        return reporter.error(ImportError::Usage)
               << "--dim " << entry.getKey() << "=" << entry.getValue() << ": an extent is at least 0";
      extents.give(entry.getKey(), {entry.getValue(), formatOption("--dim", entry.getKey(), entry.getValue())});
    }
    return llvm::success();
  }

  llvm::LogicalResult takeBounds() {
    // In order of their names, which is that of messages.
    std::map<llvm::StringRef, int64_t> sorted;
    for (const auto &entry : options.bounds)
      sorted[entry.getKey()] = entry.getValue();
    for (auto [name, bound] : sorted) {
      auto wrong = [&] {
        auto diagnostic = reporter.error(ImportError::Usage);
        diagnostic << "--bound " << name << "=" << bound << ": ";
        return diagnostic;
      };
      if (bound < 1)
        return wrong() << "a bound is at least 1";
      if (extents.isName(name)) {
        if (const GivenExtent *known = extents.find(name))
          return wrong() << "--dim gives this dimension the extent " << known->value << "; give either of them";
        extents.give(name, {bound, formatOption("--bound", name, bound), /*isBound=*/true});
        continue;
      }
      if (extents.isKnown(name))
        return wrong() << "the model has this name in expressions only: give --bound for each of them, such as --bound "
                       << text::quoteForShell(findExpression(name).str() + "=...");
      auto [inputName, number] = name.rsplit(':');
      auto input = llvm::find_if(inputs, [&](const auto *input) { return input->name() == inputName; });
      int dim;
      if (input == inputs.end() || number.getAsInteger(10, dim))
        return wrong() << "no input has a dimension of this name; name one of the model, or one of an input as "
                          "INPUT:DIM, such as '"
                       << (inputs.empty() ? "tokens" : inputs.front()->name()) << ":1'" << suggestBounded(name);
      const auto &type = (*input)->type().tensor_type();
      if (!type.has_shape())
        return wrong() << "the model does not say how many dimensions the input has; export it with a shape";
      int rank = type.shape().dim_size();
      if (dim >= rank || dim < -rank)
        return wrong() << "the input has " << rank << " dimensions, counted from 0, or from the end as -1";
      dim += dim < 0 ? rank : 0;
      const Dimension &found = type.shape().dim(dim);
      if (!isOpen(found))
        return wrong() << "dimension " << dim << " is fixed to " << found.dim_value() << " in the model";
      if (isNamed(found))
        return wrong() << "the model calls this dimension '" << found.dim_param()
                       << "', as others may be: give --bound " << found.dim_param() << "=" << bound;
      if (!bounded.try_emplace({*input, static_cast<size_t>(dim)}, bound).second)
        return wrong() << "dimension " << dim << " already has a bound";
    }
    return llvm::success();
  }

  /// The numbers of the lengths of an input's dimensions, or -1, with those that are new added to `names`; empty if all
  /// extents are known.
  llvm::SmallVector<int64_t> findLengths(const onnx::ValueInfoProto &input, std::vector<std::string> &names) {
    llvm::SmallVector<int64_t> lengths;
    for (auto [index, dim] : llvm::enumerate(input.type().tensor_type().shape().dim())) {
      std::string name;
      if (isOpen(dim) && isNamed(dim) && options.bounds.contains(dim.dim_param()))
        name = dim.dim_param();
      else if (bounded.contains({&input, index}))
        name = input.name() + ":" + std::to_string(index);
      auto known = llvm::find(names, name);
      lengths.push_back(name.empty() ? -1 : known - names.begin());
      if (!name.empty() && known == names.end())
        names.push_back(std::move(name));
    }
    if (llvm::all_of(lengths, [](int64_t number) { return number < 0; }))
      lengths.clear();
    return lengths;
  }

  llvm::LogicalResult takeShapes() {
    for (const auto &entry : options.shapes)
      if (llvm::none_of(inputs, [&](const auto *input) { return input->name() == entry.getKey(); }))
        return unknownInput(entry.getKey());
    for (const onnx::ValueInfoProto *input : inputs) {
      auto it = options.shapes.find(input->name());
      if (it == options.shapes.end())
        continue;
      const auto &type = input->type().tensor_type();
      if (llvm::any_of(it->second, [](int64_t extent) { return extent < 0; }))
        return wrongShape(*input) << "extents are at least 0";
      if (!type.has_shape())
        continue;
      if (type.shape().dim_size() != static_cast<int>(it->second.size()))
        return wrongShape(*input) << "the input has " << type.shape().dim_size() << " dimensions, but "
                                  << it->second.size() << " are given";
      for (auto [index, extent] : llvm::enumerate(it->second)) {
        const Dimension &dim = type.shape().dim(index);
        if (!isOpen(dim) && dim.dim_value() != extent)
          return wrongShape(*input) << "dimension " << index << " is fixed to " << dim.dim_value() << " in the model";
        if (auto bound = bounded.find({input, index}); bound != bounded.end() && bound->second != extent)
          return wrongShape(*input) << "dimension " << index << " has the bound " << bound->second
                                    << " of a length that varies";
        if (!isOpen(dim) || !isNamed(dim))
          continue;
        const GivenExtent *known = extents.find(dim.dim_param());
        if (known && known->value != extent)
          return wrongShape(*input) << "dimension '" << dim.dim_param() << "' is already " << known->value << " by "
                                    << known->origin;
        if (!known)
          extents.give(dim.dim_param(), {extent, describeShape(*input)});
      }
    }
    return llvm::success();
  }

  static std::string formatOption(llvm::StringRef option, llvm::StringRef name, int64_t extent) {
    return (option + " " + text::quoteForShell((name + "=" + llvm::Twine(extent)).str())).str();
  }

  /// The option that gives the shape of an input.
  std::string describeShape(const onnx::ValueInfoProto &input) {
    llvm::SmallVector<int64_t> shape = options.shapes.lookup(input.name());
    return "--shape " + input.name() + "=" +
           llvm::join(llvm::map_range(shape, [](int64_t extent) { return std::to_string(extent); }), ",");
  }

  mlir::InFlightDiagnostic wrongShape(const onnx::ValueInfoProto &input) {
    auto diagnostic = reporter.error(ImportError::Usage);
    diagnostic << describeShape(input) << ": ";
    return diagnostic;
  }

  /// The first open dimension with a symbol that the model has in expressions only.
  llvm::StringRef findExpression(llvm::StringRef symbol) {
    for (llvm::StringRef name : extents.getKnown())
      if (auto value = evaluateDim(name, [](llvm::StringRef) { return std::nullopt; });
          value && name != symbol && llvm::is_contained(value->symbols, symbol))
        return name;
    return symbol;
  }

  llvm::LogicalResult unknownInput(llvm::StringRef name) {
    auto diagnostic = reporter.error(ImportError::Usage);
    diagnostic << "--shape " << name << ": the model has no input of this name (its inputs are ";
    llvm::interleaveComma(inputs, diagnostic, [&](const auto *input) { diagnostic << input->name(); });
    return diagnostic << ")" << text::suggest(name, getInputNames());
  }

  /// False if some extent is still open.
  bool resolve(const onnx::ValueInfoProto &input, llvm::SmallVectorImpl<int64_t> &shape) {
    if (auto it = options.shapes.find(input.name()); it != options.shapes.end()) {
      shape.assign(it->second.begin(), it->second.end());
      return true;
    }
    if (!input.type().tensor_type().has_shape())
      return false;
    for (auto [index, dim] : llvm::enumerate(input.type().tensor_type().shape().dim())) {
      if (auto bound = bounded.find({&input, index}); bound != bounded.end())
        shape.push_back(bound->second);
      else if (!isOpen(dim))
        shape.push_back(dim.dim_value());
      else if (const GivenExtent *known = extents.find(dim.dim_param()); known && isNamed(dim))
        shape.push_back(known->value);
      else
        return false;
    }
    return true;
  }

  std::string describeOpen(const onnx::ValueInfoProto &input) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "input '" << input.name() << "' ";
    if (!input.type().tensor_type().has_shape()) {
      os << "has no shape, pass --shape " << input.name() << "=...";
      return text;
    }
    os << "has shape [";
    llvm::SmallVector<std::string> flags;
    bool needsShape = false;
    llvm::interleaveComma(input.type().tensor_type().shape().dim(), os, [&](const Dimension &dim) {
      if (!isOpen(dim)) {
        os << dim.dim_value();
      } else if (!isNamed(dim)) {
        os << "?";
        needsShape = true;
      } else {
        os << dim.dim_param();
        for (llvm::StringRef name : extents.getMissing(dim.dim_param()))
          if (std::string flag = "--dim " + text::quoteForShell((name + "=...").str());
              !llvm::is_contained(flags, flag))
            flags.push_back(flag);
      }
    });
    os << "], pass ";
    if (!needsShape) {
      llvm::interleave(flags, os, " ");
      os << " or ";
    }
    os << "--shape " << input.name() << "=";
    llvm::interleave(
        input.type().tensor_type().shape().dim(), os,
        [&](const Dimension &dim) {
          if (isOpen(dim))
            os << "?";
          else
            os << dim.dim_value();
        },
        ",");
    os << " with a number for each '?'";
    return text;
  }

  /// How to leave an extent open to runs, by the example of the first one that is open.
  std::string adviseBound() {
    for (const onnx::ValueInfoProto *input : inputs)
      for (auto [index, dim] : llvm::enumerate(input->type().tensor_type().shape().dim())) {
        if (!isOpen(dim) || extents.find(dim.dim_param()) || bounded.contains({input, index}))
          continue;
        std::string name = isNamed(dim) ? dim.dim_param() : input->name() + ":" + std::to_string(index);
        return "; for an extent that varies from run to run pass its largest, such as --bound " +
               text::quoteForShell(name + "=...");
      }
    return "";
  }

  llvm::ArrayRef<const onnx::ValueInfoProto *> inputs;
  const ImportOptions &options;
  Reporter &reporter;
  NamedExtents extents;
  /// Bounds of dimensions that have no name, by input and number.
  std::map<std::pair<const onnx::ValueInfoProto *, size_t>, int64_t> bounded;
};

} // namespace

llvm::SmallVector<const onnx::ValueInfoProto *> dovetail::importer::getInputs(const onnx::GraphProto &graph) {
  llvm::StringSet<> initializers;
  for (const onnx::TensorProto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  for (const onnx::SparseTensorProto &tensor : graph.sparse_initializer())
    initializers.insert(tensor.values().name());
  llvm::SmallVector<const onnx::ValueInfoProto *> inputs;
  for (const onnx::ValueInfoProto &input : graph.input())
    if (!initializers.contains(input.name()))
      inputs.push_back(&input);
  return inputs;
}

llvm::FailureOr<InputTypes> dovetail::importer::resolveInputTypes(llvm::ArrayRef<const onnx::ValueInfoProto *> inputs,
                                                                  const ImportOptions &options, Reporter &reporter) {
  ShapeResolver resolver(inputs, options, reporter);
  if (failed(resolver.takeOptions()))
    return llvm::failure();
  return resolver.getTypes();
}

llvm::FailureOr<std::vector<InputSummary>>
dovetail::importer::summarizeInputs(llvm::ArrayRef<const onnx::ValueInfoProto *> inputs, const ImportOptions &options,
                                    Reporter &reporter) {
  ShapeResolver resolver(inputs, options, reporter);
  if (failed(resolver.takeOptions()))
    return llvm::failure();
  return resolver.summarize();
}
