//===- Shape.cpp - Import of operators about shapes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that change shapes alone, or compute with them, and constants.
//
//===----------------------------------------------------------------------===//

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

//===----------------------------------------------------------------------===//
// Other extents
//===----------------------------------------------------------------------===//

/// Reports that the elements of the operand do not fit `shape`, or builds the reshape.
static llvm::LogicalResult setReshaped(OnnxNode &node, llvm::ArrayRef<int64_t> shape) {
  mlir::Value input = node.getInput(0);
  auto count = countElements(shape);
  if (!count || *count != node.getType(input).getNumElements())
    return node.invalid("the operand has " + llvm::Twine(node.getType(input).getNumElements()) +
                        " elements, which the new shape does not hold");
  return node.setResult(node.reshape(input, shape));
}

/// That a shape with these entries is that of the result in every run: where there is a count, it is asked for, and
/// where one is asked for, it is. The entry that is -1 follows from the others.
static llvm::LogicalResult checkReshaped(OnnxNode &node, llvm::ArrayRef<Extent> entries) {
  mlir::Value result = node.getResults().front().value;
  if (failed(node.inferBounds(result)))
    return llvm::failure();
  llvm::ArrayRef<mlir::Value> counts = node.getCounts(result);
  for (auto [dim, entry] : llvm::enumerate(entries)) {
    mlir::Value count = counts.empty() ? mlir::Value() : counts[dim];
    if (entry.count != count && entry.number != -1)
      return node.unsupported(importer::describeBounded(
          "the result", dim, node.getShape(result)[dim],
          "'shape' says " + (entry.count ? llvm::Twine("another one") : llvm::Twine(entry.number))));
  }
  return llvm::success();
}

static OperatorImport reshape("Reshape", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  auto target = node.getExtents(1, "shape");
  if (failed(target))
    return llvm::failure();
  llvm::ArrayRef<int64_t> old = node.getShape(input);
  bool keepsZero = node.getInt("allowzero", 0) != 0;
  llvm::SmallVector<int64_t> shape, others;
  std::optional<size_t> open;
  for (auto [i, entry] : llvm::enumerate(*target)) {
    int64_t extent = entry.number;
    if (extent < -1 || (extent == -1 && open))
      return node.invalid("'shape' has more than one -1, or a smaller entry");
    if (extent == 0 && !keepsZero) {
      if (i >= old.size())
        return node.invalid("entry " + llvm::Twine(i) +
                            " of 'shape' copies a dimension that the operand does not have");
      extent = old[i];
      (*target)[i] = {extent, node.getCount(input, i)};
    }
    if (extent == -1)
      open = i;
    else
      others.push_back(extent);
    shape.push_back(extent);
  }
  if (open) {
    auto known = countElements(others);
    int64_t count = node.getType(input).getNumElements();
    if (!known || *known == 0 || count % *known != 0)
      return node.invalid("the extent of the dimension given as -1 does not follow from the operand's " +
                          llvm::Twine(count) + " elements");
    shape[*open] = count / *known;
  }
  if (failed(setReshaped(node, shape)))
    return llvm::failure();
  return checkReshaped(node, *target);
});

static OperatorImport flatten("Flatten", [](OnnxNode &node) -> llvm::LogicalResult {
  llvm::ArrayRef<int64_t> shape = node.getShape(node.getInput(0));
  int64_t rank = shape.size(), axis = node.getInt("axis", 1);
  // Unlike elsewhere, the rank itself is an axis too.
  if (axis < -rank || axis > rank)
    return node.invalid("axis " + llvm::Twine(axis) + " is outside of [-" + llvm::Twine(rank) + ", " +
                        llvm::Twine(rank) + "]");
  axis = axis < 0 ? axis + rank : axis;
  return setReshaped(node, {*countElements(shape.take_front(axis)), *countElements(shape.drop_front(axis))});
});

