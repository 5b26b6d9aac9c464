//===- Movement.cpp - Import of operators that move elements -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that put elements elsewhere without looking at them.
//
//===----------------------------------------------------------------------===//

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

/// The counts of all dimensions but `axis` of `operands`, which are to be put together along that. Where they differ,
/// operands become ones that agree; fails if one has a count and another none.
static llvm::FailureOr<Counts> getCommonCounts(OnnxNode &node, llvm::MutableArrayRef<mlir::Value> operands,
                                               int64_t axis) {
  Counts common(node.getRank(operands.front()));
  for (auto [number, operand] : llvm::enumerate(operands))
    for (size_t dim = 0; dim < common.size(); ++dim) {
      mlir::Value count = node.getCount(operand, dim);
      if (static_cast<int64_t>(dim) == axis || (number > 0 && count == common[dim]))
        continue;
      if (number > 0 && count && common[dim]) {
        operand = node.agree(operand, dim, common[dim]);
        continue;
      }
      if (number > 0)
        return node.unsupported(importer::describeBounded("operand " + llvm::Twine(count ? number : 0), dim,
                                                          node.getShape(count ? operand : operands.front())[dim],
                                                          "other operands need not have as many elements there"));
      common[dim] = count;
    }
  return common;
}

/// Puts operands together along a dimension of which some have as many elements as only runs know.
static llvm::LogicalResult concatBounded(OnnxNode &node, int64_t axis) {
  llvm::SmallVector<mlir::Value> operands(node.getInputs());
  auto counts = getCommonCounts(node, operands, axis);
  if (failed(counts))
    return llvm::failure();
  mlir::Value all = node.create<ConcatOp>(mlir::ValueRange(operands), axis);
  if (!all)
    return llvm::failure();
  // Elements of the result, and where they are in what has all tails: each operand begins where those before it end.
  int64_t total = node.getShape(all)[axis], begin = 0, numKnown = 0;
  mlir::Value positions = node.count(0, total), from = positions, sum;
  bool isAtEnd = true;
  for (mlir::Value operand : operands) {
    if (sum) {
      isAtEnd = false;
      mlir::Value start = node.deriveCount(sum, numKnown, 1);
      mlir::Value moved = node.create<AddOp>(node.create<SubOp>(positions, start), node.scalarLike(positions, begin));
      from = node.create<SelectOp>(node.create<LessOp>(positions, start), from, moved);
    }
    int64_t extent = node.getShape(operand)[axis];
    mlir::Value count = node.getCount(operand, axis);
    if (count)
      sum = sum ? node.addCounts(sum, count) : count;
    numKnown += count ? 0 : extent;
    begin += extent;
  }
  mlir::Value length = node.deriveCount(sum, numKnown, 1);
  Counts bounds = *counts;
  bounds[axis] = length;
  if (isAtEnd)
    return node.setResult(node.bound(all, std::move(bounds)));
  from = node.create<SelectOp>(node.create<LessOp>(positions, length), from, node.scalarLike(positions, 0));
  return node.setResult(node.bound(node.create<GatherOp>(node.state(all, *counts), from, axis), std::move(bounds)));
}

static OperatorImport concat("Concat", [](OnnxNode &node) -> llvm::LogicalResult {
  auto axis = node.normalizeAxis(node.getInt("axis", 1), node.getRank(node.getInput(0)));
  if (failed(axis))
    return llvm::failure();
  if (node.getNumInputs() == 1)
    return node.setResult(node.getInput(0));
  if (llvm::any_of(node.getInputs(),
                   [&](mlir::Value operand) { return node.getRank(operand) > *axis && node.getCount(operand, *axis); }))
    return concatBounded(node, *axis);
  return node.setResult(node.create<ConcatOp>(mlir::ValueRange(node.getInputs()), *axis));
});

/// The extents of the parts of a Split along a dimension of this extent.
static llvm::FailureOr<llvm::SmallVector<int64_t>> readSplit(OnnxNode &node, int64_t extent) {
  auto given = node.getIntsAttrOrInput("split", 1, 13);
  if (failed(given))
    return llvm::failure();
  int64_t numParts = node.getProto().output_size();
  if (*given) {
    int64_t total = 0;
    for (int64_t part : **given) {
      if (part < 0 || part > extent)
        return node.invalid("'split' has the entry " + llvm::Twine(part) + ", not from 0 to " + llvm::Twine(extent));
      total += part;
    }
    if (static_cast<int64_t>((*given)->size()) != numParts || total != extent)
      return node.invalid("'split' must give " + llvm::Twine(numParts) + " extents that add up to " +
                          llvm::Twine(extent));
    return **given;
  }
  if (node.getInt("num_outputs", numParts) != numParts)
    return node.invalid("'num_outputs' is not the number of results");
  // The last part may be smaller, since opset 18.
  int64_t part = llvm::divideCeil(extent, numParts);
  if (part * numParts != extent && node.getOpset() < 18)
    return node.invalid("the extent " + llvm::Twine(extent) + " cannot be split into " + llvm::Twine(numParts) +
                        " equal parts");
  llvm::SmallVector<int64_t> parts(numParts, part);
  parts.back() = extent - part * (numParts - 1);
  if (parts.back() < 0)
    return node.invalid("the extent " + llvm::Twine(extent) + " is too small for " + llvm::Twine(numParts) + " parts");
  return parts;
}

