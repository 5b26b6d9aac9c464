//===- GenericRegionVerifier.cpp - What regions of generics must fulfil ---===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifies the regions of GenericOp: their code, the types that they pass to each other, and that reads have elements.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"
#include "GenericRegions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::Border;
using layout::Interval;

//===----------------------------------------------------------------------===//
// Reads that may leave the tensor
//===----------------------------------------------------------------------===//

namespace {
/// The conditions around a read, and the facts that follow from them.
class Guards {
public:
  Guards(GenericOp op, ReadOp read)
      : definition(op.getStatement().getDefinition()), op(op), read(read), ranges(definition.getRanges()) {}

  /// The first dimension in which the read may leave the tensor; none if there is none.
  std::optional<unsigned> findOpen();

private:
  /// Takes in that `condition` holds, or does not.
  void assume(Value condition, bool holds);
  void assume(InsideOp inside, bool holds);
  bool isOpen(const AccessDim &dim, int64_t extent) const;
  int64_t getExtent(unsigned number, unsigned dim) {
    return cast<RankedTensorType>(op.getOperand(definition.reads[number].operand).getType()).getDimSize(dim);
  }

  const Definition &definition;
  GenericOp op;
  ReadOp read;
  /// Ranges of loops, as far as conditions limit them.
  SmallVector<Interval> ranges;
  llvm::SmallDenseSet<unsigned> guarded; ///< Dimensions.
};
} // namespace

bool Guards::isOpen(const AccessDim &dim, int64_t extent) const {
  // Whoever gives unknown values sees to it that they are inside.
  if (dim.border != Border::None || dim.index.hasUnknown())
    return false;
  return dim.divisor != 1 || !Interval{0, extent}.contains(dim.need(ranges));
}

void Guards::assume(InsideOp inside, bool holds) {
  // A wrong number is an error of its own.
  if (inside.getNumber() >= definition.reads.size())
    return;
  std::optional<uint64_t> only = inside.getDim();
  bool isSame = inside.getNumber() == read.getNumber() && inside.getLoops() == read.getLoops() &&
                llvm::equal(inside.getCoordinates(), read.getCoordinates());
  ArrayRef<AccessDim> dims = definition.reads[inside.getNumber()].dims;
  SmallVector<unsigned> open;
  for (unsigned dim = 0; dim < dims.size(); ++dim)
    if ((!only || *only == dim) && isOpen(dims[dim], getExtent(inside.getNumber(), dim)))
      open.push_back(dim);
  if (isSame && holds)
    guarded.insert(open.begin(), open.end());
  // An index that is one loop, and nothing else, says where that loop is. Where several dimensions may leave the
  // tensor, it is not known which one has.
  if (!inside.getCoordinates().empty() || (!holds && open.size() != 1))
    return;
  for (unsigned dim : open) {
    ArrayRef<layout::IndexExpr::Term> terms(dims[dim].index.getTerms().data(), dims[dim].index.getTerms().size());
    if (dims[dim].divisor != 1 || terms.size() != 1 || terms[0].kind != layout::IndexExpr::Kind::Loop ||
        terms[0].factor != 1)
      continue;
    Interval &range = ranges[terms[0].number];
    int64_t lo = -dims[dim].index.getConstant(), hi = lo + getExtent(inside.getNumber(), dim);
    Interval limited = holds            ? Interval{std::max(range.lo, lo), std::min(range.hi, hi)}
                       : lo <= range.lo ? Interval{std::max(range.lo, hi), range.hi}
                       : hi >= range.hi ? Interval{range.lo, std::min(range.hi, lo)}
                                        : range;
    // Code that never runs may read anywhere: one iteration stands for it.
    range = limited.empty() ? Interval{limited.lo, limited.lo + 1} : limited;
  }
}

void Guards::assume(Value condition, bool holds) {
  Operation *defining = condition.getDefiningOp();
  if (auto inside = dyn_cast_if_present<InsideOp>(defining))
    return assume(inside, holds);
  if (auto both = dyn_cast_if_present<arith::AndIOp>(defining); both && holds)
    for (Value each : both->getOperands())
      assume(each, holds);
}

