//===- GenericVerifier.cpp - What generics must fulfil --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifies what GenericOp states: operands, loops, reads, types, and how terms become one. Its regions are verified by
// GenericRegionVerifier.
//
//===----------------------------------------------------------------------===//

#include "GenericRegions.h"

#include "dovetail/Dialect/Dovetail/IR/DefinitionText.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;

namespace {
class GenericVerifier {
public:
  explicit GenericVerifier(GenericOp op)
      : op(op), definition(op.getStatement().getDefinition()), names(op.getNames()) {}

  LogicalResult verify();

private:
  LogicalResult verifyResults();
  LogicalResult verifyNames();
  LogicalResult verifyReads();
  LogicalResult verifyCombiner();
  LogicalResult verifyKind(ReduceKind kind);
  LogicalResult verifyReduction(unsigned number);
  LogicalResult verifyIndexRead(unsigned read, const Twine &what);
  /// A read that no code guards: it depends on no lookup, nor on loop `without`, and stays inside of its operand.
  LogicalResult verifyPlainRead(unsigned read, const Twine &what, std::optional<unsigned> without = std::nullopt);
  LogicalResult verifyWrites();
  LogicalResult verifyScan();
  LogicalResult verifyFlags();

  GenericOp op;
  const Definition &definition;
  SmallVector<std::string> names;
};
} // namespace

static RankedTensorType getTensor(Type type) { return cast<RankedTensorType>(type); }

LogicalResult GenericVerifier::verifyResults() {
  if (op.getNumResults() == 0)
    return op.emitOpError("has no result");
  RankedTensorType first = op.getType();
  for (Type type : op.getResultTypes())
    if (getTensor(type).getShape() != first.getShape())
      return op.emitOpError("has results ") << first << " and " << type << ", which must have one shape";
  if (definition.resultRank != first.getRank())
    return op.emitOpError("has results of rank ")
           << first.getRank() << ", but its definition says " << definition.resultRank;
  for (auto [number, extent] : llvm::enumerate(first.getShape()))
    if (definition.loops[number].extent != extent)
      return op.emitOpError("has loop '") << names[number] << "' of extent " << definition.loops[number].extent
                                          << ", but dimension " << number << " of " << first << " has " << extent;
  return success();
}

LogicalResult GenericVerifier::verifyNames() {
  if (names.size() != definition.loops.size())
    return op.emitOpError("has ") << definition.loops.size() << " loops, but names for " << names.size();
  for (auto [number, name] : llvm::enumerate(names)) {
    if (!isLoopName(name))
      return op.emitOpError("has a loop '") << name << "', which is not a valid name";
    if (llvm::is_contained(ArrayRef(names).take_front(number), name))
      return op.emitOpError("has two loops '") << name << "'";
  }
  return success();
}

LogicalResult GenericVerifier::verifyReads() {
  for (auto [number, read] : llvm::enumerate(definition.reads)) {
    if (read.operand >= op.getNumOperands())
      return op.emitOpError("reads operand ")
             << read.operand << " in read " << number << ", but has " << op.getNumOperands();
    RankedTensorType type = getTensor(op.getOperand(read.operand).getType());
    if (static_cast<int64_t>(read.dims.size()) != type.getRank())
      return op.emitOpError("has ") << read.dims.size() << " indices in read " << number << ", of operand "
                                    << read.operand << ", which is " << type;
    for (auto [dim, access] : llvm::enumerate(read.dims))
      if (access.border != layout::Border::None && !layout::Interval{0, type.getDimSize(dim)}.contains(access.within))
        return op.emitOpError("continues dimension ")
               << dim << " in read " << number << " from " << access.within.str() << ", which leaves " << type;
  }
  return success();
}

LogicalResult GenericVerifier::verifyPlainRead(unsigned read, const Twine &what, std::optional<unsigned> without) {
  RankedTensorType type = getTensor(op.getOperand(definition.reads[read].operand).getType());
  SmallVector<layout::Interval> ranges = definition.getRanges();
  for (auto [dim, access] : llvm::enumerate(definition.reads[read].dims)) {
    for (auto [number, loop] : llvm::enumerate(definition.loops))
      if (access.index.dependsOn(static_cast<int>(number)) && (loop.isLookup() || without == number))
        return op.emitOpError("has ") << what << " by read " << read << ", whose dimension " << dim << " depends on '"
                                      << names[number] << "'; that is not known there";
    // The components of an index, or the restarts of a scan, are unknown and follow each other.
    if (!access.index.hasUnknown() && access.border == layout::Border::None &&
        !layout::Interval{0, std::max<int64_t>(type.getDimSize(dim), 1)}.contains(access.need(ranges)))
      return op.emitOpError("has ") << what << " by read " << read << ", which leaves dimension " << dim << " of "
                                    << type;
  }
  return success();
}

LogicalResult GenericVerifier::verifyIndexRead(unsigned read, const Twine &what) {
  Type type = getElementTypeOrSelf(op.getOperand(definition.reads[read].operand).getType());
  if (!isa<IntegerType>(type) || type.isInteger(1) || isNarrow(type))
    return op.emitOpError("has ") << what << " by read " << read << ", whose elements are " << type
                                  << "; they must be integers of 8 bits or more";
  return success();
}

