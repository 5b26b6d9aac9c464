//===- InPlace.cpp - Kernels that write over what they read -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines getInPlaceReads and mayWriteOver.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Plan/IR/Plan.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;

namespace {

/// Where a value of a kernel's body is used, in the loops of the kernel's result.
struct Index {
  /// For each dimension of the value, the loop whose iteration it is; -1: something else.
  SmallVector<int> loops;
  /// Bit i: some coordinate depends on loop i.
  uint64_t depends = 0;
};

/// Follows the reads of a value from a result backward.
class ReadTracer {
public:
  ReadTracer(Block &body, Value result, Value source);

  std::optional<InPlaceReads> trace();

private:
  bool reaches(Value value) const { return reaching.contains(value); }
  /// Where `op`, computed at `index`, has one of its reads.
  static Index getReadIndex(const Definition &definition, const Access &access, const Index &index, Type operand);
  bool isOwnElement(const Index &index, Type type) const;
  /// Finds the loops along which the source is read elsewhere than the result is written; false if it is read at places
  /// that are not known.
  bool findRow();
  /// Finds what the elements of a row have from the row.
  bool findValues();

  Block &body;
  Value source;
  Operation *root;
  ArrayRef<int64_t> shape;
  DenseSet<Value> reaching; ///< What depends on the source.
  DenseMap<Value, Index> indices;
  InPlaceReads result;
};

} // namespace

ReadTracer::ReadTracer(Block &body, Value result, Value source)
    : body(body), source(source), root(result.getDefiningOp()),
      shape(cast<RankedTensorType>(result.getType()).getShape()) {
  reaching.insert(source);
  for (Operation &op : body.without_terminator())
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return reaches(operand); }))
      reaching.insert_range(op.getResults());
}

Index ReadTracer::getReadIndex(const Definition &definition, const Access &access, const Index &index, Type operand) {
  // What is read from data, at the operation's own coordinates, depends on these.
  auto getDepends = [&](unsigned loop) -> uint64_t {
    const Loop &of = definition.loops[loop];
    if (loop >= definition.resultRank)
      return of.isLookup() || of.kind == LoopKind::Part ? index.depends : 0;
    return index.loops[loop] >= 0 ? uint64_t(1) << index.loops[loop] : index.depends;
  };
  Index read;
  for (auto [dim, accessed] : llvm::enumerate(access.dims)) {
    std::optional<int> loop = accessed.index.asLoop();
    bool isExact = loop && accessed.divisor == 1 && accessed.border == layout::Border::None &&
                   *loop < static_cast<int>(definition.resultRank);
    read.loops.push_back(isExact ? index.loops[*loop] : -1);
    if (cast<RankedTensorType>(operand).getDimSize(dim) == 1)
      continue;
    if (accessed.index.hasUnknown())
      read.depends |= index.depends;
    for (unsigned number = 0; number < definition.loops.size(); ++number)
      if (accessed.index.dependsOn(number))
        read.depends |= getDepends(number);
  }
  return read;
}

bool ReadTracer::isOwnElement(const Index &index, Type type) const {
  if (cast<RankedTensorType>(type).getShape() != shape)
    return false;
  for (auto [dim, loop] : llvm::enumerate(index.loops))
    if (shape[dim] != 1 && loop != static_cast<int>(dim))
      return false;
  return true;
}

