//===- Indexing.cpp - Import of what moves elements by position ----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GatherND, TensorScatter, ReverseSequence, MaxUnpool, Col2Im, and grids of positions (AffineGrid).
//
//===----------------------------------------------------------------------===//

#include "../../Build/Coordinates.h"
#include "WindowAttributes.h"
#include "dovetail/Dialect/Dovetail/IR/Positions.h"
#include "dovetail/Dialect/Dovetail/Ops/IndexingOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/SelectionOps.h"

using namespace dovetail;
using namespace dovetail::importer;

/// The product of extents, or an error.
static llvm::FailureOr<int64_t> countAll(OnnxNode &node, llvm::ArrayRef<int64_t> shape) {
  if (auto number = countElements(shape))
    return *number;
  return node.invalid("the result is too large");
}

/// Indices that do not count from the end: negative ones are out of range.
static mlir::Value asUnsigned(OnnxNode &node, mlir::Value indices) {
  return node.cast(indices, node.getBuilder().getIntegerType(64, /*isSigned=*/false));
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

static OperatorImport gatherND("GatherND", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0), indices = node.getInput(1);
  int64_t batchDims = node.getInt("batch_dims", 0), rank = node.getRank(input), indexRank = node.getRank(indices);
  if (batchDims < 0 || batchDims >= std::min(rank, indexRank))
    return node.invalid("'batch_dims' is " + llvm::Twine(batchDims) + ", which is out of range");
  llvm::ArrayRef<int64_t> shape = node.getShape(input), indexShape = node.getShape(indices);
  int64_t depth = indexShape.back();
  if (depth < 1 || batchDims + depth > rank)
    return node.invalid("tuples of " + llvm::Twine(depth) + " indices do not fit behind 'batch_dims' " +
                        llvm::Twine(batchDims));
  if (mlir::ElementsAttr constant = node.getConstant(indices))
    if (auto given = readInts(constant))
      for (auto [position, index] : llvm::enumerate(*given))
        if (int64_t extent = shape[batchDims + position % depth]; index < -extent || index >= extent)
          return node.invalid("index " + llvm::Twine(index) + " is outside of extent " + llvm::Twine(extent));
  // A list of single indices is what Gather takes.
  if (depth == 1 && batchDims == 0)
    return node.setResult(node.create<GatherOp>(input, node.reshape(indices, indexShape.drop_back()), 0));
  return node.setResult(node.create<GatherNDOp>(input, indices, batchDims));
});

static OperatorImport reverseSequence("ReverseSequence", [](OnnxNode &node) -> llvm::LogicalResult {
  if (failed(node.requireRank(0, 2)))
    return llvm::failure();
  mlir::Value value = node.getInput(0), lengths = node.getInput(1);
  int64_t batchAxis = node.getInt("batch_axis", 1), timeAxis = node.getInt("time_axis", 0);
  if (std::min(batchAxis, timeAxis) != 0 || std::max(batchAxis, timeAxis) != 1)
    return node.invalid("'batch_axis' and 'time_axis' must be 0 and 1, or 1 and 0");
  int64_t batch = node.getShape(value)[batchAxis], extent = node.getShape(value)[timeAxis];
  if (node.getShape(lengths) != llvm::ArrayRef<int64_t>(batch))
    return node.invalid("'sequence_lens' must have one entry for each of " + llvm::Twine(batch) + " batches");
  if (mlir::ElementsAttr constant = node.getConstant(lengths))
    if (auto given = readInts(constant))
      for (int64_t length : *given)
        if (length < 0 || length > extent)
          return node.invalid("'sequence_lens' has the entry " + llvm::Twine(length) + " where there are " +
                              llvm::Twine(extent) + " steps");
  if (node.getType(value).getNumElements() == 0)
    return node.setResult(value);
  auto exchanged = llvm::to_vector(llvm::seq<int64_t>(0, node.getRank(value)));
  if (timeAxis == 0)
    std::swap(exchanged[0], exchanged[1]);
  // In a sequence, what is as far from its end as the element is from its beginning.
  mlir::Value step = node.count(0, extent), length = node.reshape(lengths, {batch, 1});
  mlir::Value last = node.create<SubOp>(length, node.scalarLike(length, 1));
  mlir::Value isReversed = node.create<LessOp>(step, length);
  mlir::Value source = node.create<SelectOp>(isReversed, node.create<SubOp>(last, step), step);
  value = node.create<GatherNDOp>(node.transpose(value, exchanged), node.reshape(source, {batch, extent, 1}), 1);
  return node.setResult(value ? node.transpose(value, exchanged) : value);
});

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