std::optional<unsigned> Guards::findOpen() {
  // Without iterations nothing is read.
  if (llvm::any_of(definition.loops, [](const Loop &loop) { return loop.extent == 0; }))
    return std::nullopt;
  Operation *inner = read;
  SmallVector<std::pair<Value, bool>> conditions;
  for (Operation *outer = inner->getParentOp(); outer != op; inner = outer, outer = outer->getParentOp())
    if (auto branch = dyn_cast<scf::IfOp>(outer))
      conditions.emplace_back(branch.getCondition(), inner->getParentRegion() == &branch.getThenRegion());
  for (auto [condition, holds] : llvm::reverse(conditions))
    assume(condition, holds);
  for (auto [dim, access] : llvm::enumerate(definition.reads[read.getNumber()].dims))
    if (!guarded.contains(dim) && isOpen(access, getExtent(read.getNumber(), dim)))
      return dim;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {
class GenericRegionVerifier {
public:
  explicit GenericRegionVerifier(GenericOp op) : op(op), definition(op.getStatement().getDefinition()) {}

  LogicalResult verify();

private:
  /// That `region`, if it is there, takes `arguments` and gives `results`, and has code that regions may have. `asks`:
  /// it may have operations that depend on loops.
  LogicalResult verify(StringRef name, Region &region, TypeRange arguments, TypeRange results, bool asks);
  LogicalResult verifyShape(StringRef name, Region &region);
  LogicalResult verifyCode(StringRef name, Region &region, bool asks);
  LogicalResult verifyCode(StringRef name, Operation &code, Region &region, bool asks);
  LogicalResult verifyBody(TypeRange accumulators);
  LogicalResult verifyPasses(TypeRange accumulators);

  GenericOp op;
  const Definition &definition;
};
} // namespace

static bool isScalar(Type type) {
  return isa<IndexType, Float16Type, BFloat16Type, Float32Type, Float64Type>(type) ||
         (type.isSignlessInteger() && type.getIntOrFloatBitWidth() <= 64);
}

LogicalResult GenericRegionVerifier::verifyShape(StringRef name, Region &region) {
  if (!region.hasOneBlock())
    return op.emitOpError("has ") << llvm::range_size(region) << " blocks in region " << name << " in place of one";
  if (region.front().empty() || !isa<ReturnOp>(region.front().back()))
    return op.emitOpError("has region ") << name << ", which does not end in dovetail.return";
  return success();
}

LogicalResult GenericRegionVerifier::verifyCode(StringRef name, Operation &code, Region &region, bool asks) {
  if (isa<ReadOp, InsideOp, PositionOp, IndexOp, BoundsOp, LookUpOp>(code)) {
    if (!asks)
      return code.emitOpError("stands in region ") << name << " of dovetail.generic, which is at no coordinates";
    if (isa<LookUpOp>(code) && &region != &op.getBody())
      return code.emitOpError("stands in region ") << name << " of dovetail.generic, but lookups are of the body";
    return success();
  }
  bool isOfDialects = isa<arith::ArithDialect, math::MathDialect>(code.getDialect());
  if (!isOfDialects && !isa<scf::IfOp, scf::ForOp, scf::YieldOp, ReturnOp>(code))
    return code.emitOpError(
        "cannot be in a region of dovetail.generic; use arith, math, scf.if, scf.for and operations "
        "for reads and loops");
  if (isa<ReturnOp>(code) && code.getParentRegion() != &region)
    return code.emitOpError("does not end a region of dovetail.generic");
  if (auto loop = dyn_cast<scf::ForOp>(code);
      loop && (!loop.getInductionVar().getType().isIndex() || ElementBuilder::getConstantIndex(loop.getStep()) != 1))
    return code.emitOpError("in dovetail.generic must count by 1, in index");
  for (Type type : code.getResultTypes())
    if (!isScalar(type))
      return code.emitOpError("gives ") << type << ", but regions of dovetail.generic compute scalars";
  for (Region &inner : code.getRegions())
    for (Operation &nested : inner.getOps())
      if (failed(verifyCode(name, nested, region, asks)))
        return failure();
  return success();
}

LogicalResult GenericRegionVerifier::verifyCode(StringRef name, Region &region, bool asks) {
  for (Operation &code : region.front())
    if (failed(verifyCode(name, code, region, asks)))
      return failure();
  return success();
}

/// `f32, f32`, as in messages.
static std::string list(TypeRange types) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(types, os);
  return text.empty() ? "nothing" : text;
}