static OperatorImport split("Split", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  llvm::ArrayRef<int64_t> shape = node.getShape(input);
  auto axis = node.normalizeAxis(node.getInt("axis", 0), shape.size());
  if (failed(axis))
    return llvm::failure();
  auto parts = readSplit(node, shape[*axis]);
  if (failed(parts))
    return llvm::failure();
  if (node.getCount(input, *axis))
    return node.unsupported(
        importer::describeBounded("operand 0", *axis, shape[*axis], "parts of it would have other extents"));
  llvm::SmallVector<int64_t> starts(shape.size(), 0), sizes(shape), steps(shape.size(), 1);
  for (auto [index, part] : llvm::enumerate(*parts)) {
    sizes[*axis] = part;
    mlir::Value result = node.slice(input, starts, sizes, steps);
    // Nothing is sliced for it, but its other extents are those of the input.
    if (part == 0)
      result = node.bound(result, Counts(node.getCounts(input)));
    if (failed(node.setResult(index, result)))
      return llvm::failure();
    starts[*axis] += part;
  }
  return llvm::success();
});

/// More than any model pads, and safe to add to extents.
static constexpr int64_t kMaxPad = std::numeric_limits<int32_t>::max();
/// The compiler keeps a table of where each element of a dimension comes from that is not padded by a constant.
static constexpr int64_t kMaxContinued = int64_t(1) << 24;

static llvm::FailureOr<PadMode> readPadMode(OnnxNode &node) {
  llvm::StringRef mode = node.getString("mode", "constant");
  if (mode == "constant")
    return PadMode::Constant;
  if (mode == "reflect")
    return PadMode::Reflect;
  if (mode == "edge")
    return PadMode::Edge;
  if (mode == "wrap" && node.getOpset() >= 19)
    return PadMode::Wrap;
  return node.invalid("'mode' is '" + mode + "'");
}

/// Pads dimensions of which only runs know how many elements there are. What is behind the last one begins in the tail.
static llvm::LogicalResult padBounded(OnnxNode &node, mlir::Value input, mlir::Value value, llvm::ArrayRef<int64_t> low,
                                      llvm::ArrayRef<int64_t> high) {
  Counts counts(node.getCounts(input));
  llvm::SmallVector<int64_t> filled;
  for (auto [dim, count] : llvm::enumerate(counts)) {
    if (!count)
      continue;
    if (low[dim] < 0 || high[dim] < 0)
      return node.unsupported(importer::describeBounded("operand 0", dim, node.getShape(input)[dim],
                                                        "'pads' leaves elements of it out; a Slice may do that"));
    if (high[dim] > 0)
      filled.push_back(dim);
    count = node.deriveCount(count, low[dim] + high[dim], 1);
  }
  mlir::Value filler = value ? value : node.scalarLike(input, 0);
  mlir::Value padded =
      node.create<PadOp>(node.fillTails(input, filled, filler), OptionalOperand{value}, low, high, PadMode::Constant);
  return node.setResult(node.state(padded, std::move(counts)));
}

