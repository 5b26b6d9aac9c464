//===- Requests.cpp - What users ask of a module -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements attachRequests.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Requests.h"

#include "dovetail/Dialect/Dovetail/IR/Feedback.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Layout/Cuts.h"
#include "dovetail/Text/Suggestion.h"

#include "llvm/ADT/MapVector.h"

#include <numeric>

using namespace mlir;
using namespace dovetail;

static constexpr llvm::StringLiteral kNameAttr = "dovetail.name";

func::FuncOp dovetail::getMain(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("main"); }

std::vector<std::string> dovetail::getInputNames(func::FuncOp main) {
  std::vector<std::string> names;
  for (unsigned i = 0, e = main.getNumArguments(); i < e; ++i)
    if (!main.getArgAttr(i, kCountAttrName))
      names.push_back(main.getArgAttrOfType<StringAttr>(i, kNameAttr).str());
  return names;
}

std::vector<std::string> dovetail::getOutputNames(func::FuncOp main) {
  std::vector<std::string> names;
  for (unsigned i = 0, e = main.getNumResults(); i < e; ++i)
    if (!main.getResultAttr(i, kCountAttrName) && !main.getResultAttr(i, kFeedbackAttrName))
      names.push_back(main.getResultAttrOfType<StringAttr>(i, kNameAttr).str());
  return names;
}

std::string dovetail::listNames(ArrayRef<std::string> names) {
  constexpr size_t kMaxNames = 12;
  std::string list;
  for (const std::string &name : names.take_front(kMaxNames))
    list += (list.empty() ? "'" : ", '") + name + "'";
  if (names.size() > kMaxNames)
    list += " and " + std::to_string(names.size() - kMaxNames) + " more";
  return list.empty() ? "none" : list;
}

namespace {

/// What a request is about: an input, an output or the result of an operation.
struct ShardedValue {
  enum Kind { Input, Output, Result } kind;
  unsigned index = 0;
  Operation *op = nullptr;
  RankedTensorType type;
};

/// The counts of an input's or output's dimensions, -1 where a dimension has none.
SmallVector<int64_t> getCounts(Attribute attribute, int64_t rank) {
  if (auto counts = dyn_cast_or_null<DenseI64ArrayAttr>(attribute))
    return llvm::to_vector(counts.asArrayRef());
  return SmallVector<int64_t>(rank, -1);
}

class RequestAttacher {
public:
  RequestAttacher(ModuleOp module, const CompileOptions &options, Diagnostics &diagnostics)
      : main(getMain(module)), context(module.getContext()), options(options), diagnostics(diagnostics) {}

  LogicalResult run() {
    // All that is wrong is said at once.
    bool isRight = true;
    for (const SizesRequest &sizes : options.sizes)
      isRight &= succeeded(checkSizes(sizes));
    for (const ShardRequest &request : options.shards)
      isRight &= succeeded(attach(request));
    for (const std::string &feedback : options.feedback)
      isRight &= succeeded(feedBack(feedback));
    return success(isRight && succeeded(checkLengths()));
  }

private:
  LogicalResult usage(const Twine &message) { return diagnostics.error(ExitCode::Usage, message); }
  /// The value that `option` names.
  FailureOr<ShardedValue> find(StringRef option, StringRef tensor);
  LogicalResult attach(const ShardRequest &request);
  /// Adds what an input is to be in the next run to the results.
  LogicalResult feedBack(StringRef text);
  /// That an input can be this output in the next run.
  LogicalResult checkFed(StringRef option, unsigned output, unsigned input);
  /// That all inputs of a length are fed back if one is.
  LogicalResult checkLengths();
  /// An output, cut off or extended in dimensions with counts to the bounds of the input that it is fed back to.
  Value fitTo(Value value, unsigned input);
  SmallVector<int64_t> countsOfInput(unsigned input) {
    return getCounts(main.getArgAttr(input, kCountsAttrName),
                     cast<RankedTensorType>(main.getArgumentTypes()[input]).getRank());
  }
  SmallVector<int64_t> countsOfOutput(unsigned output) {
    return getCounts(main.getResultAttr(output, kCountsAttrName),
                     cast<RankedTensorType>(main.getResultTypes()[output]).getRank());
  }
  /// The name of a length.
  StringRef nameOf(int64_t length) {
    return main.getArgAttrOfType<StringAttr>(getInputNames(main).size() + length, kNameAttr).strref();
  }
  /// That there is a --shard for these sizes.
  LogicalResult checkSizes(const SizesRequest &sizes);
  FailureOr<DimShardingAttr> getDim(const ShardRequest &request, unsigned dim, int64_t extent);
  const SizesRequest *findSizes(StringRef tensor, int64_t dim) const {
    auto it = llvm::find_if(options.sizes,
                            [&](const SizesRequest &sizes) { return sizes.tensor == tensor && sizes.dim == dim; });
    return it == options.sizes.end() ? nullptr : &*it;
  }