LogicalResult GenericRegionVerifier::verify(StringRef name, Region &region, TypeRange arguments, TypeRange results,
                                            bool asks) {
  if (region.empty())
    return success();
  if (failed(verifyShape(name, region)))
    return failure();
  if (region.getArgumentTypes() != arguments)
    return op.emitOpError("has region ") << name << " of " << list(region.getArgumentTypes()) << ", but it gets "
                                         << list(arguments);
  Operation *end = region.front().getTerminator();
  if (end->getOperandTypes() != results)
    return end->emitOpError("gives ") << list(end->getOperandTypes()) << ", but region " << name
                                      << " of dovetail.generic must give " << list(results);
  return verifyCode(name, region, asks);
}

static SmallVector<Type> getScalarTypes(TypeRange tensors) {
  return llvm::map_to_vector(tensors, [](Type type) { return ElementBuilder::scalarType(getElementTypeOrSelf(type)); });
}

LogicalResult GenericRegionVerifier::verifyBody(TypeRange accumulators) {
  SmallVector<Type> elements = getScalarTypes(op.getResultTypes());
  bool givesElements = !op.hasCombiner() || definition.writes;
  if (op.getBody().empty())
    return success();
  if (failed(verifyShape("body", op.getBody())))
    return failure();
  // Terms that a named kind combines are widened.
  bool isNarrow = op.getKind() && op.getBody().front().getTerminator()->getOperandTypes() == TypeRange(elements);
  return verify("body", op.getBody(), {}, givesElements || isNarrow ? TypeRange(elements) : accumulators,
                /*asks=*/true);
}

LogicalResult GenericRegionVerifier::verifyPasses(TypeRange accumulators) {
  Type index = IndexType::get(op.getContext());
  SmallVector<Type> found;
  for (auto [number, pass] : llvm::enumerate(definition.passes)) {
    bool isWide = pass.kind == ReduceKind::Sum || pass.kind == ReduceKind::Prod;
    Type folded = isWide ? getAccumulatorType(pass.elementType) : ElementBuilder::scalarType(pass.elementType);
    Region &term = op.getPassRegion(number), &after = op.getFoundRegion(number);
    if (term.empty())
      return op.emitOpError("has no region for the terms of pass ") << number;
    if (failed(verify("pass", term, found, folded, /*asks=*/true)))
      return failure();
    if (!after.empty() && failed(verifyShape("found", after)))
      return failure();
    TypeRange given = after.empty() ? TypeRange(folded) : TypeRange(after.front().getTerminator()->getOperandTypes());
    if (given.size() != 1)
      return op.emitOpError("has region found, which gives ") << list(given) << " in place of one value";
    found.push_back(given.front());
    if (failed(verify("found", after, {folded, index}, found.back(), /*asks=*/false)))
      return failure();
  }
  if (!definition.passes.empty() && op.getBlockRegion().empty() && TypeRange(found) != accumulators)
    return op.emitOpError("has passes that find ")
           << list(found) << " in place of accumulators, " << list(accumulators) << "; it needs a region block";
  found.push_back(index);
  return verify("block", op.getBlockRegion(), found, accumulators, /*asks=*/false);
}