static OperatorImport squeeze("Squeeze", [](OnnxNode &node) -> llvm::LogicalResult {
  llvm::ArrayRef<int64_t> shape = node.getShape(node.getInput(0));
  auto given = node.getIntsAttrOrInput("axes", 1, 13);
  if (failed(given))
    return llvm::failure();
  llvm::SmallVector<int64_t> axes;
  if (*given) {
    auto normalized = node.normalizeAxes(**given, shape.size());
    if (failed(normalized))
      return llvm::failure();
    axes = *normalized;
  }
  if (!*given && !node.getCounts(node.getInput(0)).empty())
    return node.unsupported(
        node.describeBounded("operand 0", node.getInput(0), "without 'axes' it is dropped where that is 1"));
  llvm::SmallVector<int64_t> result;
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    bool isNamed = llvm::is_contained(axes, static_cast<int64_t>(dim));
    if (isNamed && extent != 1)
      return node.invalid("dimension " + llvm::Twine(dim) + " has extent " + llvm::Twine(extent) + ", not 1");
    if (*given ? !isNamed : extent != 1)
      result.push_back(extent);
  }
  // Of at most one element, that which must be there is looked up, so that runs without it end with an error.
  mlir::Value input = node.getInput(0);
  Counts counts(node.getCounts(input));
  llvm::sort(axes, std::greater<>());
  for (int64_t axis : axes) {
    if (mlir::Value count = input ? node.getCount(input, axis) : mlir::Value())
      input = node.gatherBounded(input, node.scalarLike(count, 0), axis);
    if (!counts.empty())
      counts.erase(counts.begin() + axis);
  }
  mlir::Value squeezed = node.reshape(input, result);
  return node.setResult(counts.empty() ? squeezed : node.state(squeezed, counts));
});

static OperatorImport unsqueeze("Unsqueeze", [](OnnxNode &node) -> llvm::LogicalResult {
  llvm::ArrayRef<int64_t> shape = node.getShape(node.getInput(0));
  auto given = node.getIntsAttrOrInput("axes", 1, 13);
  if (failed(given))
    return llvm::failure();
  if (!*given)
    return node.invalid("'axes' is missing");
  size_t rank = shape.size() + (*given)->size();
  auto axes = node.normalizeAxes(**given, rank);
  if (failed(axes))
    return llvm::failure();
  llvm::SmallVector<int64_t> result(shape);
  Counts counts(node.getCounts(node.getInput(0)));
  bool isBounded = !counts.empty();
  llvm::sort(*axes);
  for (int64_t axis : *axes) {
    result.insert(result.begin() + axis, 1);
    if (isBounded)
      counts.insert(counts.begin() + axis, mlir::Value());
  }
  mlir::Value unsqueezed = node.reshape(node.getInput(0), result);
  return node.setResult(isBounded ? node.state(unsqueezed, counts) : unsqueezed);
});

static llvm::LogicalResult importIdentity(OnnxNode &node) { return node.setBinding(0, node.getOperand(0)); }
static OperatorImport identity("Identity", importIdentity, /*takesSequences=*/true);

/// True if the operand is there and known to be 0.
static bool isZero(OnnxNode &node, unsigned index) {
  mlir::ElementsAttr constant = node.hasInput(index) ? OnnxNode::getConstant(node.getInput(index)) : nullptr;
  auto values = constant ? readFloats(constant) : std::nullopt;
  return values && values->size() == 1 && values->front() == 0;
}

static OperatorImport dropout("Dropout", [](OnnxNode &node) -> llvm::LogicalResult {
  if (node.hasInput(2) && !isZero(node, 1)) {
    auto isTraining = node.getConstantInts(2, "training_mode");
    if (failed(isTraining))
      return llvm::failure();
    if (isTraining->size() != 1)
      return node.invalid("'training_mode' is not a single boolean");
    if (isTraining->front() != 0)
      return node.unsupported("training_mode with a ratio above 0 is not supported", "export the model for inference");
  }
  // Nothing is dropped, which the mask says.
  mlir::Type maskElement = node.getType(node.getInput(0)).getElementType();
  if (node.getOpset() >= 10)
    maskElement = node.getBuilder().getI1Type();
  if (node.isResultUsed(1) &&
      failed(node.setResult(1, node.splat(node.getType(node.getInput(0)).clone(maskElement), 1))))
    return llvm::failure();
  return importIdentity(node);
});

//===----------------------------------------------------------------------===//
// Shapes as values
//===----------------------------------------------------------------------===//

