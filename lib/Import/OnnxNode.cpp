//===- OnnxNode.cpp - A node while it is imported -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the reading of nodes and the building and folding of operations.
//
//===----------------------------------------------------------------------===//

#include "OnnxNode.h"

#include "dovetail/Dialect/Dovetail/Evaluation/Evaluate.h"
#include "dovetail/Dialect/Dovetail/Ops/NarrowOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallSet.h"

using namespace dovetail;
using namespace dovetail::importer;

//===----------------------------------------------------------------------===//
// Operands and attributes
//===----------------------------------------------------------------------===//

llvm::LogicalResult OnnxNode::requireRank(unsigned index, int64_t minRank) {
  int64_t rank = getRank(inputs[index]);
  if (rank >= minRank)
    return llvm::success();
  return invalid("input '" + llvm::Twine(proto.input(index)) + "' has rank " + llvm::Twine(rank) + ", but at least " +
                 llvm::Twine(minRank) + " is needed");
}

llvm::FailureOr<std::vector<mlir::Value>> OnnxNode::getSequence(unsigned index) {
  Binding operand = getOperand(index);
  if (operand.kind != Binding::Sequence)
    return invalid("its operand " + llvm::Twine(index) + " is not a sequence");
  return *operand.elements;
}

mlir::ElementsAttr OnnxNode::getConstant(mlir::Value value) {
  if (auto op = value ? value.getDefiningOp<ConstantOp>() : ConstantOp())
    return op.getValue();
  return {};
}

llvm::FailureOr<llvm::SmallVector<int64_t>> OnnxNode::getConstantInts(unsigned index, llvm::StringRef what) {
  mlir::ElementsAttr constant = getConstant(getInput(index));
  if (!constant)
    return unsupported(describeNotConstant("'" + what + "'"));
  if (isDataMissing(constant))
    return missing(what);
  if (auto values = readInts(constant))
    return std::move(*values);
  return invalid("'" + what + "' is not a tensor of integers");
}

llvm::FailureOr<llvm::SmallVector<double>> OnnxNode::getConstantFloats(unsigned index, llvm::StringRef what) {
  mlir::ElementsAttr constant = getConstant(getInput(index));
  if (!constant)
    return unsupported(describeNotConstant("'" + what + "'"));
  if (isDataMissing(constant))
    return missing(what);
  if (auto values = readFloats(constant))
    return std::move(*values);
  return unsupported("'" + what + "' is not a tensor of f32 or f64");
}

const onnx::AttributeProto *OnnxNode::getAttr(llvm::StringRef name) const {
  for (const onnx::AttributeProto &attribute : proto.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

int64_t OnnxNode::getInt(llvm::StringRef name, int64_t defaultValue) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  return attribute ? attribute->i() : defaultValue;
}

double OnnxNode::getFloat(llvm::StringRef name, float defaultValue) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  return attribute ? attribute->f() : defaultValue;
}

llvm::StringRef OnnxNode::getString(llvm::StringRef name, llvm::StringRef defaultValue) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  return attribute ? llvm::StringRef(attribute->s()) : defaultValue;
}

llvm::SmallVector<int64_t> OnnxNode::getInts(llvm::StringRef name) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  if (!attribute)
    return {};
  return llvm::SmallVector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}

llvm::FailureOr<int64_t> OnnxNode::normalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return invalid("axis " + llvm::Twine(axis) + " is outside of [-" + llvm::Twine(rank) + ", " + llvm::Twine(rank) +
                   ")");
  return axis < 0 ? axis + rank : axis;
}

