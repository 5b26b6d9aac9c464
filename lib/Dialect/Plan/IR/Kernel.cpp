//===- Kernel.cpp - Kernels of a plan -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines kernel: assembly, verification and its loops.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/Positions.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

static ParseResult parseLayouts(OpAsmParser &parser, ArrayAttr &layouts) {
  SmallVector<Attribute> parsed;
  auto parseLayout = [&]() -> ParseResult {
    auto layout = dyn_cast_if_present<LayoutAttr>(LayoutAttr::parse(parser, {}));
    parsed.push_back(layout);
    return success(static_cast<bool>(layout));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseLayout))
    return failure();
  layouts = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

static void printLayouts(OpAsmPrinter &printer, ArrayAttr layouts) {
  printer << "[";
  llvm::interleaveComma(layouts, printer.getStream(),
                        [&](Attribute layout) { cast<LayoutAttr>(layout).print(printer); });
  printer << "]";
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  ArrayAttr layouts, resultLayouts;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren, /*allowType=*/true) ||
      parser.parseKeyword("layouts") || parseLayouts(parser, layouts) || parser.parseArrow() ||
      parseLayouts(parser, resultLayouts) || parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  result.addAttribute(getLayoutsAttrName(result.name), layouts);
  result.addAttribute(getResultLayoutsAttrName(result.name), resultLayouts);
  return parser.parseRegion(*result.addRegion(), arguments);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << "(";
  llvm::interleaveComma(getArguments(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") layouts ";
  printLayouts(printer, getLayouts());
  printer << " -> ";
  printLayouts(printer, getResultLayouts());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getSymNameAttrName(), getLayoutsAttrName(), getResultLayoutsAttrName()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

YieldOp KernelOp::getYield() { return cast<YieldOp>(getBlock()->getTerminator()); }

ArrayRef<int64_t> KernelOp::getShape() {
  return cast<RankedTensorType>(getYield().getValues().front().getType()).getShape();
}

/// The reduction loops of an operation of a kernel's body: those beyond the dimensions of its result.
static SmallVector<Loop> getReductionLoops(Operation &op) {
  auto partitionable = dyn_cast<DefinitionOpInterface>(op);
  if (!partitionable)
    return {};
  SmallVector<Loop> loops = partitionable.getRelation().loops;
  loops.erase(loops.begin(), loops.begin() + cast<RankedTensorType>(op.getResult(0).getType()).getRank());
  return loops;
}

SmallVector<Loop> KernelOp::getLoops() {
  SmallVector<Loop> loops;
  for (int64_t extent : getShape())
    loops.push_back({extent});
  for (Operation &op : getBlock()->without_terminator())
    llvm::append_range(loops, getReductionLoops(op));
  return loops;
}

SmallVector<int64_t> KernelOp::getLoopExtents() { return dovetail::getExtents(getLoops()); }

unsigned KernelOp::getFirstReductionLoop(Operation *op) {
  unsigned first = getShape().size();
  for (Operation &each : getBlock()->without_terminator()) {
    if (&each == op)
      break;
    first += getReductionLoops(each).size();
  }
  return first;
}

SmallVector<IndexCheck> KernelOp::getIndexChecks() {
  SmallVector<IndexCheck> checks;
  for (Operation &op : getBlock()->without_terminator()) {
    auto partitionable = dyn_cast<DefinitionOpInterface>(op);
    if (!partitionable || !op.hasAttr(kCheckIndicesAttrName))
      continue;
    Definition definition = partitionable.getDefinition();
    for (const DataIndex &index : definition.getDataIndices()) {
      Value indices = op.getOperand(definition.reads[index.read].operand);
      // Positions are checked by nobody.
      if (isa<FloatType>(getElementTypeOrSelf(indices.getType())))
        continue;
      // The dimension that is indexed is written, or accessed at the lookup's iteration.
      unsigned indexed = index.loop;
      for (const Access &access : definition.reads)
        for (auto [dim, accessed] : llvm::enumerate(access.dims))
          if (definition.loops[index.loop].isLookup() && accessed.index.asLoop() == static_cast<int>(index.loop))
            indexed = dim;
      auto positions = op.getAttrOfType<IntegerAttr>(kPositionsAttrName);
      int64_t extent = positions ? positions.getInt() : definition.loops[index.loop].extent;
      checks.push_back({&op, index.loop, extent, indexed, isUnsignedElement(indices.getType()), std::nullopt});
      if (auto argument = dyn_cast<BlockArgument>(indices))
        checks.back().argument = argument.getArgNumber();
    }
  }
  return checks;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

RankedTensorType PartsOp::getTypeOfParts(RankedTensorType reduction, int64_t dim, int64_t count) {
  Type element = reduction.getElementType();
  if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32)
    element = Float32Type::get(element.getContext());
  SmallVector<int64_t> shape(reduction.getShape());
  shape[dim] = count;
  return RankedTensorType::get(shape, element);
}

Definition PartsOp::getDefinition() {
  Definition definition = Definition::over(getResult().getType());
  definition.loops[getDim()].kind = LoopKind::Whole;
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (unsigned dim = 0; dim < definition.resultRank; ++dim)
    dims.push_back(dim == getDim() ? layout::IndexExpr::unknown(0) : Definition::at(dim));
  return definition;
}

/// For targets that divide nothing: the first part is all of it.
SmallVector<Value> PartsOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  Type type = ElementBuilder::scalarType(getResult().getType().getElementType());
  auto widen = [&](Value value) {
    return value.getType() == type ? value : builder.convertFloat(value, cast<FloatType>(type));
  };
  Value isFirst = builder.compareI(arith::CmpIPredicate::eq, body.getLoop(getDim()), builder.index(0));
  auto readAll = [&] { return widen(body.read(0, builder.index(0))); };
  return {builder.ifElse(isFirst, type, readAll, [&] {
    auto reduction = getReduction().getDefiningOp<DefinitionOpInterface>();
    return widen(reduction.emitInit(builder)[cast<OpResult>(getReduction()).getResultNumber()]);
  })};
}

LogicalResult PartsOp::verify() {
  auto type = cast<RankedTensorType>(getReduction().getType());
  auto reduction = getReduction().getDefiningOp<DefinitionOpInterface>();
  if (!reduction || !reduction.isReduction())
    return emitOpError("divides a value that is not a reduction");
  if (static_cast<int64_t>(getDim()) < 0 || static_cast<int64_t>(getDim()) >= type.getRank() ||
      type.getDimSize(getDim()) != 1)
    return emitOpError("numbers parts by dimension ")
           << getDim() << " of " << type << ", which does not have extent 1 there";
  if (getResult().getType().getRank() != type.getRank() || getCount() < 1 ||
      getResult().getType() != getTypeOfParts(type, getDim(), getCount()))
    return emitOpError("cannot divide ") << type << " into parts of type " << getResult().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Checks that `layout` describes a tensor of `type`.
static LogicalResult verifyLayout(KernelOp kernel, const Twine &what, LayoutAttr layout, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return kernel.emitOpError() << what << " has type " << type << ", but kernels work on tensors of static shape";
  if (failed(verifyExtents(kernel, what, tensor)))
    return failure();
  if (tensor.getEncoding())
    return kernel.emitOpError() << what << " has a sharding; kernels are the same for all ranks";
  if (layout.getRank() != tensor.getRank())
    return kernel.emitOpError() << what << " of type " << type << " has a layout of " << layout.getRank()
                                << " dimensions";
  for (auto [dim, extent] : llvm::enumerate(layout.getExtents()))
    if (extent > tensor.getDimSize(dim))
      return kernel.emitOpError() << what << " of type " << type << " has a layout of extent " << extent
                                  << " in dimension " << dim;
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  auto yield = dyn_cast<YieldOp>(getBlock()->getTerminator());
  if (!yield)
    return emitOpError("does not end with plan.yield");
  if (yield.getValues().empty())
    return emitOpError("yields nothing");
  if (getLayouts().size() != getArguments().size())
    return emitOpError("has ") << getArguments().size() << " arguments, but " << getLayouts().size() << " layouts";
  if (getResultLayouts().size() != yield.getValues().size())
    return emitOpError("yields ") << yield.getValues().size() << " values, but has " << getResultLayouts().size()
                                  << " result layouts";
  for (BlockArgument argument : getArguments())
    if (failed(verifyLayout(*this, "argument " + Twine(argument.getArgNumber()), getLayout(argument.getArgNumber()),
                            argument.getType())))
      return failure();
  for (auto [number, value] : llvm::enumerate(yield.getValues())) {
    if (failed(verifyLayout(*this, "result " + Twine(number), getResultLayout(number), value.getType())))
      return failure();
    if (cast<RankedTensorType>(value.getType()).getShape() != getShape())
      return emitOpError("yields ") << value.getType() << " and " << yield.getValues().front().getType()
                                    << ", but all results of a kernel have one shape";
  }
  for (Operation &op : getBlock()->without_terminator()) {
    if (!isa<DefinitionOpInterface, ConstantOp>(op))
      return op.emitOpError("cannot be in a kernel: it does not define an element of its result");
    for (Type type : op.getResultTypes())
      if (cast<RankedTensorType>(type).getEncoding())
        return op.emitOpError("has a sharding; kernels are the same for all ranks");
  }
  if (std::optional<uint64_t> number = getInPlace())
    if (*number >= getArguments().size() || yield.getValues().size() != 1 || getLayout(*number) != getResultLayout(0) ||
        !mayWriteOver(*getBlock(), getArguments()[*number]))
      return emitOpError("cannot have its result in the memory of argument ")
             << *number
             << "; that argument must have the same layout, and the result must overwrite it or read it in place";
  ArrayRef<int64_t> counts = getCounts().value_or(ArrayRef<int64_t>());
  if (getCounts() && counts.size() != getShape().size())
    return emitOpError("has results of ") << getShape().size() << " dimensions, but counts for " << counts.size();
  for (auto [dim, argument] : llvm::enumerate(counts)) {
    if (argument == -1)
      continue;
    if (argument < 0 || argument >= static_cast<int64_t>(getArguments().size()) ||
        getArguments()[argument].getType() != RankedTensorType::get({}, IntegerType::get(getContext(), 64)))
      return emitOpError("ends dimension ")
             << dim << " at argument " << argument << ", which is not a count, tensor<i64>";
    if (getInPlace())
      return emitOpError("ends dimension ") << dim << " at a count, but has its result in the memory of an argument";
  }
  int64_t loops = getLoopExtents().size();
  for (int64_t loop : getStaticLoops())
    if (loop < 0 || loop >= loops)
      return emitOpError("has ") << loops << " loops, so loop " << loop << " cannot be static";
  if (std::optional<int64_t> loop = getParallelLoop(); loop && (*loop < -1 || *loop >= loops))
    return emitOpError("has ") << loops << " loops, so loop " << *loop << " cannot be parallel";
  if (std::optional<BlocksAttr> blocks = getBlocks())
    for (int64_t loop : blocks->getLoops())
      if (loop < 0 || loop >= static_cast<int64_t>(getShape().size()))
        return emitOpError("has results of ")
               << getShape().size() << " dimensions, so loop " << loop << " has no tiles of blocks";
  return success();
}