  func::FuncOp main;
  MLIRContext *context;
  const CompileOptions &options;
  Diagnostics &diagnostics;
  llvm::MapVector<unsigned, unsigned> fedBack; ///< By input, the output.
};

} // namespace

/// `; did you mean ...?` with a tensor that `name` may stand for, which is none; empty if there is no such tensor.
static std::string suggestTensor(func::FuncOp main, StringRef name) {
  std::vector<std::string> names = getInputNames(main);
  llvm::append_range(names, getOutputNames(main));
  for (Operation &op : main.getBody().front()) {
    StringRef tensor = getTensorName(op.getLoc());
    if (tensor.empty() || op.getNumResults() == 0 || isa<ConstantOp>(op))
      continue;
    // Messages name nodes.
    std::string title = getSourceName(op.getLoc());
    if (getNodeName(op.getLoc()) == name || title == name || StringRef(title).starts_with((name + " (").str()))
      return ("; '" + name + "' is a node: did you mean its result '" + tensor + "'?").str();
    names.push_back(tensor.str());
  }
  return text::suggest(name, names);
}

FailureOr<ShardedValue> RequestAttacher::find(StringRef option, StringRef tensor) {
  std::vector<std::string> inputs = getInputNames(main), outputs = getOutputNames(main);
  if (auto it = llvm::find(inputs, tensor); it != inputs.end()) {
    unsigned index = it - inputs.begin();
    return ShardedValue{ShardedValue::Input, index, nullptr, cast<RankedTensorType>(main.getArgument(index).getType())};
  }
  if (auto it = llvm::find(outputs, tensor); it != outputs.end()) {
    unsigned index = it - outputs.begin();
    return ShardedValue{ShardedValue::Output, index, nullptr, cast<RankedTensorType>(main.getResultTypes()[index])};
  }
  for (Operation &op : main.getBody().front())
    if (op.getNumResults() >= 1 && !isa<ConstantOp>(op) && getTensorName(op.getLoc()) == tensor)
      return ShardedValue{ShardedValue::Result, 0, &op, cast<RankedTensorType>(op.getResult(0).getType())};
  for (auto constant : main.getBody().front().getOps<ConstantOp>())
    if (getTensorName(constant.getLoc()) == tensor)
      return usage(option + " names tensor '" + tensor +
                   "', which is a constant of the model: the compiler splits weights as their users need them; shard "
                   "an input, or a tensor that is computed from '" +
                   tensor + "'");
  return usage(option + " names tensor '" + tensor +
               "', which the model does not have, or loses when it is simplified; its inputs are " + listNames(inputs) +
               ", its outputs " + listNames(outputs) + suggestTensor(main, tensor));
}

LogicalResult RequestAttacher::checkSizes(const SizesRequest &sizes) {
  auto it = llvm::find_if(options.shards, [&](const ShardRequest &shard) { return shard.tensor == sizes.tensor; });
  std::string option = "--sizes " + sizes.tensor + ":" + std::to_string(sizes.dim);
  if (it == options.shards.end()) {
    if (failed(find("--sizes", sizes.tensor)))
      return failure();
    return usage("'" + option + "': tensor '" + sizes.tensor + "' is not split; say over which axes with --shard " +
                 sizes.tensor + "=...");
  }
  if (sizes.dim >= static_cast<int64_t>(it->dims.size()))
    return usage("'" + option + "': --shard gives tensor '" + sizes.tensor + "' " + Twine(it->dims.size()) +
                 " dimensions, counted from 0");
  if (it->dims[sizes.dim].empty())
    return usage("'" + option + "': --shard does not split dimension " + Twine(sizes.dim) + " of tensor '" +
                 sizes.tensor + "'");
  return success();
}