static OperatorImport shapeOf("Shape", [](OnnxNode &node) {
  llvm::ArrayRef<int64_t> shape = node.getShape(node.getInput(0));
  llvm::ArrayRef<mlir::Value> counts = node.getCounts(node.getInput(0));
  int64_t rank = shape.size();
  auto position = [&](llvm::StringRef name, int64_t defaultValue) {
    int64_t value = node.getInt(name, defaultValue);
    return std::clamp<int64_t>(value < 0 ? value + rank : value, 0, rank);
  };
  int64_t start = position("start", 0), end = position("end", rank);
  if (counts.empty() || start >= end)
    return node.setResult(
        node.stateUnbounded(node.constantInts(shape.slice(start, std::max<int64_t>(end - start, 0)))));
  llvm::SmallVector<mlir::Value> extents;
  for (int64_t dim = start; dim < end; ++dim)
    extents.push_back(counts[dim] ? node.reshape(counts[dim], 1) : node.constantInts(shape[dim]));
  mlir::Value result =
      extents.size() == 1 ? extents.front() : node.create<ConcatOp>(mlir::ValueRange(extents), /*axis=*/int64_t(0));
  return node.setResult(node.stateUnbounded(result));
});

static OperatorImport sizeOf("Size", [](OnnxNode &node) {
  return node.setResult(node.reshape(node.constantInts(node.getType(node.getInput(0)).getNumElements()), {}));
});

static OperatorImport trilu("Trilu", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  if (failed(node.requireRank(0, 2)))
    return llvm::failure();
  int64_t diagonal = 0;
  if (node.hasInput(1)) {
    auto k = node.getConstantInts(1, "k");
    if (failed(k))
      return llvm::failure();
    if (k->size() != 1)
      return node.invalid("'k' is not a single number");
    diagonal =
        std::clamp<int64_t>(k->front(), std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  }
  // Kept are the columns from row + diagonal on, or up to it.
  int64_t height = node.getShape(input).drop_back().back(), width = node.getShape(input).back();
  int64_t rank = node.getRank(input);
  mlir::Value border = node.reshape(node.count(diagonal, height), {height, 1}), column = node.count(0, width);
  border = node.bound(border, {node.getCount(input, rank - 2), {}});
  column = node.bound(column, {node.getCount(input, rank - 1)});
  mlir::Value isKept = node.getInt("upper", 1) != 0 ? node.create<GreaterOrEqualOp>(column, border)
                                                    : node.create<LessOrEqualOp>(column, border);
  return node.setResult(node.create<SelectOp>(isKept, input, node.scalarLike(input, 0)));
});

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static OperatorImport constant("Constant", [](OnnxNode &node) -> llvm::LogicalResult {
  if (node.getProto().attribute_size() != 1)
    return node.invalid("a constant needs exactly one attribute");
  const onnx::AttributeProto &attribute = node.getProto().attribute(0);
  mlir::Builder &builder = node.getBuilder();
  if (attribute.name() == "value")
    return node.setResult(node.constantTensor(attribute.t()));
  if (attribute.name() == "value_int")
    return node.setResult(node.reshape(node.constantInts(attribute.i()), {}));
  if (attribute.name() == "value_ints")
    return node.setResult(node.constantInts(node.getInts("value_ints")));
  if (attribute.name() == "value_float")
    return node.setResult(node.constantFloats(mlir::RankedTensorType::get({}, builder.getF32Type()), attribute.f()));
  if (attribute.name() == "value_floats") {
    llvm::SmallVector<double> values(attribute.floats().begin(), attribute.floats().end());
    auto type = mlir::RankedTensorType::get(values.size(), builder.getF32Type());
    return node.setResult(node.constantFloats(type, values));
  }
  return node.unsupported("constants given as '" + attribute.name() + "' are not supported");
});

static OperatorImport constantOfShape("ConstantOfShape", [](OnnxNode &node) -> llvm::LogicalResult {
  auto extents = node.getExtents(0, "input");
  if (failed(extents))
    return llvm::failure();
  auto shape = llvm::map_to_vector(*extents, [](const Extent &extent) { return extent.number; });
  auto counts = llvm::map_to_vector(*extents, [](const Extent &extent) { return extent.count; });
  if (!countElements(shape))
    return node.invalid("the shape is out of range");
  const onnx::AttributeProto *value = node.getAttr("value");
  if (!value)
    return node.setResult(
        node.bound(node.splat(mlir::RankedTensorType::get(shape, node.getBuilder().getF32Type()), 0), counts));
  mlir::Value element = node.constantTensor(value->t());
  if (!element)
    return llvm::failure();
  if (node.getType(element).getNumElements() != 1)
    return node.invalid("'value' is not a single element");
  auto dense = llvm::cast<mlir::DenseElementsAttr>(node.getConstant(element));
  return node.setResult(node.bound(node.constant(mlir::DenseElementsAttr::get(node.getType(element).clone(shape),
                                                                              dense.getSplatValue<mlir::Attribute>())),
                                   counts));
});