static OperatorImport tensorScatter("TensorScatter", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value cache = node.getInput(0), update = node.getInput(1);
  llvm::SmallVector<int64_t> shape(node.getShape(cache)), updateShape(node.getShape(update));
  auto axis = node.normalizeAxis(node.getInt("axis", -2), shape.size());
  if (failed(axis))
    return llvm::failure();
  llvm::StringRef mode = node.getString("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return node.invalid("'mode' is '" + mode + "', which is neither linear nor circular");
  if (*axis == 0)
    return node.invalid("'axis' is dimension 0, the batch; give another dimension");
  if (updateShape.size() != shape.size())
    return node.invalid("'update' is not of the rank of the cache");
  int64_t extent = shape[*axis], steps = updateShape[*axis];
  for (auto [dim, own, other] : llvm::enumerate(shape, updateShape))
    if (static_cast<int64_t>(dim) == *axis ? other > own : other != own)
      return node.invalid("'update' does not fit the cache in dimension " + llvm::Twine(dim));
  // At the beginning, if nothing else is said.
  if (!node.hasInput(2)) {
    if (node.getCount(cache, *axis) != node.getCount(update, *axis))
      return node.unsupported(importer::describeBounded(node.getCount(update, *axis) ? "operand 1" : "operand 0", *axis,
                                                        node.getCount(update, *axis) ? steps : extent,
                                                        "'write_indices' does not say which rows it takes"));
    llvm::SmallVector<int64_t> starts(shape.size(), 0), ones(shape.size(), 1), rest(shape);
    starts[*axis] = steps;
    rest[*axis] -= steps;
    mlir::Value kept = node.slice(cache, starts, rest, ones);
    if (rest[*axis] == 0 || steps == 0)
      return node.setResult(steps == 0 ? cache : update);
    return node.setResult(node.create<ConcatOp>(mlir::ValueRange({update, kept}), *axis));
  }
  mlir::Value starts = node.getInput(2);
  if (node.getShape(starts) != llvm::ArrayRef<int64_t>(shape[0]))
    return node.invalid("'write_indices' must have one entry for each of " + llvm::Twine(shape[0]) + " batches");
  if (steps == 0)
    return node.setResult(cache);
  mlir::Value positions = node.create<AddOp>(node.reshape(starts, {shape[0], 1}), node.count(0, steps));
  if (mode == "circular")
    positions = node.create<ModOp>(positions, node.scalarLike(positions, extent));
  return node.setResult(node.create<TensorScatterOp>(cache, asUnsigned(node, positions), update, *axis));
});

/// The extents of the tensor that indices of maxima are positions in, if it is known and has room in one of `extents`.
static std::optional<llvm::SmallVector<int64_t>> findPooled(mlir::Value indices, llvm::ArrayRef<int64_t> extents) {
  auto pool = indices.getDefiningOp<MaxPoolIndicesOp>();
  if (!pool || pool.getColumnMajor())
    return std::nullopt;
  llvm::ArrayRef<int64_t> shape = pool.getInput().getType().getShape();
  if (shape.size() != extents.size() || shape.take_front(2) != extents.take_front(2))
    return std::nullopt;
  for (auto [extent, room] : llvm::zip_equal(shape, extents))
    if (extent > room)
      return std::nullopt;
  return llvm::SmallVector<int64_t>(shape);
}

/// The coordinates [n, rank] of the row-major `positions` [n, 1], of an unsigned type, in a tensor of `shape`. A
/// position that is out of range is itself the first coordinate, so that it is what is reported. Code that makes a
/// position of coordinates again has divisions no more.
static mlir::Value findCoordinates(OnnxNode &node, mlir::Value positions, llvm::ArrayRef<int64_t> shape) {
  mlir::Value first = node.create<DivOp>(positions, node.scalarLike(positions, *countElements(shape.drop_front())));
  mlir::Value isInside = node.create<LessOp>(positions, node.scalarLike(positions, *countElements(shape)));
  llvm::SmallVector<mlir::Value> columns = {node.create<SelectOp>(isInside, first, positions)};
  for (unsigned dim = 1; dim < shape.size(); ++dim)
    columns.push_back(getCoordinate(node, positions, *countElements(shape.drop_front(dim + 1)), shape[dim]));
  return node.create<ConcatOp>(mlir::ValueRange(columns), /*axis=*/int64_t(1));
}

