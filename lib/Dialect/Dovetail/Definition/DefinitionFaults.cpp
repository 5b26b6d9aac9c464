//===- DefinitionFaults.cpp - Definitions that make no sense --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks definitions.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Definition/DefinitionFaults.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

/// The largest number of a loop that `index` depends on; -1 if it depends on none.
static int getLastLoop(const IndexExpr &index) {
  int last = -1;
  for (const IndexExpr::Term &term : index.getTerms()) {
    if (term.kind == IndexExpr::Kind::Loop)
      last = std::max(last, term.number);
    if (term.hasOperand())
      last = std::max(last, getLastLoop(term.getOperand()));
  }
  return last;
}

static std::string at(const Twine &what, size_t number, const Twine &why) {
  return ("has " + what + " " + Twine(number) + why).str();
}

static std::string findLoopFault(const Definition &definition) {
  bool isAfterTap = false;
  for (auto [number, loop] : llvm::enumerate(definition.loops)) {
    bool isOfResult = number < definition.resultRank, isTap = loop.kind == LoopKind::Tap;
    if (loop.extent < 0)
      return at("loop", number, " of a negative extent");
    if (isAfterTap && !isTap)
      return at("loop", number, " behind taps");
    isAfterTap |= isTap;
    bool mayBeOfResult = loop.kind == LoopKind::Parallel || loop.kind == LoopKind::Whole || loop.kind == LoopKind::Scan;
    if (isOfResult && !mayBeOfResult)
      return at("loop", number, " of the result that is a reduction or a tap");
    if (!isOfResult && (loop.kind == LoopKind::Parallel || loop.kind == LoopKind::Scan))
      return at("loop", number, " without terms behind the dimensions of the result");
    if (loop.kind == LoopKind::Scan && !(definition.scan && definition.scan->loop == number))
      return at("loop", number, " that terms accumulate along, but no scan of it");
    if (loop.isLookup() && (isOfResult || static_cast<size_t>(loop.index) >= definition.reads.size()))
      return at("loop", number, " that is looked up by no read");
    if (loop.kind == LoopKind::Part && (loop.dim >= definition.resultRank || !llvm::is_sorted(loop.ends)))
      return at("loop", number, " over parts of no dimension");
  }
  return "";
}

static std::string findReadFault(Operation *op, const Definition &definition) {
  auto namesLoops = [&](ArrayRef<layout::AccessDim> dims) {
    return llvm::all_of(dims, [&](const layout::AccessDim &dim) {
      return getLastLoop(dim.index) < static_cast<int>(definition.loops.size());
    });
  };
  for (auto [number, read] : llvm::enumerate(definition.reads)) {
    if (read.operand >= op->getNumOperands())
      return at("read", number, " of an operand that is not there");
    auto type = cast<RankedTensorType>(op->getOperand(read.operand).getType());
    if (static_cast<int64_t>(read.dims.size()) != type.getRank())
      return at("read", number, " with other dimensions than its operand");
    if (!namesLoops(read.dims))
      return at("read", number, " that names a loop that is not there");
    for (const layout::AccessDim &dim : read.dims)
      if (dim.divisor < 1 || (dim.border != layout::Border::None && (dim.divisor != 1 || dim.within.empty())))
        return at("read", number, " with a divisor or border that means nothing");
  }
  if (definition.writes && (definition.writes->size() != definition.resultRank || !namesLoops(*definition.writes) ||
                            definition.indexRead >= definition.reads.size()))
    return "has writes that do not fit its result";
  return "";
}

/// Which of the modes exclude each other.
static std::string findModeFault(const Definition &definition) {
  if (definition.isFold && (definition.scan || definition.writes || !definition.lines.empty()))
    return "is a fold, but accumulates, writes where data say, or has lines";
  if (!definition.isFold && (definition.isProduct || !definition.passes.empty()))
    return "is a product or has passes, but does not fold";
  if (definition.isProduct && (!definition.passes.empty() || definition.reads.size() != 2 ||
                               definition.reads[0].operand != 0 || definition.reads[1].operand != 1))
    return "is a product, but not of operands 0 and 1";
  if (definition.scan && definition.writes)
    return "accumulates and writes where data say";
  if (definition.scan && (definition.scan->loop >= definition.resultRank || definition.lines.size() != 1 ||
                          definition.lines.front() != definition.scan->loop ||
                          definition.loops[definition.scan->loop].kind != LoopKind::Scan))
    return "accumulates along no line";
  if (definition.scan) {
    ArrayRef<int64_t> restarts = definition.scan->restarts;
    if (restarts.empty() || restarts.front() != 0 || !llvm::is_sorted(restarts) ||
        restarts.back() != definition.loops[definition.scan->loop].extent)
      return "restarts elsewhere than from the beginning to the end";
  }
  if (!llvm::is_sorted(definition.lines) ||
      llvm::any_of(definition.lines, [&](unsigned loop) { return loop >= definition.resultRank; }))
    return "has lines along no dimensions of the result";
  return "";
}

std::string dovetail::findFault(Operation *op, const Definition &definition) {
  for (OpResult result : op->getResults())
    if (cast<RankedTensorType>(result.getType()).getRank() != definition.resultRank ||
        definition.loops.size() < definition.resultRank)
      return at("result", result.getResultNumber(), " of other dimensions than its definition");
  if (std::string fault = findLoopFault(definition); !fault.empty())
    return fault;
  if (std::string fault = findModeFault(definition); !fault.empty())
    return fault;
  return findReadFault(op, definition);
}
