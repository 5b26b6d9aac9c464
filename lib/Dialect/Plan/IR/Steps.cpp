//===- Steps.cpp - Steps of a program -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what steps read and write, and their verification.
//
//===----------------------------------------------------------------------===//

#include "StepChecks.h"

#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Plan/IR/AttentionCall.h"
#include "dovetail/Text/SourceName.h"
#include "mlir/Dialect/Traits.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;

StringRef plan::getStepName(Operation *step) {
  if (auto name = step->getAttrOfType<StringAttr>("step_name"))
    return name.getValue();
  return getNodeName(step->getLoc());
}

std::string plan::getStepSource(Operation *step) {
  SmallVector<NameLoc> nodes = getNodes(step->getLoc());
  if (llvm::all_of(nodes, [](NameLoc node) { return getSourceName(node).empty(); }))
    return "";
  // The part of its node that a step is, such as ` (interior)`.
  StringRef rest = getStepName(step);
  if (nodes.size() != 1 || !rest.consume_front(nodes.front().getName()))
    rest = {};
  std::string titles = llvm::join(llvm::map_range(nodes, [](NameLoc node) { return getNodeTitle(node); }), ", ");
  size_t room = text::maxSourceName - std::min<size_t>(rest.size(), text::maxSourceName / 2);
  return text::clean(text::clean(titles, room) + rest.str(), text::maxSourceName);
}

static ParseResult parseArray(OpAsmParser &parser, AsmParser::Delimiter delimiter, ArrayAttr &array,
                              function_ref<Attribute()> parseElement) {
  SmallVector<Attribute> parsed;
  if (parser.parseCommaSeparatedList(delimiter,
                                     [&] { return success(parsed.emplace_back(parseElement()) != nullptr); }))
    return failure();
  array = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

/// Parses loops as `[1, 8, 10 by <{"y" : 0, 5, 10}>, 16 until <[1], 0, 1, 0, 1, 0>]`.
static ParseResult parseLoops(OpAsmParser &parser, ArrayAttr &loops) {
  return parseArray(parser, AsmParser::Delimiter::Square, loops, [&]() -> Attribute {
    int64_t extent;
    if (parser.parseInteger(extent))
      return {};
    MLIRContext *context = parser.getContext();
    Attribute dim = DimShardingAttr::getUnsplit(context);
    // `DimShardingAttr::parse` wants the bracket that only a split loop has.
    if (succeeded(parser.parseOptionalKeyword("by")))
      if (!(dim = DimShardingAttr::parse(parser, {})))
        return {};
    Attribute end;
    if (succeeded(parser.parseOptionalKeyword("until")))
      if (!(end = EndAttr::parse(parser, {})))
        return {};
    return LoopAttr::get(context, extent, cast<DimShardingAttr>(dim), cast_or_null<EndAttr>(end));
  });
}

static void printLoops(OpAsmPrinter &printer, Operation *, ArrayAttr loops) {
  printer << "[";
  llvm::interleaveComma(loops.getAsRange<LoopAttr>(), printer.getStream(), [&](LoopAttr loop) {
    printer << loop.getExtent();
    if (loop.isSplit()) {
      printer << " by ";
      loop.getDim().print(printer);
    }
    if (EndAttr end = loop.getEnd()) {
      printer << " until ";
      end.print(printer);
    }
  });
  printer << "]";
}

/// Parses types as `(!a, !b)` or `()`.
static ParseResult parseTypes(OpAsmParser &parser, SmallVectorImpl<Type> &types) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                        [&] { return parser.parseType(types.emplace_back()); });
}

static void printTypes(OpAsmPrinter &printer, Operation *, TypeRange types) { printer << "(" << types << ")"; }

/// Parses orders of dimensions as `[0, 2, 1], [1, 0]`.
static ParseResult parseOrders(OpAsmParser &parser, ArrayAttr &orders) {
  return parseArray(parser, AsmParser::Delimiter::None, orders,
                    [&]() -> Attribute { return DenseI64ArrayAttr::parse(parser, Type()); });
}

static void printOrders(OpAsmPrinter &printer, Operation *, ArrayAttr orders) {
  llvm::interleaveComma(orders.getAsRange<DenseI64ArrayAttr>(), printer.getStream(),
                        [&](DenseI64ArrayAttr order) { order.print(printer); });
}

