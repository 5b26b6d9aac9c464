//===- Normalization.cpp - Import of normalisations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Normalisations and softmax. A batch normalisation becomes a multiplication and an addition.
//
//===----------------------------------------------------------------------===//

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

static llvm::APFloat getEpsilon(OnnxNode &node) {
  return llvm::APFloat(static_cast<float>(node.getFloat("epsilon", 1e-5f)));
}

/// Checks that operands `first` up to `last` are vectors of one element for each channel of operand 0.
static llvm::LogicalResult requirePerChannel(OnnxNode &node, unsigned first, unsigned last) {
  if (failed(node.requireRank(0, 2)))
    return llvm::failure();
  for (unsigned i = first; i <= last; ++i)
    if (node.getShape(node.getInput(i)) != node.getShape(node.getInput(0)).slice(1, 1))
      return node.invalid("operand " + llvm::Twine(i) + " does not have one element for each channel");
  return llvm::success();
}

//===----------------------------------------------------------------------===//
// Batch normalisation
//===----------------------------------------------------------------------===//

/// The factor and the summand, computed in double precision; false if they depend on what is not constant.
static bool foldBatchNorm(OnnxNode &node, llvm::ArrayRef<mlir::Value> parameters, double epsilon, mlir::Value &factor,
                          mlir::Value &summand) {
  std::array<llvm::SmallVector<double>, 4> values;
  for (auto [parameter, numbers] : llvm::zip(parameters, values)) {
    mlir::ElementsAttr constant = OnnxNode::getConstant(parameter);
    auto read = constant ? readFloats(constant) : std::nullopt;
    if (!read)
      return false;
    numbers = std::move(*read);
  }
  auto &[scale, bias, mean, variance] = values;
  for (size_t i = 0; i < scale.size(); ++i) {
    scale[i] /= std::sqrt(variance[i] + epsilon);
    bias[i] -= mean[i] * scale[i];
  }
  factor = node.constantFloats(OnnxNode::getType(parameters.front()), scale);
  summand = node.constantFloats(OnnxNode::getType(parameters.front()), bias);
  return true;
}

/// Normalises by the statistics of the batch itself, of which moving averages are further results.
static llvm::LogicalResult importTrainingBatchNorm(OnnxNode &node) {
  if (failed(requirePerChannel(node, 1, 4)))
    return llvm::failure();
  mlir::Type narrow = node.getType(node.getInput(0)).getElementType();
  mlir::Type wide = node.getType(node.getInput(3)).getElementType();
  mlir::Value input = node.cast(node.getInput(0), wide);
  int64_t rank = node.getRank(input);
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  axes.erase(axes.begin() + 1);
  mlir::Value mean = node.mean(input, axes);
  mlir::Value centered = node.create<SubOp>(input, mean);
  mlir::Value variance = node.mean(node.create<MulOp>(centered, centered), axes);
  double momentum = node.getFloat("momentum", 0.9f);
  for (auto [index, current] : {std::pair{3, mean}, std::pair{4, variance}}) {
    if (!current)
      return llvm::failure();
    mlir::Value old = node.getInput(index), now = node.reshape(current, node.getShape(old));
    mlir::Value average = node.create<AddOp>(node.create<MulOp>(old, node.scalarLike(old, momentum)),
                                             node.create<MulOp>(now, node.scalarLike(now, 1 - momentum)));
    if (failed(node.setResult(index - 2, average)))
      return llvm::failure();
  }
  mlir::Value shifted = node.create<AddOp>(variance, node.scalarLike(variance, node.getFloat("epsilon", 1e-5f)));
  auto parameter = [&](unsigned index) { return node.perChannel(node.cast(node.getInput(index), wide), rank); };
  mlir::Value factor = node.create<DivOp>(parameter(1), node.create<SqrtOp>(shifted));
  mlir::Value result = node.create<AddOp>(node.create<MulOp>(centered, factor), parameter(2));
  return node.setResult(node.cast(result, narrow));
}