LogicalResult GenericVerifier::verifyKind(ReduceKind kind) {
  if (!op.getInit().empty() || !op.getCombine().empty())
    return op.emitOpError("combines by ") << stringifyReduceKind(kind) << ", and by a region: it can have one of these";
  if (kind == ReduceKind::Owner)
    return op.emitOpError("cannot combine by owner, which is for lookups");
  for (Type type : op.getResultTypes()) {
    Type element = getElementTypeOrSelf(type);
    if (isNarrow(element) || (element.isInteger(1) && (kind == ReduceKind::Sum || kind == ReduceKind::Prod)))
      return op.emitOpError("combines by ")
             << stringifyReduceKind(kind) << ", and needs numbers, but has elements of " << element;
  }
  return success();
}

LogicalResult GenericVerifier::verifyReduction(unsigned number) {
  const Loop &loop = definition.loops[number];
  // The read may give positions that are no integers, with which the body finds iterations itself.
  if (loop.isLookup())
    return verifyPlainRead(loop.index, "a lookup");
  if (loop.kind != LoopKind::Reduction || !loop.reduction)
    return success();
  StringRef kind = stringifyReduceKind(*loop.reduction);
  if (loop.reduction == ReduceKind::Owner)
    return op.emitOpError("combines '") << names[number] << "' by owner, which only lookups are";
  if (!definition.isFold)
    return success();
  if (op.getKind() != loop.reduction)
    return op.emitOpError("lets ranks combine '")
           << names[number] << "' by " << kind << ", but combines terms in another way; say reduction(none)";
  if (!op.getFinish().empty())
    return op.emitOpError("lets ranks combine '")
           << names[number] << "' by " << kind
           << " after a finish; say reduction(none), or finish in another operation";
  return success();
}

LogicalResult GenericVerifier::verifyWrites() {
  if (op.getNumResults() != 1)
    return op.emitOpError("writes where data say, and has ") << op.getNumResults() << " results in place of one";
  if (!op.hasCombiner())
    return op.emitOpError("writes where data say, and needs combine for two elements at one place");
  if (!op.getInit().empty() || !op.getFinish().empty())
    return op.emitOpError("writes where data say, and starts from elements: it cannot have init or finish");
  SmallVector<AccessDim> own;
  for (unsigned dim = 0; dim < definition.resultRank; ++dim)
    own.push_back(Definition::at(dim));
  if (definition.reads.empty() || definition.reads[0].operand != 0 || definition.reads[0].dims != own ||
      !equalUpToSharding(op.getOperand(0).getType(), op.getType()))
    return op.emitOpError("writes over operand 0: read 0 must be its elements at the loops of the result");
  for (auto [dim, written] : llvm::enumerate(*definition.writes))
    if (written != own[dim] && written != AccessDim(layout::IndexExpr::unknown(dim)) &&
        written != AccessDim(layout::IndexExpr::unknown(0)))
      return op.emitOpError("writes dimension ")
             << dim << " at an index that is neither '" << names[dim] << "' nor unknown";
  for (unsigned loop = definition.resultRank; loop < definition.loops.size(); ++loop)
    if (definition.loops[loop].kind != LoopKind::Tap)
      return op.emitOpError("writes once for each iteration of taps, and cannot have loop '") << names[loop] << "'";
  return verifyIndexRead(definition.indexRead, "places");
}

LogicalResult GenericVerifier::verifyScan() {
  if (op.getNumResults() != 1)
    return op.emitOpError("scans, and has ") << op.getNumResults() << " results in place of one";
  if (!op.hasCombiner())
    return op.emitOpError("scans, but does not say how terms become one: it needs combine");
  if (definition.scan->start)
    return verifyPlainRead(*definition.scan->start, "a start", definition.scan->loop);
  return success();
}

LogicalResult GenericVerifier::verifyCombiner() {
  if (std::optional<ReduceKind> kind = op.getKind(); kind && failed(verifyKind(*kind)))
    return failure();
  for (unsigned number = 0; number < definition.loops.size(); ++number)
    if (failed(verifyReduction(number)))
      return failure();
  if (definition.writes)
    return verifyWrites();
  if (definition.scan && failed(verifyScan()))
    return failure();
  if (!op.getKind() && op.getInit().empty() != op.getCombine().empty())
    return op.emitOpError("has one of the regions init and combine, which come together");
  if (!op.getFinish().empty() && !op.hasCombiner())
    return op.emitOpError("finishes terms, but does not say how they become one: it needs combine");
  if (op.getPasses().size() != 2 * definition.passes.size())
    return op.emitOpError("has ") << definition.passes.size() << " passes, but " << op.getPasses().size()
                                  << " regions for them in place of two each";
  if (op.getBody().empty() == definition.passes.empty())
    return op.emitOpError(definition.passes.empty() ? "has no body"
                                                    : "has passes and a body: it can have one of these");
  return success();
}

LogicalResult GenericVerifier::verifyFlags() {
  if (definition == withFlags(definition, op.getKind(), op.getOperandTypes(), op.getResultTypes(), op.getCombine(),
                              op.getFinish(), op.getBody()))
    return success();
  return op.emitOpError("has a definition whose flags 'fold', 'product' and 'lines' do not fit its regions");
}

LogicalResult GenericVerifier::verify() {
  if (failed(verifyNames()) || failed(verifyResults()) || failed(verifyReads()) || failed(verifyCombiner()))
    return failure();
  return verifyFlags();
}

LogicalResult GenericOp::verify() { return GenericVerifier(*this).verify(); }