LogicalResult GenericRegionVerifier::verify() {
  SmallVector<Type> elements = getScalarTypes(op.getResultTypes());
  if (!op.getInit().empty() && failed(verifyShape("init", op.getInit())))
    return failure();
  SmallVector<Type> accumulators = definition.writes ? elements : op.getAccumulatorTypes();
  if (failed(verify("init", op.getInit(), {}, accumulators, /*asks=*/false)))
    return failure();
  if (op.getInit().empty() && op.getPasses().empty() && !op.getBlockRegion().empty())
    return op.emitOpError("has a region block, but no passes");
  // Taps are folded in registers.
  bool isStored = definition.scan || llvm::any_of(ArrayRef(definition.loops).drop_front(definition.resultRank),
                                                  [](const Loop &loop) { return loop.kind != LoopKind::Tap; });
  if (isStored && llvm::any_of(accumulators, [](Type type) { return type.isIndex(); }))
    return op.emitOpError("has an accumulator of type index, which cannot be stored; cast it to i64");
  SmallVector<Type> pair(accumulators);
  llvm::append_range(pair, accumulators);
  if (failed(verify("combine", op.getCombine(), pair, accumulators, /*asks=*/false)))
    return failure();
  if (failed(verify("finish", op.getFinish(), accumulators, elements, /*asks=*/true)))
    return failure();
  if (definition.scan && accumulators.size() != 1 && definition.scan->start)
    return op.emitOpError("starts from elements, and must have one accumulator, not ") << list(accumulators);
  if (op.hasCombiner() && op.getFinish().empty()) {
    bool fits = accumulators.size() == elements.size();
    for (auto [accumulator, element] : llvm::zip(accumulators, elements))
      fits &= accumulator == element || (isa<FloatType>(accumulator) && isa<FloatType>(element));
    if (!fits)
      return op.emitOpError("has accumulators ") << list(accumulators) << ", not elements of its results, "
                                                 << list(elements) << "; it needs a region finish";
  }
  return failure(failed(verifyPasses(accumulators)) || failed(verifyBody(accumulators)));
}

LogicalResult GenericOp::verifyRegions() { return GenericRegionVerifier(*this).verify(); }

//===----------------------------------------------------------------------===//
// Operations of regions
//===----------------------------------------------------------------------===//

/// The generic around `code`, after an error if there is none.
static GenericOp findGeneric(Operation *code) {
  auto op = code->getParentOfType<GenericOp>();
  if (!op)
    code->emitOpError("stands in no dovetail.generic");
  return op;
}

static Region *getOuterRegion(GenericOp op, Operation *code) {
  Region *region = code->getParentRegion();
  while (region->getParentOp() != op)
    region = region->getParentOp()->getParentRegion();
  return region;
}

/// That the read is there, and all loops of it are known: where the code runs, or by the coordinates.
template <typename OpT> static LogicalResult verifyAtRead(OpT code) {
  GenericOp op = findGeneric(code);
  if (!op)
    return failure();
  const Definition &definition = op.getStatement().getDefinition();
  if (code.getNumber() >= definition.reads.size())
    return code.emitOpError("is of read ") << code.getNumber() << ", but there are " << definition.reads.size();
  llvm::SmallDenseSet<unsigned> given;
  for (auto name : code.getLoops().template getAsRange<StringAttr>()) {
    std::optional<unsigned> loop = op.findLoop(name);
    if (!loop)
      return code.emitOpError("is at loop '") << name.getValue() << "', which does not exist";
    if (!given.insert(*loop).second)
      return code.emitOpError("is at two coordinates of loop '") << name.getValue() << "'";
  }
  if (code.getLoops().size() != code.getCoordinates().size())
    return code.emitOpError("has ") << code.getCoordinates().size() << " coordinates for " << code.getLoops().size()
                                    << " loops";
  const Access &access = definition.reads[code.getNumber()];
  Region *region = getOuterRegion(op, code);
  for (unsigned loop = 0; loop < definition.loops.size(); ++loop) {
    bool isUsed = llvm::any_of(access.dims, [&](const AccessDim &dim) { return dim.index.dependsOn(loop); });
    if (isUsed && !given.contains(loop) && !isKnownIn(op, region, loop))
      return code.emitOpError("depends on loop '")
             << op.getNames()[loop] << "', which has no coordinate here; it needs one, after `at`";
  }
  return success();
}