/// Parses accesses as `[(d0, d2), (d2, d1)]`.
static ParseResult parseAccesses(OpAsmParser &parser, ArrayAttr &accesses) {
  return parseArray(parser, AsmParser::Delimiter::Square, accesses, [&] { return parseAccess(parser); });
}

static void printAccesses(OpAsmPrinter &printer, Operation *, ArrayAttr accesses) {
  printer << "[";
  llvm::interleaveComma(accesses.getAsRange<AccessAttr>(), printer.getStream(),
                        [&](AccessAttr access) { printAccess(printer, access); });
  printer << "]";
}

#define GET_OP_CLASSES
#include "dovetail/Dialect/Plan/IR/PlanOps.cpp.inc"

LogicalResult plan::verifyWrites(StepOpInterface step) {
  for (Value write : step.getStepWrites())
    if (BufferOp buffer = getBufferOp(write); buffer && buffer.getKind() == BufferKind::Constant)
      return step->emitOpError("writes to a constant");
  return success();
}

/// Checks that ranks run parts of the loops.
template <typename OpT> static LogicalResult verifyLoops(OpT op) {
  for (auto [number, loop] : llvm::enumerate(op.getLoops().template getAsRange<LoopAttr>())) {
    if (loop.getDim().isInside(loop.getExtent()))
      continue;
    for (layout::Interval piece : loop.getDim().getIntervals())
      if (!layout::Interval{0, loop.getExtent()}.contains(piece))
        return op.emitOpError("runs piece ")
               << piece.str() << " of loop " << number << ", whose extent is " << loop.getExtent();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

SmallVector<Value> LaunchOp::getStepReads() { return SmallVector<Value>(getReads()); }
SmallVector<Value> LaunchOp::getStepWrites() { return SmallVector<Value>(getWrites()); }

LogicalResult LaunchOp::verify() {
  if (failed(verifyWrites(*this)))
    return failure();
  return verifyLoops(*this);
}

/// Checks that a value lies in memory as the kernel expects.
static LogicalResult verifyOperand(LaunchOp launch, const Twine &what, Value ref, Type expected, LayoutAttr layout) {
  if (!equalUpToSharding(getTensor(ref), expected))
    return launch.emitOpError() << what << " has type " << getTensor(ref) << ", but the kernel expects " << expected;
  BufferOp buffer = getBufferOp(ref);
  if (!buffer)
    return success();
  if (buffer.getFormat() != layout.getFormat())
    return launch.emitOpError() << what << " has format " << buffer.getFormat() << ", but the kernel expects "
                                << layout;
  LayoutAttr actual = LayoutAttr::getFor(buffer.getFormat(), buffer.getTensorType());
  for (auto [dim, extent] : llvm::enumerate(layout.getExtents()))
    if (extent != LayoutAttr::dynamic && extent != actual.getExtents()[dim])
      return launch.emitOpError() << what << " has layout " << actual << ", but the kernel expects " << layout;
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto program = (*this)->getParentOfType<ProgramOp>();
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(program, getKernelAttr());
  if (!kernel)
    return emitOpError() << getKernelAttr() << " is not a plan.kernel";
  if (getReads().size() != kernel.getArguments().size())
    return emitOpError("reads ") << getReads().size() << " values, but " << getKernelAttr() << " has "
                                 << kernel.getArguments().size() << " arguments";
  auto yielded = kernel.getYield().getValues();
  if (getWrites().size() != yielded.size())
    return emitOpError("writes ") << getWrites().size() << " values, but " << getKernelAttr() << " yields "
                                  << yielded.size();
  for (auto [number, read] : llvm::enumerate(getReads()))
    if (failed(verifyOperand(*this, "read " + Twine(number), read, kernel.getArguments()[number].getType(),
                             kernel.getLayout(number))))
      return failure();
  for (auto [number, write] : llvm::enumerate(getWrites()))
    if (failed(verifyOperand(*this, "write " + Twine(number), write, yielded[number].getType(),
                             kernel.getResultLayout(number))))
      return failure();
  SmallVector<int64_t> extents = kernel.getLoopExtents();
  auto loops = llvm::to_vector(getLoops().getAsRange<LoopAttr>());
  if (!llvm::equal(loops, extents, [](LoopAttr loop, int64_t extent) { return loop.getExtent() == extent; }))
    return emitOpError("lists loops that differ from the loops of ") << getKernelAttr() << ", [" << extents << "]";
  for (int64_t loop : kernel.getStaticLoops())
    if (loops[loop].isSplit() || loops[loop].getEnd())
      return emitOpError(loops[loop].isSplit() ? "splits loop " : "ends loop ")
             << loop << ", which " << getKernelAttr() << " declares static";
  // What accumulates along a loop begins anew at restarts only.
  if (auto root = yielded.front().getDefiningOp<DefinitionOpInterface>())
    if (std::optional<Scan> scan = root.getDefinition().scan)
      for (DimShardingAttr dim = loops[scan->loop].getDim(); unsigned i : llvm::seq(dim.getNumPieces()))
        if (layout::Interval piece = dim.getPiece(i);
            dim.isSplit() && !piece.empty() && !isBetweenRestarts(*scan, piece))
          return emitOpError("runs piece ")
                 << piece.str() << " of loop " << scan->loop << ", but the accumulation along it does "
                 << "not restart there";
  size_t checks = kernel.getIndexChecks().size(), named = getChecks() ? getChecks()->size() : 0;
  if (checks != named)
    return emitOpError("names the nodes of ")
           << named << " checks of indices, but " << getKernelAttr() << " has " << checks;
  return success();
}

//===----------------------------------------------------------------------===//
// Library calls
//===----------------------------------------------------------------------===//

/// Checks that post-operations and their tensors agree, and that these broadcast to the result.
template <typename OpT> static LogicalResult verifyPostOps(OpT op) {
  size_t needed = llvm::count_if(op.getPostOps().template getAsRange<PostOpAttr>(),
                                 [](PostOpAttr postOp) { return postOp.readsTensor(); });
  if (needed != op.getPostTensors().size())
    return op.emitOpError("has post-operations that read ")
           << needed << " tensors, but " << op.getPostTensors().size() << " are given";
  ArrayRef<int64_t> shape = getTensor(op.getOutput()).getShape();
  for (Value post : op.getPostTensors()) {
    SmallVector<int64_t> broadcast;
    if (!OpTrait::util::getBroadcastedShape(shape, getTensor(post).getShape(), broadcast) ||
        ArrayRef<int64_t>(broadcast) != shape)
      return op.emitOpError("has a post-operation tensor ")
             << getTensor(post) << " that does not broadcast to " << getTensor(op.getOutput());
  }
  return verifyWrites(op);
}

/// The dimensions of access `number`; none if there is no such access.
static ArrayRef<layout::AccessDim> getAccess(ArrayAttr reads, unsigned number) {
  if (number >= reads.size())
    return {};
  return cast<AccessAttr>(reads[number]).getDims().get();
}

/// Checks that the loops of a library call are the dimensions of its output, `numSums` sums and `numTaps` taps, and
/// that its operands have the extents that it goes through; where there are taps, dimensions of windows, from number 2
/// of the first operand on, may have others; operands that `mayBeLarger` are not looked at. `numTaps`: nothing if the
/// accesses are not what they are to be, `what`.
template <typename OpT>
static LogicalResult verifyCall(OpT op, StringRef what, unsigned numSums, std::optional<size_t> numTaps,
                                ArrayRef<Value> operands, bool mayBeLarger = false) {
  ArrayRef<int64_t> shape = getTensor(op.getOutput()).getShape();
  SmallVector<int64_t> extents = getExtents(op.getLoops());
  if (op.getReads().size() != operands.size())
    return op.emitOpError("has ") << operands.size() << " operands, but accesses of " << op.getReads().size();
  if (!numTaps)
    return op.emitOpError("reads its operands as no ") << what << " does";
  if (extents.size() != shape.size() + numSums + *numTaps ||
      ArrayRef<int64_t>(extents).take_front(shape.size()) != shape)
    return op.emitOpError("has loops [") << extents << "] that do not go through " << getTensor(op.getOutput());
  for (auto [number, loop] : llvm::enumerate(op.getLoops().template getAsRange<LoopAttr>()))
    if (loop.isSplit() && number + *numTaps >= extents.size())
      return op.emitOpError("splits loop ") << number << ", which is a tap";
  for (auto [number, operand] : llvm::enumerate(operands)) {
    RankedTensorType type = getTensor(operand);
    size_t firstWindow = *numTaps > 0 && number == 0 ? 2 : type.getRank();
    if (!mayBeLarger && !calls::fits(getAccess(op.getReads(), number), type.getShape(), extents, firstWindow))
      return op.emitOpError("reads operand ") << number << " as a tensor of other extents than " << type;
  }
  if (std::optional<DivisionAttr> division = op.getDivision();
      division && division->getLoop() >= static_cast<int64_t>(shape.size()))
    return op.emitOpError("divides loop ") << division->getLoop() << ", which is not a dimension of its output";
  return verifyLoops(op);
}

/// The taps of a form, if it is one.
template <typename FormT> static std::optional<size_t> countTaps(const std::optional<FormT> &form) {
  return form ? std::optional(form->windows.size()) : std::nullopt;
}

/// A pair of the same algorithm.
static constexpr std::pair<ConvolutionAlgorithm, calls::ConvolutionAlgorithm> kAlgorithms[] = {
    {ConvolutionAlgorithm::Library, calls::ConvolutionAlgorithm::Library},
    {ConvolutionAlgorithm::Winograd, calls::ConvolutionAlgorithm::Winograd},
    {ConvolutionAlgorithm::Gathered, calls::ConvolutionAlgorithm::Gathered}};

calls::ConvolutionAlgorithm plan::toCalls(ConvolutionAlgorithm algorithm) {
  return llvm::find_if(kAlgorithms, [&](const auto &each) { return each.first == algorithm; })->second;
}
ConvolutionAlgorithm plan::fromCalls(calls::ConvolutionAlgorithm algorithm) {
  return llvm::find_if(kAlgorithms, [&](const auto &each) { return each.second == algorithm; })->first;
}

std::optional<calls::ConvolutionForm> ConvolutionOp::getForm() {
  return calls::ConvolutionForm::find(getAccess(getReads(), 0), getAccess(getReads(), 1), getExtents(getLoops()));
}

std::optional<CallForm> ConvolutionOp::getCallForm() { return getForm(); }

SmallVector<Value> ConvolutionOp::getStepReads() {
  SmallVector<Value> reads = {getInput(), getWeights()};
  llvm::append_range(reads, getPostTensors());
  return reads;
}
SmallVector<Value> ConvolutionOp::getStepWrites() { return {getOutput()}; }
bool ConvolutionOp::takesScratch() { return true; }

LogicalResult ConvolutionOp::verify() {
  if (failed(verifyCall(*this, "convolution", /*numSums=*/1, countTaps(getForm()), {getInput(), getWeights()})))
    return failure();
  const calls::AlgorithmEntry *algorithm = calls::findAlgorithm(toCalls(getAlgorithm()));
  if (algorithm && (!algorithm->applies(*getForm()) || !getTensor(getOutput()).getElementType().isF32()))
    return emitOpError("is by algorithm '")
           << algorithm->name << "', but no convolution in f32 " << algorithm->condition;
  return verifyPostOps(*this);
}

std::optional<calls::ProductForm> plan::MatMulOp::getForm() {
  return calls::ProductForm::find(getAccess(getReads(), 0), getAccess(getReads(), 1), getExtents(getLoops()));
}

std::optional<CallForm> plan::MatMulOp::getCallForm() {
  std::optional<calls::ProductForm> form = getForm();
  return form ? std::optional<CallForm>(ProductCall{*form, static_cast<int64_t>(getRowDims())}) : std::nullopt;
}

calls::ContractionRoles plan::MatMulOp::getRoles() {
  return {getAccess(getReads(), 0), getAccess(getReads(), 1), getExtents(getLoops()),
          static_cast<size_t>(getTensor(getOutput()).getRank())};
}

SmallVector<Value> plan::MatMulOp::getStepReads() {
  SmallVector<Value> reads = {getA(), getB()};
  llvm::append_range(reads, getPostTensors());
  return reads;
}
SmallVector<Value> plan::MatMulOp::getStepWrites() { return {getOutput()}; }
bool plan::MatMulOp::takesScratch() { return true; }

LogicalResult plan::MatMulOp::verify() {
  std::optional<calls::ProductForm> form = getForm();
  std::optional<size_t> numTaps = form ? std::optional<size_t>(0) : std::nullopt;
  if (failed(verifyCall(*this, "matrix product", /*numSums=*/1, numTaps, {getA(), getB()})))
    return failure();
  RankedTensorType b = getTensor(getB()), output = getTensor(getOutput());
  int64_t rows = getRowDims();
  if (rows < 1 || rows >= output.getRank() || (rows > 1 && form->transposesA))
    return emitOpError("cannot have rows of ") << rows << " dimensions";
  for (int64_t dim = 3; dim < rows + 2 && dim <= b.getRank(); ++dim)
    if (b.getDimSize(b.getRank() - dim) != 1)
      return emitOpError("has rows of ") << rows << " dimensions, on which " << b << " depends";
  return verifyPostOps(*this);
}

std::optional<calls::PoolForm> plan::PoolOp::getForm() {
  return calls::PoolForm::find(getAccess(getReads(), 0), getExtents(getLoops()));
}

std::optional<CallForm> plan::PoolOp::getCallForm() {
  std::optional<calls::PoolForm> form = getForm();
  return form ? std::optional<CallForm>(PoolCall{*std::move(form), getKind()}) : std::nullopt;
}

SmallVector<Value> plan::PoolOp::getStepReads() { return {getInput()}; }
SmallVector<Value> plan::PoolOp::getStepWrites() { return {getOutput()}; }
bool plan::PoolOp::takesScratch() { return true; }

LogicalResult plan::PoolOp::verify() {
  if (getKind() == PoolKind::Lp)
    return emitOpError("cannot be of kind lp: libraries compute maximum and average only");
  if (failed(verifyCall(*this, "pool", /*numSums=*/0, countTaps(getForm()), {getInput()})))
    return failure();
  return verifyWrites(*this);
}

std::optional<CallForm> plan::AttentionOp::getCallForm() {
  if (!hasForm())
    return std::nullopt;
  return AttentionCall{getHeadColumns(*this), getScale().convertToFloat(), getFill().convertToFloat(), getParts()};
}

SmallVector<Value> plan::AttentionOp::getStepReads() {
  SmallVector<Value> reads = {getQuery(), getKey(), getValue()};
  if (getMask())
    reads.push_back(getMask());
  return reads;
}
SmallVector<Value> plan::AttentionOp::getStepWrites() { return {getOutput()}; }
bool plan::AttentionOp::takesScratch() { return true; }

LogicalResult plan::AttentionOp::verify() {
  std::optional<size_t> numTaps = hasForm() ? std::optional<size_t>(1) : std::nullopt;
  if (failed(verifyCall(*this, "attention", /*numSums=*/1, numTaps, getStepReads(), /*mayBeLarger=*/true)) ||
      failed(verifyReads(*this)))
    return failure();
  Type elementType = getTensor(getOutput()).getElementType();
  if (getMask() && !getTensor(getMask()).getElementType().isInteger(1) &&
      getTensor(getMask()).getElementType() != elementType)
    return emitOpError("has a mask ") << getTensor(getMask()) << ", which is neither of i1 nor of " << elementType;
  return verifyWrites(*this);
}

std::optional<calls::TransformForm> plan::TransformOp::getForm() {
  return calls::TransformForm::find(getAccess(getReads(), 0), getExtents(getLoops()));
}

std::optional<CallForm> plan::TransformOp::getCallForm() {
  std::optional<calls::TransformForm> form = getForm();
  return form ? std::optional<CallForm>(TransformCall{*form, getInverse()}) : std::nullopt;
}

SmallVector<Value> plan::TransformOp::getStepReads() { return {getInput()}; }
SmallVector<Value> plan::TransformOp::getStepWrites() { return {getOutput()}; }
bool plan::TransformOp::takesScratch() { return true; }

LogicalResult plan::TransformOp::verify() {
  std::optional<calls::TransformForm> form = getForm();
  std::optional<size_t> numTaps = form ? std::optional<size_t>(0) : std::nullopt;
  if (failed(verifyCall(*this, "transform", /*numSums=*/2, numTaps, {getInput()})))
    return failure();
  Type type = getTensor(getOutput()).getElementType();
  if (getTensor(getInput()).getElementType() != type || (!type.isF32() && !type.isF64()))
    return emitOpError("transforms ") << getTensor(getInput()) << " to " << getTensor(getOutput())
                                      << ": of neither f32 nor f64";
  if ((form->readsReal && getInverse()) || (form->writesReal && !getInverse()))
    return emitOpError(getInverse() ? "is inverse, but reads real numbers" : "writes real numbers, but is not inverse");
  size_t rank = getTensor(getOutput()).getRank();
  for (auto [number, loop] : llvm::enumerate(getLoops().getAsRange<LoopAttr>()))
    if (loop.isSplit() && (number == form->axis || number + 1 >= rank))
      return emitOpError("splits loop ") << number << ", which it transforms";
  return verifyWrites(*this);
}