bool ReadTracer::findRow() {
  auto meet = [](Index &known, const Index &index) {
    for (auto [loop, other] : llvm::zip_equal(known.loops, index.loops))
      loop = loop == other ? loop : -1;
    known.depends |= index.depends;
  };
  Index own;
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    own.loops.push_back(dim);
    own.depends |= uint64_t(shape[dim] != 1) << dim;
  }
  indices[root->getResult(0)] = own;
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    auto definitionOp = dyn_cast<DefinitionOpInterface>(op);
    if (!definitionOp || !reaches(op.getResult(0)))
      continue;
    // Results of an operation are computed together.
    std::optional<Index> index;
    for (Value value : op.getResults())
      if (auto found = indices.find(value); found != indices.end()) {
        if (index)
          meet(*index, found->second);
        else
          index = found->second;
      }
    if (!index)
      continue;
    Definition definition = definitionOp.getDefinition();
    for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
      if (!reaches(operand))
        continue;
      bool isRead = false;
      for (const Access &access : definition.reads)
        if (access.operand == number) {
          isRead = true;
          Index read = getReadIndex(definition, access, *index, operand.getType());
          if (auto [known, isNew] = indices.try_emplace(operand, read); !isNew)
            meet(known->second, read);
        }
      if (!isRead)
        return false;
    }
  }
  auto found = indices.find(source);
  if (found == indices.end())
    return false;
  for (auto [dim, loop] : llvm::enumerate(found->second.loops))
    if (shape[dim] != 1 && loop != static_cast<int>(dim))
      result.row.push_back(dim);
  return true;
}

bool ReadTracer::findValues() {
  uint64_t row = 0;
  for (unsigned loop : result.row)
    row |= uint64_t(1) << loop;
  DenseSet<Operation *> elements = {root};
  Index own = indices[root->getResult(0)];
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    if (!elements.contains(&op))
      continue;
    Definition definition = cast<DefinitionOpInterface>(op).getDefinition();
    for (auto [number, access] : llvm::enumerate(definition.reads)) {
      Value operand = op.getOperand(access.operand);
      if (!reaches(operand))
        continue;
      // Others than elementwise operations may be computed for several elements together.
      if (definition.isFold || definition.scan || definition.writes || !definition.lines.empty() ||
          definition.loops.size() != definition.resultRank || op.getNumResults() != 1)
        return false;
      auto type = cast<RankedTensorType>(operand.getType());
      Index index = getReadIndex(definition, access, own, type);
      if (isOwnElement(index, type)) {
        if (Operation *producer = operand.getDefiningOp())
          elements.insert(producer);
        continue;
      }
      // Before the row: at a place that there is, whatever the elements are.
      bool isInside = llvm::all_of(llvm::enumerate(access.dims), [&](auto each) {
        layout::Interval all{0, type.getDimSize(each.index())};
        return each.value().divisor == 1 && all.contains(each.value().need(definition.getRanges()));
      });
      if ((index.depends & row) != 0 || !isInside || operand == source)
        return false;
      result.values.push_back({&op, static_cast<unsigned>(number)});
    }
  }
  std::reverse(result.values.begin(), result.values.end());
  return true;
}

std::optional<InPlaceReads> ReadTracer::trace() {
  constexpr size_t maxDims = 64;
  if (!isa_and_present<DefinitionOpInterface>(root) || root->getNumResults() != 1 ||
      source.getType() != root->getResult(0).getType() || shape.size() > maxDims || !findRow() || !findValues())
    return std::nullopt;
  return std::move(result);
}

std::optional<InPlaceReads> plan::getInPlaceReads(Block &body, Value result, Value source) {
  return ReadTracer(body, result, source).trace();
}

std::optional<InPlaceReads> plan::getInPlaceReads(Block &body, Value source) {
  auto yield = cast<YieldOp>(body.getTerminator());
  if (yield.getValues().size() != 1)
    return std::nullopt;
  return getInPlaceReads(body, yield.getValues().front(), source);
}

bool plan::mayWriteOver(Block &body, BlockArgument argument) {
  auto yield = cast<YieldOp>(body.getTerminator());
  auto root = yield.getValues().front().getDefiningOp<DefinitionOpInterface>();
  if (root && root.getDefinition().writes)
    return yield.getValues().size() == 1 && root->getOperand(0) == argument && argument.hasOneUse() &&
           argument.getType() == yield.getValues().front().getType();
  return getInPlaceReads(body, argument).has_value();
}