static OperatorImport pad("Pad", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0), value;
  int64_t rank = node.getRank(input);
  auto mode = readPadMode(node);
  auto pads = node.getIntsAttrOrInput("pads", 1, 11);
  auto given = node.getIntsAttrOrInput("axes", 3, 18);
  if (failed(mode) || failed(pads) || failed(given))
    return llvm::failure();
  auto axes = node.normalizeAxes(*given ? llvm::ArrayRef<int64_t>(**given)
                                        : llvm::ArrayRef<int64_t>(llvm::to_vector(llvm::seq<int64_t>(0, rank))),
                                 rank);
  if (failed(axes))
    return llvm::failure();
  if (!*pads || (*pads)->size() != 2 * axes->size())
    return node.invalid("'pads' must have two entries for each axis");
  llvm::SmallVector<int64_t> low(rank, 0), high(rank, 0);
  for (auto [i, dim] : llvm::enumerate(*axes)) {
    low[dim] = (**pads)[i];
    high[dim] = (**pads)[i + axes->size()];
    for (int64_t pad : {low[dim], high[dim]})
      if (pad < -kMaxPad || pad > kMaxPad)
        return node.invalid("'pads' has the entry " + llvm::Twine(pad) + ", which is out of range");
  }
  if (llvm::all_of(low, [](int64_t pad) { return pad == 0; }) &&
      llvm::all_of(high, [](int64_t pad) { return pad == 0; }))
    return node.setResult(input);
  for (auto [dim, extent] : llvm::enumerate(node.getShape(input)))
    if (*mode != PadMode::Constant && std::max(low[dim], high[dim]) > 0 &&
        extent + low[dim] + high[dim] > kMaxContinued)
      return node.unsupported("its mode is supported up to " + llvm::Twine(kMaxContinued) + " elements of a dimension");
  if (*mode == PadMode::Constant) {
    if (node.getOpset() < 11) {
      value = node.scalarLike(input, node.getFloat("value", 0));
    } else if (node.hasInput(2)) {
      if (node.getType(node.getInput(2)).getNumElements() != 1)
        return node.invalid("'constant_value' is not a single number");
      value = node.reshape(node.getInput(2), {});
    }
  }
  bool padsBounded = false;
  for (int64_t dim = 0; dim < rank; ++dim)
    padsBounded |= node.getCount(input, dim) && (low[dim] != 0 || high[dim] != 0);
  if (padsBounded && *mode == PadMode::Constant)
    return padBounded(node, input, value, low, high);
  return node.setResult(node.create<PadOp>(input, OptionalOperand{value}, low, high, *mode));
});

static OperatorImport transpose("Transpose", [](OnnxNode &node) -> llvm::LogicalResult {
  int64_t rank = node.getRank(node.getInput(0));
  llvm::SmallVector<int64_t> permutation = node.getInts("perm");
  if (!node.hasAttr("perm"))
    permutation = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  if (static_cast<int64_t>(permutation.size()) != rank)
    return node.invalid("'perm' must have " + llvm::Twine(rank) + " entries");
  auto dims = node.normalizeAxes(permutation, rank);
  if (failed(dims))
    return llvm::failure();
  return node.setResult(node.transpose(node.getInput(0), *dims));
});

static OperatorImport expand("Expand", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  auto target = node.getExtents(1, "shape");
  if (failed(target))
    return llvm::failure();
  // The shapes broadcast to each other: where the target says 1, the operand's extent stays.
  llvm::ArrayRef<int64_t> shape = node.getShape(input);
  llvm::ArrayRef<mlir::Value> ownCounts = node.getCounts(input);
  llvm::SmallVector<int64_t> result(std::max(shape.size(), target->size()), 1);
  Counts counts(result.size());
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t own = i < shape.size() ? shape[shape.size() - 1 - i] : 1;
    mlir::Value ownCount = i < ownCounts.size() ? ownCounts[ownCounts.size() - 1 - i] : mlir::Value();
    Extent last = i < target->size() ? (*target)[target->size() - 1 - i] : Extent{1, {}};
    int64_t wanted = last.number;
    // A length may be 1, and so broadcast to another extent, or not.
    bool isOne = !ownCount && own == 1, staysOne = !last.count && wanted == 1;
    if ((ownCount || last.count) && !isOne && !staysOne && ownCount != last.count)
      return node.unsupported(importer::describeBounded("the result", result.size() - 1 - i, std::max(own, wanted),
                                                        "the operand and 'shape' may give it different extents"));
    counts[counts.size() - 1 - i] = ownCount ? ownCount : last.count;
    if (own != wanted && own != 1 && wanted != 1)
      return node.invalid("extent " + llvm::Twine(own) + " does not broadcast to " + llvm::Twine(wanted));
    result[result.size() - 1 - i] = own == 1 ? wanted : own;
  }
  if (!countElements(result))
    return node.invalid("'shape' is out of range");
  mlir::Value expanded = node.broadcast(input, result);
  if (expanded != input)
    return node.setResult(node.bound(expanded, std::move(counts)));
  // The operand itself stays unbounded: others read all of it.
  bool isOwn = true;
  for (auto [dim, count] : llvm::enumerate(counts))
    isOwn &= !count || (!ownCounts.empty() && ownCounts[dim] == count);
  if (!isOwn)
    input = node.bound(importer::clearTails(node.getBuilder(), node.getLoc(), input, counts), counts);
  return node.setResult(input);
});