static OperatorImport maxUnpool("MaxUnpool", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0), indices = node.getInput(1);
  if (failed(node.requireRank(0, 3)))
    return llvm::failure();
  if (node.getShape(input) != node.getShape(indices))
    return node.invalid("'I' does not have the shape of 'X'");
  auto window = readWindows(node, input);
  if (failed(window))
    return llvm::failure();
  llvm::ArrayRef<int64_t> shape = node.getShape(input);
  llvm::SmallVector<int64_t> unpooled(shape.take_front(2));
  for (unsigned dim = 0; dim < window->getRank(); ++dim) {
    if (shape[dim + 2] > kMaxWindowNumber)
      return node.invalid("dimension " + llvm::Twine(dim + 2) + " is out of range");
    int64_t extent = (shape[dim + 2] - 1) * window->strides[dim] + window->kernel[dim] - window->padsLow[dim] -
                     window->padsHigh[dim];
    if (extent < 0)
      return node.invalid("'pads' leave nothing of spatial dimension " + llvm::Twine(dim));
    unpooled.push_back(extent);
  }
  llvm::SmallVector<int64_t> result(unpooled);
  if (node.hasInput(2)) {
    auto given = node.getConstantInts(2, "output_shape");
    if (failed(given))
      return llvm::failure();
    if (given->size() != result.size())
      return node.invalid("'output_shape' must have one entry for each dimension");
    result = *given;
  }
  // Indices are positions in the pooled tensor where that is known, else in the smallest one that there may have been.
  std::optional<llvm::SmallVector<int64_t>> pooled = findPooled(indices, result);
  llvm::SmallVector<int64_t> own = pooled ? *pooled : unpooled, low(result.size(), 0), high;
  for (auto [dim, extent, size] : llvm::enumerate(own, result)) {
    if (size < extent || size > kMaxWindowNumber)
      return node.invalid("'output_shape' has the entry " + llvm::Twine(size) + " where indices are of extent " +
                          llvm::Twine(extent));
    high.push_back(size - extent);
  }
  auto total = countAll(node, own), plane = countAll(node, llvm::ArrayRef<int64_t>(own).drop_front(2)),
       all = countAll(node, result);
  if (failed(total) || failed(plane) || failed(all))
    return llvm::failure();
  int64_t perPlane = *countElements(shape.drop_front(2)), planes = *countElements(shape.take_front(2));
  mlir::Value zero = node.scalarLike(input, 0), value;
  if (pooled) {
    // No index leaves its plane, so planes need not know each other.
    mlir::Value first = node.create<MulOp>(node.count(0, planes), node.reshape(node.constantInts(*plane), {}));
    mlir::Value within = node.create<SubOp>(node.reshape(indices, {shape[0], shape[1], perPlane}),
                                            node.reshape(first, {shape[0], shape[1], 1}));
    // A window of nothing but NaN has no maximum: what the pool has there goes to the first place.
    within = node.create<MaxOp>(within, node.scalarLike(within, 0));
    value = node.create<ScatterElementsOp>(node.broadcast(zero, {shape[0], shape[1], *plane}), asUnsigned(node, within),
                                           node.reshape(input, {shape[0], shape[1], perPlane}), 2, ReduceKindAttr());
    value = node.reshape(value, own);
  } else {
    int64_t size = node.getType(input).getNumElements();
    mlir::Value positions = asUnsigned(node, node.reshape(indices, {size, 1}));
    value = node.create<ScatterNDOp>(node.broadcast(zero, own), findCoordinates(node, positions, own),
                                     node.reshape(input, size), ReduceKindAttr());
    if (mlir::Operation *op = value ? value.getDefiningOp() : nullptr)
      op->setAttr(kPositionsAttrName, node.getBuilder().getI64IntegerAttr(*total));
  }
  if (result != own)
    value = node.create<PadOp>(value, OptionalOperand{zero}, low, high, PadMode::Constant);
  return node.setResult(value);
});

//===----------------------------------------------------------------------===//
// Col2Im
//===----------------------------------------------------------------------===//