static OperatorImport batchNorm("BatchNormalization", [](OnnxNode &node) -> llvm::LogicalResult {
  if (node.getInt("training_mode", 0) != 0) {
    mlir::emitWarning(node.getLoc()) << "BatchNormalization is in training mode: it normalises with the mean and "
                                        "variance of each input, not of the training; for inference call "
                                        "model.eval() before the export";
    return importTrainingBatchNorm(node);
  }
  for (unsigned i = 1; i < 5; ++i)
    if (node.isResultUsed(i))
      return node.unsupported("running statistics are not computed without training_mode");
  if (node.getInt("spatial", 1) != 1)
    return node.unsupported("statistics for each element (spatial = 0) are not supported");
  if (failed(requirePerChannel(node, 1, 4)))
    return llvm::failure();
  // The statistics may be wider than the operand; the computation is then as wide as they are, and no narrower than
  // f32: a factor of 16 bits would be off by as much as a rounded result, for all elements of a channel alike.
  mlir::Type narrow = node.getType(node.getInput(0)).getElementType();
  mlir::Type wide = node.getType(node.getInput(3)).getElementType();
  if (wide.isF16() || wide.isBF16())
    wide = mlir::Float32Type::get(wide.getContext());
  mlir::Value input = node.cast(node.getInput(0), wide);
  llvm::SmallVector<mlir::Value> parameters;
  for (unsigned i = 1; i < 5; ++i)
    parameters.push_back(node.cast(node.getInput(i), wide));
  double epsilon = node.getFloat("epsilon", 1e-5f);
  mlir::Value factor, summand;
  if (!foldBatchNorm(node, parameters, epsilon, factor, summand)) {
    mlir::Value shifted = node.create<AddOp>(parameters[3], node.scalarLike(parameters[3], epsilon));
    factor = node.create<DivOp>(parameters[0], node.create<SqrtOp>(shifted));
    summand = node.create<SubOp>(parameters[1], node.create<MulOp>(parameters[2], factor));
  }
  int64_t rank = node.getRank(node.getInput(0));
  mlir::Value scaled = node.create<MulOp>(input, node.perChannel(factor, rank));
  return node.setResult(node.cast(node.create<AddOp>(scaled, node.perChannel(summand, rank)), narrow));
});

//===----------------------------------------------------------------------===//
// Group and layer normalisation
//===----------------------------------------------------------------------===//

/// The operand, of which `scale` and `bias` have one element for each channel, normalised within groups of channels.
static mlir::Value normalizeGroups(OnnxNode &node, mlir::Value scale, mlir::Value bias, int64_t groups) {
  mlir::Value input = node.getInput(0);
  if (node.getCounts(input).empty() || node.getCount(input, 1))
    return node.create<GroupNormOp>(input, scale, bias, groups, getEpsilon(node));
  // Statistics are of what there is.
  int64_t rank = node.getRank(input), channels = node.getShape(input)[1];
  llvm::SmallVector<int64_t> shape(node.getShape(input)), grouped(shape);
  grouped[1] = groups;
  grouped.insert(grouped.begin() + 2, channels / groups);
  mlir::Value rows = groups == channels ? node.widen(input) : node.reshape(node.widen(input), grouped);
  if (!rows)
    return {};
  auto axes = llvm::to_vector(llvm::seq<int64_t>(2, node.getRank(rows)));
  mlir::Value centered = node.create<SubOp>(rows, node.mean(rows, axes));
  mlir::Value variance = node.mean(node.create<MulOp>(centered, centered), axes);
  mlir::Value shifted = node.create<AddOp>(variance, node.scalarLike(variance, node.getFloat("epsilon", 1e-5f)));
  mlir::Value normal = node.create<MulOp>(centered, node.create<RsqrtOp>(shifted));
  if (groups != channels)
    normal = node.reshape(normal, shape);
  auto perChannel = [&](mlir::Value vector) { return node.perChannel(node.widen(vector), rank); };
  mlir::Value result = node.create<AddOp>(node.create<MulOp>(normal, perChannel(scale)), perChannel(bias));
  return node.cast(result, node.getType(input).getElementType());
}

static OperatorImport instanceNorm("InstanceNormalization", [](OnnxNode &node) -> llvm::LogicalResult {
  if (failed(requirePerChannel(node, 1, 2)))
    return llvm::failure();
  return node.setResult(normalizeGroups(node, node.getInput(1), node.getInput(2), node.getShape(node.getInput(0))[1]));
});

static OperatorImport groupNorm("GroupNormalization", [](OnnxNode &node) -> llvm::LogicalResult {
  if (failed(node.requireRank(0, 2)))
    return llvm::failure();
  mlir::Value input = node.getInput(0), scale = node.getInput(1), bias = node.getInput(2);
  int64_t groups = node.getInt("num_groups", 0), channels = node.getShape(input)[1];
  if (groups < 1 || channels % groups != 0)
    return node.invalid("'num_groups' is " + llvm::Twine(groups) + ", which does not divide the " +
                        llvm::Twine(channels) + " channels");
  if (node.getOpset() < 21) {
    // One number for each group, here repeated for its channels.
    for (mlir::Value *vector : {&scale, &bias}) {
      if (node.getShape(*vector) != llvm::ArrayRef<int64_t>(groups))
        return node.invalid("scale and bias must have one element for each group");
      mlir::Value repeated = node.broadcast(node.reshape(*vector, {groups, 1}), {groups, channels / groups});
      *vector = node.reshape(repeated, {channels});
    }
  } else if (failed(requirePerChannel(node, 1, 2))) {
    return llvm::failure();
  }
  return node.setResult(normalizeGroups(node, scale, bias, groups));
});