static OperatorImport tile("Tile", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  auto repeats = node.getConstantInts(1, "repeats");
  if (failed(repeats))
    return llvm::failure();
  llvm::ArrayRef<int64_t> shape = node.getShape(input);
  if (repeats->size() != shape.size())
    return node.invalid("'repeats' must have one entry for each dimension");
  // [a, b] becomes [1, a, 1, b], is repeated to [r, a, s, b] and merged to [r * a, s * b].
  llvm::SmallVector<int64_t> apart, repeated, merged;
  for (auto [extent, repeat] : llvm::zip(shape, *repeats)) {
    apart.append({1, extent});
    repeated.append({repeat, extent});
    if (!countElements({repeat, extent}))
      return node.invalid("'repeats' is out of range");
    merged.push_back(repeat * extent);
  }
  if (!countElements(repeated))
    return node.invalid("'repeats' is out of range");
  return node.setResult(node.reshape(node.broadcast(node.reshape(input, apart), repeated), merged));
});

/// Reshape, transpose, reshape: how blocks of channels and of space change places.
static llvm::LogicalResult rearrange(OnnxNode &node, llvm::ArrayRef<int64_t> apart, llvm::ArrayRef<int64_t> permutation,
                                     llvm::ArrayRef<int64_t> merged) {
  mlir::Value value = node.transpose(node.reshape(node.getInput(0), apart), permutation);
  return node.setResult(node.reshape(value, merged));
}

/// The block size of an operator on [N, C, H, W].
static llvm::FailureOr<int64_t> readBlockSize(OnnxNode &node) {
  if (node.getRank(node.getInput(0)) != 4)
    return node.invalid("the operand must have the dimensions [N, C, H, W]");
  int64_t block = node.getInt("blocksize", 0);
  if (block < 1 || block > std::numeric_limits<int16_t>::max())
    return node.invalid("'blocksize' is " + llvm::Twine(block) + ", not from 1 to 32767");
  return block;
}

static OperatorImport depthToSpace("DepthToSpace", [](OnnxNode &node) -> llvm::LogicalResult {
  auto blockSize = readBlockSize(node);
  if (failed(blockSize))
    return llvm::failure();
  int64_t b = *blockSize;
  llvm::ArrayRef<int64_t> shape = node.getShape(node.getInput(0));
  int64_t n = shape[0], c = shape[1] / (b * b), h = shape[2], w = shape[3];
  if (c * b * b != shape[1])
    return node.invalid("'blocksize' squared does not divide the channels");
  llvm::StringRef mode = node.getString("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return node.invalid("'mode' is '" + mode + "': expected DCR or CRD");
  if (mode == "DCR")
    return rearrange(node, {n, b, b, c, h, w}, {0, 3, 4, 1, 5, 2}, {n, c, h * b, w * b});
  return rearrange(node, {n, c, b, b, h, w}, {0, 1, 4, 2, 5, 3}, {n, c, h * b, w * b});
});

static OperatorImport spaceToDepth("SpaceToDepth", [](OnnxNode &node) -> llvm::LogicalResult {
  auto blockSize = readBlockSize(node);
  if (failed(blockSize))
    return llvm::failure();
  int64_t b = *blockSize;
  llvm::ArrayRef<int64_t> shape = node.getShape(node.getInput(0));
  int64_t n = shape[0], c = shape[1], h = shape[2] / b, w = shape[3] / b;
  if (h * b != shape[2] || w * b != shape[3])
    return node.invalid("'blocksize' does not divide height and width");
  return rearrange(node, {n, c, h, b, w, b}, {0, 3, 5, 1, 2, 4}, {n, b * b * c, h, w});
});

static OperatorImport gather("Gather", [](OnnxNode &node) -> llvm::LogicalResult {
  if (failed(node.requireRank(0, 1)))
    return llvm::failure();
  auto axis = node.normalizeAxis(node.getInt("axis", 0), node.getRank(node.getInput(0)));
  if (failed(axis))
    return llvm::failure();
  int64_t extent = node.getShape(node.getInput(0))[*axis];
  if (mlir::ElementsAttr constant = node.getConstant(node.getInput(1)))
    if (auto indices = readInts(constant))
      for (int64_t index : *indices)
        if (index < -extent || index >= extent)
          return node.invalid("index " + llvm::Twine(index) + " is outside of extent " + llvm::Twine(extent));
  if (node.getCount(node.getInput(0), *axis))
    return node.setResult(node.gatherBounded(node.getInput(0), node.getInput(1), *axis));
  return node.setResult(node.create<GatherOp>(node.getInput(0), node.getInput(1), *axis));
});