FailureOr<DimShardingAttr> RequestAttacher::getDim(const ShardRequest &request, unsigned dim, int64_t extent) {
  ArrayRef<std::string> axes = request.dims[dim];
  if (axes.empty())
    return DimShardingAttr::getUnsplit(context);
  SmallVector<StringAttr> names;
  int64_t parts = 1;
  for (const std::string &axis : axes) {
    names.push_back(StringAttr::get(context, axis));
    parts *= options.mesh.axisSize(*options.mesh.axisIndex(axis));
  }
  const SizesRequest *sizes = findSizes(request.tensor, dim);
  if (!sizes)
    return DimShardingAttr::get(context, names, {});
  if (sizes->kind == SizesKind::Balanced)
    return DimShardingAttr::getCuts(names, layout::balancedCuts(extent, parts));
  if (sizes->kind == SizesKind::Chunk)
    return DimShardingAttr::getCuts(names, layout::chunkCuts(extent, parts));
  std::string option = "--sizes " + request.tensor + ":" + std::to_string(dim);
  if (static_cast<int64_t>(sizes->sizes.size()) != parts)
    return usage("'" + option + "' gives " + Twine(sizes->sizes.size()) + " sizes, but " + llvm::join(axes, "+") +
                 " makes " + Twine(parts) + " shards; give one size for each");
  // Saturates, so that sizes that are too large cannot come out right.
  int64_t sum = 0;
  for (int64_t size : sizes->sizes)
    if (llvm::AddOverflow(sum, size, sum))
      return usage("'" + option + "': the sum of the sizes exceeds 2^63; give the extents of the shards");
  if (sum != extent)
    return usage("'" + option + "': the sizes add up to " + Twine(sum) + ", but dimension " + Twine(dim) +
                 " of tensor '" + request.tensor + "' has extent " + Twine(extent));
  return DimShardingAttr::getCuts(names, layout::cutsFromSizes(sizes->sizes));
}

LogicalResult RequestAttacher::attach(const ShardRequest &request) {
  FailureOr<ShardedValue> target = find("--shard", request.tensor);
  if (failed(target))
    return failure();
  ArrayRef<int64_t> shape = target->type.getShape();
  if (shape.size() != request.dims.size()) {
    std::string extents = llvm::join(llvm::map_range(shape, [](int64_t n) { return std::to_string(n); }), ", ");
    return usage("--shard gives " + Twine(request.dims.size()) + " entries for tensor '" + request.tensor +
                 "', which has " + Twine(shape.size()) + " dimensions [" + extents + "]; give one entry for each");
  }
  SmallVector<Attribute> dims;
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    FailureOr<DimShardingAttr> sharding = getDim(request, dim, extent);
    if (failed(sharding))
      return failure();
    dims.push_back(*sharding);
  }
  auto attribute = ArrayAttr::get(context, dims);
  switch (target->kind) {
  case ShardedValue::Input:
    main.setArgAttr(target->index, kShardAttrName, attribute);
    break;
  case ShardedValue::Output:
    main.setResultAttr(target->index, kShardAttrName, attribute);
    break;
  case ShardedValue::Result:
    target->op->setAttr(kShardAttrName, attribute);
    break;
  }
  return success();
}

/// `; did you mean ...?` with what is near to one side of `text`, the other side of which is right or near to a name.
static std::string suggestFeedback(StringRef text, const std::vector<std::string> &outputs,
                                   const std::vector<std::string> &inputs) {
  std::vector<std::string> pairs;
  auto [output, input] = text.split(':');
  auto isPossible = [](StringRef given, const std::string &name) {
    return given == name || !text::suggest(given, {name}).empty();
  };
  for (const std::string &from : outputs)
    for (const std::string &to : inputs)
      if (isPossible(output, from) && isPossible(input, to))
        pairs.push_back(from + ":" + to);
  return text::suggest(text, pairs);
}

LogicalResult RequestAttacher::checkFed(StringRef option, unsigned output, unsigned input) {
  std::string out = getOutputNames(main)[output], in = getInputNames(main)[input];
  auto from = cast<RankedTensorType>(main.getResultTypes()[output]);
  auto to = cast<RankedTensorType>(main.getArgumentTypes()[input]);
  SmallVector<int64_t> computed = countsOfOutput(output), lengths = countsOfInput(input);
  bool fits = from.getRank() == to.getRank() && from.getElementType() == to.getElementType();
  for (int64_t dim = 0; fits && dim < to.getRank(); ++dim) {
    if (lengths[dim] >= 0 && computed[dim] < 0 && from.getDimSize(dim) > to.getDimSize(dim))
      return usage("'" + option + "': dimension " + Twine(dim) + " of output '" + out + "' is " +
                   Twine(from.getDimSize(dim)) + ", but input '" + in + "' has the bound " + Twine(to.getDimSize(dim)) +
                   "; give a --bound of at least " + Twine(from.getDimSize(dim)));
    if (lengths[dim] < 0 && computed[dim] >= 0)
      return usage("'" + option + "': dimension " + Twine(dim) + " of output '" + out +
                   "' varies from run to run, but input '" + in + "' has " + Twine(to.getDimSize(dim)) +
                   " there in each run; give the dimension of the input a --bound");
    fits = lengths[dim] >= 0 || from.getDimSize(dim) == to.getDimSize(dim);
  }
  if (fits)
    return success();
  std::string text;
  llvm::raw_string_ostream(text) << "output '" << out << "' is " << from << ", but input '" << in << "' " << to;
  return usage("'" + option + "': " + text + "; the output must have the type and shape of the input");
}

