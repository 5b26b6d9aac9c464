//===- GraphBuilder.cpp - Builds graphs -----------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the building and folding of operations.
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"

#include "dovetail/Dialect/Dovetail/Evaluation/Evaluate.h"
#include "dovetail/Dialect/Dovetail/Ops/NarrowOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace dovetail;
using namespace dovetail::importer;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

mlir::ElementsAttr GraphBuilder::getConstant(mlir::Value value) {
  if (auto op = value ? value.getDefiningOp<ConstantOp>() : ConstantOp())
    return op.getValue();
  return {};
}

llvm::FailureOr<int64_t> GraphBuilder::normalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return invalid("axis " + llvm::Twine(axis) + " is outside of [-" + llvm::Twine(rank) + ", " + llvm::Twine(rank) +
                   ")");
  return axis < 0 ? axis + rank : axis;
}

llvm::FailureOr<llvm::SmallVector<int64_t>> GraphBuilder::normalizeAxes(llvm::ArrayRef<int64_t> axes, int64_t rank) {
  llvm::SmallVector<int64_t> normalized;
  llvm::SmallBitVector seen(rank);
  for (int64_t axis : axes) {
    auto position = normalizeAxis(axis, rank);
    if (failed(position))
      return llvm::failure();
    if (seen.test(*position))
      return invalid("axis " + llvm::Twine(axis) + " is named twice");
    seen.set(*position);
    normalized.push_back(*position);
  }
  return normalized;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// Which bound is too large for operands of an elementwise operation, and which one they allow. Empty if no bound is to
/// blame.
static std::string describeBoundConflict(mlir::Operation *op, const Bounds &bounds) {
  if (!op->hasTrait<dovetail::Elementwise>())
    return "";
  for (mlir::Value bounded : op->getOperands())
    for (auto [dim, count] : llvm::enumerate(bounds.get(bounded))) {
      auto length = llvm::dyn_cast_if_present<mlir::BlockArgument>(count);
      auto name = length ? llvm::dyn_cast<mlir::NameLoc>(length.getLoc()) : mlir::NameLoc();
      if (!name)
        continue;
      // Dimensions are counted from the last one on where operands broadcast.
      auto shape = llvm::cast<mlir::RankedTensorType>(bounded.getType()).getShape();
      size_t fromEnd = shape.size() - dim;
      for (mlir::Value other : op->getOperands()) {
        auto otherShape = llvm::cast<mlir::RankedTensorType>(other.getType()).getShape();
        int64_t bound = shape[dim], extent = otherShape.size() < fromEnd ? 1 : otherShape[otherShape.size() - fromEnd];
        if (extent == 1 || extent >= bound)
          continue;
        std::string length = name.getName().str();
        llvm::ArrayRef<mlir::Value> otherCounts = bounds.get(other);
        bool isBounded = !otherCounts.empty() && otherCounts[otherShape.size() - fromEnd];
        std::string option = length.find(':') != std::string::npos ? "--shape with" : "--dim " + length + "=";
        return "with --bound " + length + "=" + std::to_string(bound) + " dimension " + std::to_string(dim) +
               " of an operand has extent " + std::to_string(bound) + ", but another operand has " +
               std::to_string(extent) + " there; pass " +
               (isBounded ? "--bound " + length + "=" + std::to_string(extent) + " or less"
                          : option + (option.back() == '=' ? "" : " extent ") + std::to_string(extent) +
                                " instead, which is the only extent that fits");
      }
    }
  return "";
}

mlir::Value GraphBuilder::finish(mlir::OperationState &state) {
  mlir::Operation *op = context.builder.create(state);
  std::string message;
  bool isValid = [&] {
    // The dialect's message is repeated with the node's name.
    mlir::ScopedDiagnosticHandler handler(op->getContext(), [&](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
        return llvm::failure();
      message += (message.empty() ? "" : "; ") + diagnostic.str();
      return llvm::success();
    });
    if (auto inferrable = llvm::dyn_cast<mlir::InferTypeOpInterface>(op)) {
      llvm::SmallVector<mlir::Type> types;
      if (failed(inferrable.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                             op->getRawDictionaryAttrs(), op->getPropertiesStorage(), op->getRegions(),
                                             types)))
        return false;
      op->getResult(0).setType(types.front());
    }
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(op->getResult(0).getType());
    if (type && type.hasStaticShape() && !countElements(type.getShape())) {
      message = "the result is too large";
      return false;
    }
    return succeeded(mlir::verify(op));
  }();
  if (!isValid) {
    std::string ofBound = describeBoundConflict(op, context.bounds);
    op->erase();
    if (ofBound.empty())
      (void)invalid(message);
    else
      context.reporter.error(ImportError::Usage, context.loc)
          << "node '" << context.name << "' (" << context.kind << "): " << ofBound;
    return {};
  }
  return fold(op);
}