static OperatorImport layerNorm("LayerNormalization", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  auto axis = node.normalizeAxis(node.getInt("axis", -1), node.getRank(input));
  if (failed(axis))
    return llvm::failure();
  // Results 1 and 2 are the mean and the reciprocal of the standard deviation.
  if (node.isResultUsed(1) || node.isResultUsed(2)) {
    auto axes = llvm::to_vector(llvm::seq<int64_t>(*axis, node.getRank(input)));
    mlir::Type stash = convertElementType(node.getInt("stash_type", 1), node.getBuilder().getContext());
    if (!stash)
      return node.invalid("'stash_type' is not the type of a float");
    mlir::Value wide = node.cast(input, stash);
    mlir::Value mean = node.mean(wide, axes);
    mlir::Value centered = node.create<SubOp>(wide, mean);
    mlir::Value variance = node.mean(node.create<MulOp>(centered, centered), axes);
    mlir::Value shifted = node.create<AddOp>(variance, node.scalarLike(variance, node.getFloat("epsilon", 1e-5f)));
    if (failed(node.setResult(1, mean)) || failed(node.setResult(2, node.create<RsqrtOp>(shifted))))
      return llvm::failure();
  }
  Counts counts(node.getCounts(input));
  for (auto [dim, count] : llvm::enumerate(counts)) {
    // What is read along a bounded dimension has an element for each of its coordinates, or one for all.
    auto isReadAlong = [&](unsigned index) {
      mlir::Value parameter = node.getInput(index);
      int64_t own = parameter ? static_cast<int64_t>(dim) - node.getRank(input) + node.getRank(parameter) : -1;
      return own >= 0 && node.getShape(parameter)[own] != 1;
    };
    if (count && (static_cast<int64_t>(dim) >= *axis || isReadAlong(1) || isReadAlong(2)))
      return node.unsupported(importer::describeBounded("'X'", dim, node.getShape(input)[dim],
                                                        "it is normalised over, or scaled along, that dimension"));
  }
  for (unsigned index : {1, 2})
    if (node.hasInput(index) && !node.getCounts(node.getInput(index)).empty())
      return node.unsupported(node.describeBounded("operand " + llvm::Twine(index), node.getInput(index),
                                                   "it must have an element for each normalised one"));
  return node.setResult(node.bound(
      node.create<LayerNormOp>(input, node.getInput(1), OptionalOperand{node.getInput(2)}, *axis, getEpsilon(node)),
      counts));
});

static OperatorImport lpNorm("LpNormalization", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.widen(node.getInput(0));
  auto axis = node.normalizeAxis(node.getInt("axis", -1), node.getRank(input));
  if (failed(axis))
    return llvm::failure();
  int64_t p = node.getInt("p", 2);
  if (p != 1 && p != 2)
    return node.invalid("'p' is " + llvm::Twine(p) + ": expected 1 or 2");
  mlir::Value terms = p == 1 ? node.create<AbsOp>(input) : node.create<MulOp>(input, input);
  mlir::Value norm = node.reduce(terms, ReduceKind::Sum, *axis);
  if (p == 2)
    norm = node.create<SqrtOp>(norm);
  // Where the norm is 0, so is the result.
  mlir::Value zero = node.scalarLike(input, 0);
  mlir::Value isZero = node.create<EqualOp>(norm, zero);
  mlir::Value divisor = node.create<SelectOp>(isZero, node.scalarLike(input, 1), norm);
  mlir::Value result = node.create<DivOp>(input, divisor);
  return node.setResult(node.cast(result, node.getType(node.getInput(0)).getElementType()));
});

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

static llvm::LogicalResult importSoftmax(OnnxNode &node, bool isLog) {
  mlir::Value input = node.getInput(0);
  llvm::ArrayRef<int64_t> shape = node.getShape(input);
  int64_t rank = shape.size();
  auto axis = node.normalizeAxis(node.getInt("axis", node.getOpset() < 13 ? 1 : -1), rank);
  if (failed(axis))
    return llvm::failure();
  if (node.getOpset() >= 13) {
    // Minus infinity in tails adds nothing to the sum.
    mlir::Value filled = node.fillTails(input, *axis, ReduceKind::Max);
    return node.setResult(node.bound(node.create<SoftmaxOp>(filled, *axis, isLog), Counts(node.getCounts(input))));
  }
  // Before opset 13, all dimensions from `axis` on count as one.
  auto isLong = [&](int64_t dim) { return shape[dim] != 1; };
  auto merged = llvm::to_vector(llvm::make_filter_range(llvm::seq<int64_t>(*axis, rank), isLong));
  if (merged.size() <= 1)
    return node.setResult(node.create<SoftmaxOp>(input, merged.empty() ? *axis : merged.front(), isLog));
  llvm::SmallVector<int64_t> flat(shape.take_front(*axis));
  flat.push_back(*countElements(shape.drop_front(*axis)));
  mlir::Value result = node.create<SoftmaxOp>(node.reshape(input, flat), *axis, isLog);
  return node.setResult(node.reshape(result, shape));
}

static OperatorImport softmax("Softmax", [](OnnxNode &node) { return importSoftmax(node, false); });
static OperatorImport logSoftmax("LogSoftmax", [](OnnxNode &node) { return importSoftmax(node, true); });