llvm::FailureOr<llvm::SmallVector<int64_t>> OnnxNode::normalizeAxes(llvm::ArrayRef<int64_t> axes, int64_t rank) {
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

llvm::FailureOr<std::optional<llvm::SmallVector<int64_t>>>
OnnxNode::getIntsAttrOrInput(llvm::StringRef name, unsigned index, int64_t inputSince) {
  using Result = std::optional<llvm::SmallVector<int64_t>>;
  if (getOpset() < inputSince)
    return hasAttr(name) ? Result(getInts(name)) : Result();
  if (!hasInput(index))
    return Result();
  auto values = getConstantInts(index, name);
  if (failed(values))
    return llvm::failure();
  return Result(std::move(*values));
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

mlir::Value OnnxNode::finish(mlir::OperationState &state) {
  mlir::Operation *op = context.builder.create(state);
  std::string message;
  bool isValid = [&] {
    // What the dialect says is repeated with the node's name.
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
          << "node '" << context.name << "' (" << proto.op_type() << "): " << ofBound;
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

mlir::Value OnnxNode::fold(mlir::Operation *op, unsigned number) {
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

mlir::Value OnnxNode::constant(mlir::ElementsAttr value) {
  if (!value)
    return {};
  return ConstantOp::create(context.builder, context.loc, value.getShapedType(), value);
}

mlir::Value OnnxNode::constantInts(llvm::ArrayRef<int64_t> values) {
  auto type = mlir::RankedTensorType::get(values.size(), context.builder.getI64Type());
  return constant(mlir::DenseElementsAttr::get(type, values));
}

mlir::Value OnnxNode::constantFloats(mlir::RankedTensorType type, llvm::ArrayRef<double> values) {
  auto bytes = [](const auto &elements) {
    return llvm::ArrayRef<char>(reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(elements[0]));
  };
  if (type.getElementType().isF64())
    return constant(makeConstant(type, bytes(values), nullptr, context.name));
  llvm::SmallVector<float> floats(values.begin(), values.end());
  return constant(makeConstant(type, bytes(floats), nullptr, context.name));
}

mlir::Value OnnxNode::scalarLike(mlir::Value like, double number) {
  if (!like)
    return {};
  return splat(mlir::RankedTensorType::get({}, getType(like).getElementType()), number);
}

mlir::Value OnnxNode::splat(mlir::RankedTensorType type, double number) {
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

mlir::Value OnnxNode::count(int64_t start, int64_t size) {
  mlir::OpBuilder &builder = context.builder;
  return createAs<RangeOp>(mlir::RankedTensorType::get(size, builder.getI64Type()), builder.getI64IntegerAttr(start),
                           builder.getI64IntegerAttr(1));
}

mlir::Value OnnxNode::reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape) {
  if (!value || getShape(value) == shape)
    return value;
  if (mlir::ElementsAttr old = getConstant(value))
    if (mlir::ElementsAttr reshaped = reshapeConstant(old, shape))
      return constant(reshaped);
  return createAs<ReshapeOp>(getType(value).clone(shape), value);
}

mlir::Value OnnxNode::transpose(mlir::Value value, llvm::ArrayRef<int64_t> permutation) {
  if (llvm::is_sorted(permutation))
    return value;
  return create<TransposeOp>(value, permutation);
}

mlir::Value OnnxNode::broadcast(mlir::Value value, llvm::ArrayRef<int64_t> shape) {
  if (!value || getShape(value) == shape)
    return value;
  return createAs<BroadcastOp>(getType(value).clone(shape), value);
}

mlir::Value OnnxNode::slice(mlir::Value value, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
                            llvm::ArrayRef<int64_t> steps) {
  if (!value || (getShape(value) == sizes && llvm::all_of(steps, [](int64_t step) { return step > 0; })))
    return value;
  return create<SliceOp>(value, starts, sizes, steps);
}

mlir::Value OnnxNode::stack(llvm::ArrayRef<mlir::Value> values, int64_t axis) {
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

mlir::Value OnnxNode::cast(mlir::Value value, mlir::Type elementType) {
  if (!value || getType(value).getElementType() == elementType)
    return value;
  if (isNarrow(elementType))
    return narrow(value, elementType, /*saturate=*/true);
  if (isNarrow(getType(value).getElementType()))
    return cast(create<WidenOp>(value), elementType);
  return create<CastOp>(value, elementType);
}

mlir::Value OnnxNode::narrow(mlir::Value value, mlir::Type elementType, bool saturate, llvm::StringRef roundMode) {
  if (!value || getType(value).getElementType() == elementType)
    return value;
  mlir::Type from = getType(value).getElementType(), between = getWideType(elementType);
  // f32 lacks digits of these numbers, which matter at ties.
  if (llvm::isa<mlir::FloatType>(elementType) && !isNarrow(from) && from.getIntOrFloatBitWidth() > 16 && !from.isF32())
    between = getBuilder().getF64Type();
  return create<NarrowOp>(cast(value, between), elementType, saturate, roundMode);
}

mlir::Value OnnxNode::widen(mlir::Value value) {
  if (!value)
    return value;
  mlir::Type type = getType(value).getElementType();
  return mlir::isa<mlir::FloatType>(type) && type.getIntOrFloatBitWidth() == 16 ? cast(value, getBuilder().getF32Type())
                                                                                : value;
}

mlir::Value OnnxNode::perChannel(mlir::Value vector, int64_t rank) {
  llvm::SmallVector<int64_t> shape(rank - 1, 1);
  if (vector)
    shape[0] = getType(vector).getNumElements();
  return reshape(vector, shape);
}

mlir::Value OnnxNode::constantTensor(const onnx::TensorProto &tensor) {
  return constant(context.tensors.read(tensor, "the tensor of node '" + context.name + "'", context.owner));
}

//===----------------------------------------------------------------------===//
// Results and errors
//===----------------------------------------------------------------------===//

llvm::LogicalResult OnnxNode::setResult(unsigned index, mlir::Value value) {
  if (!value)
    return llvm::failure();
  if (!requirements.empty() && failed(inferBounds(value)))
    return llvm::failure();
  for (const auto &[form, least] : requirements)
    value = context.bounds.require(context.builder, context.loc, value, form, least);
  return setBinding(index, Binding::known(value));
}

llvm::LogicalResult OnnxNode::setBinding(unsigned index, Binding binding) {
  if (index < results.size())
    results[index] = std::move(binding);
  return llvm::success();
}

bool OnnxNode::isResultUsed(unsigned index) const {
  return index < results.size() && !proto.output(index).empty() && context.isUsed(proto.output(index));
}

llvm::LogicalResult OnnxNode::missing(llvm::StringRef what) {
  return context.reporter.error(ImportError::File, context.loc)
         << "node '" << context.name << "' (" << proto.op_type() << "): its result depends on the data of '" << what
         << "', which are in a file that is missing; put it beside the model";
}

llvm::LogicalResult OnnxNode::invalid(const llvm::Twine &message) {
  auto diagnostic = context.reporter.error(ImportError::InvalidModel, context.loc);
  diagnostic << "node '" << context.name << "' (" << proto.op_type() << ")";
  if (!operands.empty()) {
    std::string types;
    llvm::raw_string_ostream os(types);
    llvm::interleaveComma(operands, os, [&](const Binding &operand) {
      // As diagnostics write types.
      llvm::StringRef quote = operand.kind == Binding::Known ? "'" : "";
      os << quote << operand << quote;
    });
    diagnostic << " on " << types;
  }
  return diagnostic << ": " << message;
}

llvm::LogicalResult OnnxNode::unsupported(const llvm::Twine &reason, const llvm::Twine &remedy) {
  obstacle = Obstacle{reason.str(), remedy.str()};
  return llvm::failure();
}

Obstacle OnnxNode::describeNotConstant(const llvm::Twine &what) {
  return {
      (what + " is not constant, even after folding").str(),
      "export the model with it as a constant; where it follows from shapes, with shapes that --dim or --shape fix"};
}

Obstacle OnnxNode::describeUnsupportedElements(int32_t type) {
  if (type == onnx::TensorProto::STRING)
    return {"strings are not supported, as programs compute with numbers",
            "process strings before the model, or after it"};
  return {"elements of type " + describeElementType(type) + " are not supported",
          "export the model with floats of at most 64 bits, integers of 2 to 64 bits, or booleans"};
}

//===----------------------------------------------------------------------===//
// Operators that the dialect has
//===----------------------------------------------------------------------===//

/// The attributes that `attribute` may become: integers have several types.
static llvm::SmallVector<mlir::Attribute> convertAttribute(const onnx::AttributeProto &attribute,
                                                           mlir::Builder &builder) {
  switch (attribute.type()) {
  case onnx::AttributeProto::INT:
    return {builder.getI64IntegerAttr(attribute.i()),
            builder.getIntegerAttr(builder.getIntegerType(64, /*isSigned=*/true), attribute.i()),
            builder.getBoolAttr(attribute.i() != 0)};
  case onnx::AttributeProto::FLOAT:
    return {builder.getF32FloatAttr(attribute.f())};
  case onnx::AttributeProto::STRING:
    return {builder.getStringAttr(attribute.s())};
  case onnx::AttributeProto::INTS:
    return {builder.getDenseI64ArrayAttr(llvm::SmallVector<int64_t>(attribute.ints().begin(), attribute.ints().end()))};
  case onnx::AttributeProto::FLOATS:
    return {
        builder.getDenseF32ArrayAttr(llvm::SmallVector<float>(attribute.floats().begin(), attribute.floats().end()))};
  default:
    return {};
  }
}

llvm::LogicalResult dovetail::importer::importOneToOne(OnnxNode &node, mlir::RegisteredOperationName name) {
  mlir::OperationState state(node.getLoc(), name);
  for (auto [index, input] : llvm::enumerate(node.getInputs())) {
    if (!input)
      return node.unsupported("it has no operand " + std::to_string(index));
    state.operands.push_back(input);
  }
  for (const onnx::AttributeProto &attribute : node.getProto().attribute()) {
    if (!llvm::is_contained(name.getAttributeNames(), attribute.name()))
      return node.unsupported("attribute '" + attribute.name() + "' is not known");
    auto candidates = convertAttribute(attribute, node.getBuilder());
    auto *fitting = llvm::find_if(candidates, [&](mlir::Attribute candidate) {
      mlir::NamedAttrList list;
      list.set(attribute.name(), candidate);
      // That one candidate does not fit is no error.
      mlir::ScopedDiagnosticHandler silence(name.getContext(), [](mlir::Diagnostic &) { return llvm::success(); });
      return succeeded(name.verifyInherentAttrs(list, [&] { return mlir::emitError(node.getLoc()); }));
    });
    if (fitting == candidates.end())
      return node.unsupported("attribute '" + attribute.name() + "' has a value that is not supported");
    state.addAttribute(attribute.name(), *fitting);
  }
  state.addTypes(node.getBuilder().getNoneType());
  return node.setResult(node.finish(state));
}