static OperatorImport col2Im("Col2Im", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  auto sizes = node.getConstantInts(1, "image_shape"), block = node.getConstantInts(2, "block_shape");
  if (failed(sizes) || failed(block))
    return llvm::failure();
  size_t rank = sizes->size();
  auto read = [&](llvm::StringRef name, size_t length, int64_t defaultValue) {
    return node.hasAttr(name) ? node.getInts(name) : llvm::SmallVector<int64_t>(length, defaultValue);
  };
  llvm::SmallVector<int64_t> strides = read("strides", rank, 1), dilations = read("dilations", rank, 1),
                             pads = read("pads", 2 * rank, 0);
  if (node.getRank(input) != 3 || rank == 0 || block->size() != rank || strides.size() != rank ||
      dilations.size() != rank || pads.size() != 2 * rank)
    return node.invalid("the operand must be [N, C * elements of a block, blocks]; all else needs one entry for each "
                        "dimension of the image, 'pads' two");
  llvm::SmallVector<int64_t> grid;
  for (size_t dim = 0; dim < rank; ++dim) {
    for (int64_t number : {(*sizes)[dim], (*block)[dim], strides[dim], dilations[dim]})
      if (number < 1 || number > kMaxWindowNumber)
        return node.invalid("the extents of image and block, strides and dilations must be in 1 .. 2^30");
    for (int64_t pad : {pads[dim], pads[dim + rank]})
      if (pad < 0 || pad > kMaxWindowNumber)
        return node.invalid("'pads' has the entry " + llvm::Twine(pad) + ", which is out of range");
    int64_t room = (*sizes)[dim] + pads[dim] + pads[dim + rank] - ((*block)[dim] - 1) * dilations[dim] - 1;
    if (room < 0)
      return node.invalid("blocks are larger than the padded image in dimension " + llvm::Twine(dim));
    grid.push_back(room / strides[dim] + 1);
  }
  llvm::ArrayRef<int64_t> shape = node.getShape(input);
  auto blockSize = countAll(node, *block), places = countAll(node, grid);
  if (failed(blockSize) || failed(places))
    return llvm::failure();
  if (shape[1] % *blockSize != 0 || shape[2] != *places)
    return node.invalid("there are " + llvm::Twine(*blockSize) + " elements in a block and " + llvm::Twine(*places) +
                        " places, which the operand's shape does not fit");
  llvm::SmallVector<int64_t> apart{shape[0], shape[1] / *blockSize};
  llvm::append_range(apart, *block);
  llvm::append_range(apart, grid);
  llvm::ArrayRef<int64_t> allPads(pads);
  return node.setResult(node.create<Col2ImOp>(node.reshape(input, apart), *sizes, strides, dilations,
                                              allPads.take_front(rank), allPads.drop_front(rank)));
});

//===----------------------------------------------------------------------===//
// AffineGrid
//===----------------------------------------------------------------------===//

/// `extent` positions from -1 to 1: centres of as many parts or, if `alignCorners`, from end to end. A single one is in
/// the middle.
static llvm::SmallVector<double> getGridPositions(int64_t extent, bool alignCorners) {
  llvm::SmallVector<double> positions;
  for (int64_t i = 0; i < extent; ++i)
    positions.push_back(alignCorners ? (extent == 1 ? 0 : 2.0 * i / (extent - 1) - 1) : (2.0 * i + 1) / extent - 1);
  return positions;
}

static OperatorImport affineGrid("AffineGrid", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value theta = node.getInput(0);
  auto size = node.getConstantInts(1, "size");
  if (failed(size))
    return llvm::failure();
  llvm::ArrayRef<int64_t> shape = node.getShape(theta);
  int64_t rank = static_cast<int64_t>(size->size()) - 2;
  if ((rank != 2 && rank != 3) || shape != llvm::ArrayRef<int64_t>({(*size)[0], rank, rank + 1}))
    return node.invalid("'size' must be [N, C, H, W] or [N, C, D, H, W], and 'theta' [N, 2, 3] or [N, 3, 4]");
  if (node.getCount(theta, 0))
    return node.unsupported(
        importer::describeBounded("operand 0", 0, shape[0], "'size' gives it one that is constant"));
  llvm::SmallVector<int64_t> result{shape[0]};
  for (int64_t extent : llvm::drop_begin(*size, 2)) {
    if (extent < 0 || extent > kMaxWindowNumber)
      return node.invalid("'size' has the entry " + llvm::Twine(extent) + ", which is out of range");
    result.push_back(extent);
  }
  result.push_back(rank);
  if (failed(countAll(node, result)))
    return llvm::failure();
  mlir::Type elementType = node.getType(theta).getElementType();
  theta = node.widen(theta);
  // Column i belongs to the i-th of the last dimensions, from the end; the last column is added.
  auto getColumn = [&](int64_t column) {
    llvm::SmallVector<int64_t> apart(rank + 2, 1);
    apart.front() = shape[0];
    apart.back() = rank;
    return node.reshape(node.slice(theta, {0, 0, column}, {shape[0], rank, 1}, {1, 1, 1}), apart);
  };
  mlir::Value sum = getColumn(rank);
  for (int64_t column = 0; column < rank; ++column) {
    int64_t dim = rank - column;
    llvm::SmallVector<int64_t> along(rank + 2, 1);
    along[dim] = result[dim];
    auto type = mlir::RankedTensorType::get(along, node.getType(theta).getElementType());
    mlir::Value positions =
        node.constantFloats(type, getGridPositions(result[dim], node.getInt("align_corners", 0) != 0));
    sum = node.create<AddOp>(sum, node.create<MulOp>(getColumn(column), positions));
  }
  return node.setResult(node.cast(sum, elementType));
});