/// False for windows so large that evaluating one element would take long. No shape is computed that way.
static bool isQuickToEvaluate(mlir::Operation *op) {
  constexpr int64_t maxWindow = 4096;
  auto definitionOp = llvm::dyn_cast<DefinitionOpInterface>(op);
  if (!definitionOp)
    return true;
  llvm::SmallVector<int64_t> taps;
  for (const Loop &loop : definitionOp.getDefinition().loops)
    if (loop.kind == LoopKind::Tap)
      taps.push_back(loop.extent);
  auto count = countElements(taps);
  return count && *count <= maxWindow;
}

mlir::Value GraphBuilder::fold(mlir::Operation *op, unsigned number) {
  mlir::Value result = op->getResult(number);
  if (getType(result).getNumElements() == 0) {
    auto empty = mlir::DenseElementsAttr::get(getType(result), llvm::ArrayRef<mlir::Attribute>());
    // Other extents of the result may vary.
    bool isBounded =
        llvm::any_of(op->getOperands(), [&](mlir::Value value) { return context.bounds.isBounded(value); });
    Counts counts;
    if (isBounded && !context.bounds.infer(op))
      counts.assign(getCounts(result).begin(), getCounts(result).end());
    for (mlir::Value value : op->getResults())
      context.bounds.forget(value);
    op->erase();
    mlir::Value folded = constant(empty);
    if (llvm::any_of(counts, [](mlir::Value count) { return static_cast<bool>(count); }))
      context.bounds.set(folded, std::move(counts));
    return folded;
  }
  if (!isSmallConstant(getType(result)) || !isQuickToEvaluate(op))
    return result;
  llvm::SmallVector<mlir::Attribute> operands;
  for (mlir::Value operand : op->getOperands()) {
    mlir::ElementsAttr constant = getConstant(operand);
    if (!constant || !isSmallConstant(getType(operand)))
      return result;
    operands.push_back(constant);
  }
  auto value = evaluate(op, operands, getType(result).getNumElements());
  if (failed(value))
    return result;
  mlir::ElementsAttr folded = (*value)[number];
  op->erase();
  return constant(folded);
}

mlir::Value GraphBuilder::constant(mlir::ElementsAttr value) {
  if (!value)
    return {};
  return ConstantOp::create(context.builder, context.loc, value.getShapedType(), value);
}

mlir::Value GraphBuilder::constantInts(llvm::ArrayRef<int64_t> values) {
  auto type = mlir::RankedTensorType::get(values.size(), context.builder.getI64Type());
  return constant(mlir::DenseElementsAttr::get(type, values));
}

mlir::Value GraphBuilder::constantFloats(mlir::RankedTensorType type, llvm::ArrayRef<double> values) {
  auto bytes = [](const auto &elements) {
    return llvm::ArrayRef<char>(reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(elements[0]));
  };
  if (type.getElementType().isF64())
    return constant(makeConstant(type, bytes(values), nullptr, context.name));
  llvm::SmallVector<float> floats(values.begin(), values.end());
  return constant(makeConstant(type, bytes(floats), nullptr, context.name));
}

mlir::Value GraphBuilder::scalarLike(mlir::Value like, double number) {
  if (!like)
    return {};
  return splat(mlir::RankedTensorType::get({}, getType(like).getElementType()), number);
}

mlir::Value GraphBuilder::splat(mlir::RankedTensorType type, double number) {
  mlir::Type elementType = type.getElementType();
  mlir::Attribute element;
  if (llvm::isa<mlir::FloatType>(elementType))
    element = mlir::FloatAttr::get(elementType, number);
  else
    element = mlir::IntegerAttr::get(elementType,
                                     llvm::APInt(elementType.getIntOrFloatBitWidth(), static_cast<int64_t>(number),
                                                 /*isSigned=*/true, /*implicitTrunc=*/true));
  return constant(mlir::DenseElementsAttr::get(type, element));
}

mlir::Value GraphBuilder::count(int64_t start, int64_t size) {
  mlir::OpBuilder &builder = context.builder;
  return createAs<RangeOp>(mlir::RankedTensorType::get(size, builder.getI64Type()), builder.getI64IntegerAttr(start),
                           builder.getI64IntegerAttr(1));
}