LogicalResult RequestAttacher::checkLengths() {
  std::vector<std::string> inputs = getInputNames(main), outputs = getOutputNames(main);
  // For each length that is fed back, an output of which it is the extent. Runs check that others agree.
  llvm::SmallDenseMap<int64_t, unsigned> feeders;
  for (auto [input, output] : fedBack)
    for (int64_t length : countsOfInput(input))
      if (length >= 0)
        feeders.try_emplace(length, output);
  for (unsigned input = 0; input < inputs.size(); ++input)
    for (int64_t length : countsOfInput(input))
      if (feeders.count(length) && !fedBack.count(input))
        return usage("input '" + inputs[input] + "' has the length '" + nameOf(length) + "', which output '" +
                     outputs[feeders.lookup(length)] +
                     "' gives in the next run, but nothing is fed back to it; add --feedback OUT:" + inputs[input]);
  return success();
}

Value RequestAttacher::fitTo(Value value, unsigned input) {
  auto to = cast<RankedTensorType>(main.getArgumentTypes()[input]);
  SmallVector<int64_t> zeros(to.getRank(), 0), ones(to.getRank(), 1), sizes, more;
  for (auto [has, wanted] : llvm::zip_equal(cast<RankedTensorType>(value.getType()).getShape(), to.getShape())) {
    sizes.push_back(std::min(has, wanted));
    more.push_back(wanted - sizes.back());
  }
  // Elements behind a count are never read: the slice drops them, and the pad adds zeros.
  OpBuilder builder(main.getBody().front().getTerminator());
  Location loc = withoutTensorName(value.getLoc());
  if (ArrayRef(sizes) != cast<RankedTensorType>(value.getType()).getShape())
    value = SliceOp::create(builder, loc, value, zeros, sizes, ones);
  if (value.getType() != to)
    value = PadOp::create(builder, loc, value, Value(), zeros, more, PadMode::Constant);
  return value;
}

LogicalResult RequestAttacher::feedBack(StringRef text) {
  std::string option = ("--feedback " + text).str();
  std::vector<std::string> inputs = getInputNames(main), outputs = getOutputNames(main);
  // Names of tensors may contain colons.
  std::optional<std::pair<unsigned, unsigned>> found;
  for (size_t colon = text.find(':'); colon != StringRef::npos; colon = text.find(':', colon + 1)) {
    auto output = llvm::find(outputs, text.take_front(colon)), input = llvm::find(inputs, text.drop_front(colon + 1));
    if (output == outputs.end() || input == inputs.end())
      continue;
    if (found)
      return usage("'" + option +
                   "': several of the ':' can separate an output from an input; rename one of the two in the model");
    found = {output - outputs.begin(), input - inputs.begin()};
  }
  if (!found)
    return usage("'" + option +
                 "': expected the names of an output and of an input, as OUT:IN; the model's outputs are " +
                 listNames(outputs) + ", its inputs " + listNames(inputs) + suggestFeedback(text, outputs, inputs));
  auto [output, input] = *found;
  if (failed(checkFed(option, output, input)))
    return failure();
  if (!fedBack.try_emplace(input, output).second)
    return usage("'" + option + "': input '" + inputs[input] + "' already has a --feedback");
  Operation *terminator = main.getBody().front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), fitTo(terminator->getOperand(output), input));
  SmallVector<Type> types(main.getResultTypes());
  types.push_back(main.getArgumentTypes()[input]);
  SmallVector<DictionaryAttr> attributes;
  main.getAllResultAttrs(attributes);
  Builder builder(context);
  attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
      kFeedbackAttrName, builder.getDenseI64ArrayAttr({static_cast<int64_t>(input), static_cast<int64_t>(output)}))));
  main.setType(builder.getFunctionType(main.getArgumentTypes(), types));
  main.setAllResultAttrs(attributes);
  return success();
}

LogicalResult dovetail::attachRequests(ModuleOp module, const CompileOptions &options, Diagnostics &diagnostics) {
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  SmallVector<StringRef> axes;
  SmallVector<int64_t> sizes;
  for (const layout::MeshAxis &axis : options.mesh.getAxes()) {
    axes.push_back(axis.name);
    sizes.push_back(axis.size);
  }
  MeshOp::create(builder, module.getLoc(), "mesh", builder.getStrArrayAttr(axes), builder.getDenseI64ArrayAttr(sizes));
  return RequestAttacher(module, options, diagnostics).run();
}