/// The number in a constant of one element.
static llvm::FailureOr<mlir::TypedAttr> readScalar(OnnxNode &node, unsigned index, llvm::StringRef what) {
  mlir::ElementsAttr constant = node.getConstant(node.getInput(index));
  if (!constant)
    return node.unsupported(OnnxNode::describeNotConstant("'" + what + "'"));
  auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(constant);
  if (!dense || dense.getNumElements() != 1)
    return node.invalid("'" + what + "' is not a single number");
  return llvm::cast<mlir::TypedAttr>(dense.getSplatValue<mlir::Attribute>());
}

/// A range of integers whose length varies from run to run: `start`, `limit` or both are extents.
static llvm::LogicalResult importBoundedRange(OnnxNode &node) {
  auto start = node.getSignedExtent(0, "start"), limit = node.getSignedExtent(1, "limit");
  auto delta = node.getConstantInts(2, "delta");
  if (failed(start) || failed(limit) || failed(delta))
    return llvm::failure();
  mlir::Type type = node.getType(node.getInput(0)).getElementType();
  if (delta->size() != 1 || delta->front() == 0)
    return node.invalid("'start', 'limit' and 'delta' are not single numbers, or 'delta' is 0");
  if (node.getType(node.getInput(1)).getElementType() != type ||
      node.getType(node.getInput(2)).getElementType() != type)
    return node.invalid("'start', 'limit' and 'delta' differ in type");
  int64_t step = delta->front();
  auto distance = step > 0 ? node.subtractExtents(*limit, *start) : node.subtractExtents(*start, *limit);
  Extent length = distance ? node.divideExtent(*distance, std::abs(step)) : Extent();
  if (!distance || length.number > std::numeric_limits<int32_t>::max())
    return node.invalid("the range is too long");
  mlir::Builder &builder = node.getBuilder();
  bool varies = start->extent.count || start->exact;
  mlir::Value range = node.createAs<RangeOp>(mlir::RankedTensorType::get(length.number, type),
                                             builder.getIntegerAttr(type, varies ? 0 : start->extent.number),
                                             builder.getIntegerAttr(type, step));
  if (varies)
    range = node.create<AddOp>(range, node.reshape(node.getInput(0), {}));
  return node.setResult(node.bound(range, {length.count}));
}

static OperatorImport range("Range", [](OnnxNode &node) -> llvm::LogicalResult {
  auto isConstant = [&](unsigned index) { return OnnxNode::getConstant(node.getInput(index)) != nullptr; };
  if (node.getType(node.getInput(0)).getElementType().isSignlessInteger() && (!isConstant(0) || !isConstant(1)))
    return importBoundedRange(node);
  auto start = readScalar(node, 0, "start"), delta = readScalar(node, 2, "delta");
  auto limit = readScalar(node, 1, "limit");
  if (failed(start) || failed(limit) || failed(delta))
    return llvm::failure();
  mlir::Type type = start->getType();
  if (limit->getType() != type || delta->getType() != type)
    return node.invalid("'start', 'limit' and 'delta' differ in type");
  double count;
  if (auto floatStart = llvm::dyn_cast<mlir::FloatAttr>(*start)) {
    double step = llvm::cast<mlir::FloatAttr>(*delta).getValueAsDouble();
    if (step == 0)
      return node.invalid("'delta' is 0");
    count = std::ceil((llvm::cast<mlir::FloatAttr>(*limit).getValueAsDouble() - floatStart.getValueAsDouble()) / step);
  } else {
    // 128 bits, so that differences do not overflow.
    auto read = [](mlir::TypedAttr value) {
      return static_cast<__int128>(llvm::cast<mlir::IntegerAttr>(value).getValue().getSExtValue());
    };
    __int128 step = read(*delta), distance = read(*limit) - read(*start);
    if (step == 0)
      return node.invalid("'delta' is 0");
    count = (distance > 0) == (step > 0) ? static_cast<double>((distance - (step > 0 ? 1 : -1)) / step + 1) : 0;
    if (distance == 0)
      count = 0;
  }
  // Also false for NaN.
  if (!(count <= std::numeric_limits<int32_t>::max()))
    return node.invalid("the range is too long");
  auto size = static_cast<int64_t>(std::max(count, 0.0));
  return node.setResult(node.createAs<RangeOp>(mlir::RankedTensorType::get(size, type), *start, *delta));
});