mlir::Value GraphBuilder::reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape) {
  if (!value || getShape(value) == shape)
    return value;
  if (mlir::ElementsAttr old = getConstant(value))
    if (mlir::ElementsAttr reshaped = reshapeConstant(old, shape))
      return constant(reshaped);
  return createAs<ReshapeOp>(getType(value).clone(shape), value);
}

mlir::Value GraphBuilder::transpose(mlir::Value value, llvm::ArrayRef<int64_t> permutation) {
  if (llvm::is_sorted(permutation))
    return value;
  return create<TransposeOp>(value, permutation);
}

mlir::Value GraphBuilder::broadcast(mlir::Value value, llvm::ArrayRef<int64_t> shape) {
  if (!value || getShape(value) == shape)
    return value;
  return createAs<BroadcastOp>(getType(value).clone(shape), value);
}

mlir::Value GraphBuilder::slice(mlir::Value value, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
                                llvm::ArrayRef<int64_t> steps) {
  if (!value || (getShape(value) == sizes && llvm::all_of(steps, [](int64_t step) { return step > 0; })))
    return value;
  return create<SliceOp>(value, starts, sizes, steps);
}

mlir::Value GraphBuilder::stack(llvm::ArrayRef<mlir::Value> values, int64_t axis) {
  llvm::SmallVector<mlir::Value> entries;
  for (mlir::Value value : values) {
    if (!value)
      return {};
    llvm::SmallVector<int64_t> shape(getShape(value));
    shape.insert(shape.begin() + axis, 1);
    entries.push_back(reshape(value, shape));
  }
  return entries.size() == 1 ? entries.front() : create<ConcatOp>(mlir::ValueRange(entries), axis);
}

mlir::Value GraphBuilder::cast(mlir::Value value, mlir::Type elementType) {
  if (!value || getType(value).getElementType() == elementType)
    return value;
  if (isNarrow(elementType))
    return narrow(value, elementType, /*saturate=*/true);
  if (isNarrow(getType(value).getElementType()))
    return cast(create<WidenOp>(value), elementType);
  return create<CastOp>(value, elementType);
}

mlir::Value GraphBuilder::narrow(mlir::Value value, mlir::Type elementType, bool saturate, llvm::StringRef roundMode) {
  if (!value || getType(value).getElementType() == elementType)
    return value;
  mlir::Type from = getType(value).getElementType(), between = getWideType(elementType);
  // f32 lacks digits of these numbers, which matter at ties.
  if (llvm::isa<mlir::FloatType>(elementType) && !isNarrow(from) && from.getIntOrFloatBitWidth() > 16 && !from.isF32())
    between = getBuilder().getF64Type();
  return create<NarrowOp>(cast(value, between), elementType, saturate, roundMode);
}

mlir::Value GraphBuilder::widen(mlir::Value value) {
  if (!value)
    return value;
  mlir::Type type = getType(value).getElementType();
  return mlir::isa<mlir::FloatType>(type) && type.getIntOrFloatBitWidth() == 16 ? cast(value, getBuilder().getF32Type())
                                                                                : value;
}

mlir::Value GraphBuilder::perChannel(mlir::Value vector, int64_t rank) {
  llvm::SmallVector<int64_t> shape(rank - 1, 1);
  if (vector)
    shape[0] = getType(vector).getNumElements();
  return reshape(vector, shape);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

llvm::LogicalResult GraphBuilder::missing(llvm::StringRef what) {
  return context.reporter.error(ImportError::File, context.loc)
         << "node '" << context.name << "' (" << context.kind << "): its result depends on the data of '" << what
         << "', which are in a file that is missing; put it beside the model";
}

llvm::LogicalResult GraphBuilder::invalid(const llvm::Twine &message) {
  auto diagnostic = context.reporter.error(ImportError::InvalidModel, context.loc);
  diagnostic << "node '" << context.name << "' (" << context.kind << ")";
  if (std::string types = describeOperands(); !types.empty())
    diagnostic << " on " << types;
  return diagnostic << ": " << message;
}

llvm::LogicalResult GraphBuilder::unsupported(const llvm::Twine &reason, const llvm::Twine &remedy) {
  obstacle = Obstacle{reason.str(), remedy.str()};
  return llvm::failure();
}

Obstacle GraphBuilder::describeNotConstant(const llvm::Twine &what) {
  return {
      (what + " is not constant, even after folding").str(),
      "export the model with it as a constant; where it follows from shapes, with shapes that --dim or --shape fix"};
}