template <typename OpT> static LogicalResult verifyUnknowns(OpT code) {
  unsigned wanted = countUnknowns(code.getAccess());
  // Whoever goes through loops himself may say more of them than a read has.
  if (code.getUnknowns().size() < wanted)
    return code.emitOpError("has ") << code.getUnknowns().size() << " unknown values, but its indices need " << wanted;
  return success();
}

LogicalResult ReadOp::verify() {
  if (failed(verifyAtRead(*this)) || failed(verifyUnknowns(*this)))
    return failure();
  GenericOp op = getGeneric();
  const Definition &definition = op.getStatement().getDefinition();
  Type tensor = op.getOperand(getAccess().operand).getType();
  if (Type scalar = ElementBuilder::scalarType(getElementTypeOrSelf(tensor)); getType() != scalar)
    return emitOpError("gives ") << getType() << ", but an element of " << tensor << " is " << scalar;
  // Terms without elements count nothing.
  if (getOuterRegion(op, *this) == &op.getBody() && definition.isFold && getCoordinates().empty())
    return success();
  if (definition.writes && getOuterRegion(op, *this) == &op.getBody())
    return success();
  if (std::optional<unsigned> dim = Guards(op, *this).findOpen())
    return emitOpError("may leave dimension ")
           << *dim << " of " << tensor << "; it needs an scf.if with dovetail.inside " << getNumber()
           << ", or a border";
  return success();
}

LogicalResult InsideOp::verify() {
  if (failed(verifyAtRead(*this)))
    return failure();
  if (std::optional<uint64_t> dim = getDim(); dim && *dim >= getAccess().dims.size())
    return emitOpError("is of dimension ")
           << *dim << ", but read " << getNumber() << " has " << getAccess().dims.size();
  return success();
}

LogicalResult PositionOp::verify() {
  if (failed(verifyAtRead(*this)) || failed(verifyUnknowns(*this)))
    return failure();
  if (getNumResults() != getAccess().dims.size())
    return emitOpError("gives ") << getNumResults() << " indices, but read " << getNumber() << " has "
                                 << getAccess().dims.size();
  return success();
}

/// The loop that `code` names, after an error if there is none.
template <typename OpT> static std::optional<unsigned> findLoop(OpT code) {
  GenericOp op = findGeneric(code);
  if (!op)
    return std::nullopt;
  std::optional<unsigned> loop = op.findLoop(code.getLoop());
  if (!loop || *loop >= op.getStatement().getDefinition().loops.size()) {
    code.emitOpError("is of loop '") << code.getLoop() << "', which does not exist";
    return std::nullopt;
  }
  return loop;
}

LogicalResult IndexOp::verify() {
  std::optional<unsigned> loop = findLoop(*this);
  if (!loop)
    return failure();
  if (!isKnownIn(getGeneric(), getOuterRegion(getGeneric(), *this), *loop))
    return emitOpError("is of loop '") << getLoop() << "', which has no coordinate here";
  return success();
}

LogicalResult BoundsOp::verify() { return success(findLoop(*this).has_value()); }

LogicalResult LookUpOp::verify() {
  std::optional<unsigned> loop = findLoop(*this);
  if (!loop)
    return failure();
  const Definition &definition = getGeneric().getStatement().getDefinition();
  if (!definition.loops[*loop].isLookup())
    return emitOpError("is of loop '") << getLoop() << "', which no index names";
  unsigned read = definition.loops[*loop].index;
  Type type = getElementTypeOrSelf(getGeneric().getOperand(definition.reads[read].operand).getType());
  if (!isa<IntegerType>(type) || type.isInteger(1) || isNarrow(type))
    return emitOpError("is of loop '") << getLoop() << "', whose index is an element of " << type
                                       << "; it must be an integer of 8 bits or more";
  return success();
}

LogicalResult ReturnOp::verify() { return success(findGeneric(*this) != nullptr); }
