//===- Definition.cpp - What an operator states about itself -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Definition, and the relation of operand dimensions to loops that follows from it.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Definition/OpRelation.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::DimMap;
using layout::Interval;

Definition Definition::over(RankedTensorType result) {
  Definition definition;
  for (int64_t extent : result.getShape())
    definition.loops.push_back({extent});
  definition.resultRank = result.getRank();
  return definition;
}

layout::IndexExpr Definition::addLoop(int64_t extent, LoopKind kind, std::optional<ReduceKind> reduction) {
  assert((kind == LoopKind::Tap || getNumTaps() == 0) && "taps come last");
  loops.push_back({extent, kind, reduction});
  return at(loops.size() - 1);
}

layout::IndexExpr Definition::addPartLoop(unsigned dim, ArrayRef<int64_t> ends, unsigned unknown) {
  addLoop(ends.back(), LoopKind::Part);
  loops.back().dim = dim;
  loops.back().ends.assign(ends.begin(), ends.end());
  std::vector<int64_t> first(ends.begin(), ends.end() - 1), last(ends.begin() + 1, ends.end());
  for (int64_t &position : last)
    --position;
  return layout::IndexExpr::unknown(unknown, at(dim), first, last);
}

bool dovetail::isBetweenRestarts(const Scan &scan, Interval piece) {
  return llvm::is_contained(scan.restarts, piece.lo) && llvm::is_contained(scan.restarts, piece.hi);
}

void Definition::setScan(Scan scan) {
  loops[scan.loop].kind = LoopKind::Scan;
  lines = {scan.loop};
  this->scan = std::move(scan);
}

layout::IndexExpr Definition::addLookup(int64_t extent, unsigned index) {
  layout::IndexExpr loop = addLoop(extent, LoopKind::Reduction, ReduceKind::Owner);
  loops.back().index = index;
  return loop;
}

SmallVector<unsigned, 1> Definition::getLookups() const {
  SmallVector<unsigned, 1> lookups;
  for (auto [number, loop] : llvm::enumerate(loops))
    if (loop.isLookup())
      lookups.push_back(number);
  return lookups;
}

SmallVector<DataIndex, 1> Definition::getDataIndices() const {
  SmallVector<DataIndex, 1> indices;
  // Elements of a read whose own last index is unknown take turns.
  auto add = [&](unsigned loop, unsigned read) {
    std::optional<unsigned> component;
    if (ArrayRef<AccessDim> dims = reads[read].dims; !dims.empty() && dims.back().index.hasUnknown())
      component = llvm::count_if(indices, [&](const DataIndex &other) { return other.read == read; });
    indices.push_back({loop, read, component});
  };
  for (unsigned loop : getLookups())
    add(loop, loops[loop].index);
  if (writes)
    for (auto [dim, written] : llvm::enumerate(*writes))
      if (written.index.hasUnknown())
        add(dim, indexRead);
  return indices;
}

bool Definition::isCheap() const {
  if (isFold || scan || writes || !lines.empty() || getNumTaps() > 0)
    return false;
  llvm::SmallDenseSet<unsigned> operands;
  return llvm::all_of(reads, [&](const Access &read) { return operands.insert(read.operand).second; });
}

unsigned Definition::getNumTaps() const {
  return llvm::count_if(loops, [](const Loop &loop) { return loop.kind == LoopKind::Tap; });
}

SmallVector<Interval> Definition::getRanges() const {
  return llvm::map_to_vector(loops,
                             [](const Loop &loop) -> Interval { return {0, std::max<int64_t>(loop.extent, 1)}; });
}

SmallVector<int64_t> dovetail::getExtents(ArrayRef<Loop> loops) {
  return llvm::map_to_vector(loops, [](const Loop &loop) { return loop.extent; });
}

calls::ContractionRoles Definition::getRoles() const {
  return {reads[0].dims, reads[1].dims, getExtents(loops), resultRank};
}

std::optional<int64_t> dovetail::lookUp(const APInt &index, bool isUnsigned, int64_t extent, bool clamp) {
  APInt wide = isUnsigned ? index.zext(65) : index.sext(65);
  if (wide.isNegative())
    wide += extent;
  if (clamp && wide.isNegative())
    return 0;
  if (wide.isNegative() || wide.sge(extent))
    return clamp ? std::optional(extent - 1) : std::nullopt;
  return wide.getSExtValue();
}

//===----------------------------------------------------------------------===//
// Relation
//===----------------------------------------------------------------------===//

/// The relation of one dimension of `extent`.
static DimRelation relate(const Definition &definition, const AccessDim &access, ArrayRef<Interval> ranges,
                          int64_t extent) {
  // The only element of a dimension that is repeated.
  if (extent == 1 && access.index.asConstant() == 0)
    return DimRelation::broadcast();
  DimRelation best = DimRelation::whole();
  int64_t least = 0;
  for (auto [number, loop] : llvm::enumerate(definition.loops)) {
    if (loop.kind == LoopKind::Tap || !access.index.dependsOn(number))
      continue;
    DimMap map = access.getMap(number, ranges);
    int64_t width = map.need({0, 1}).size();
    if (!map.hasLoop() || (best.loop >= 0 && width >= least))
      continue;
    best = {static_cast<int>(number), map};
    least = width;
  }
  return best;
}

/// The relation of a dimension that two accesses share.
static DimRelation join(const DimRelation &a, const DimRelation &b) {
  if (a.loop == b.loop && a.map == b.map)
    return a;
  bool areAffine = a.map.getKind() == DimMap::Kind::Affine && b.map.getKind() == DimMap::Kind::Affine;
  if (a.loop != b.loop || !areAffine || a.map.getNum() != b.map.getNum() || a.map.getDen() != b.map.getDen())
    return DimRelation::whole();
  return {a.loop, DimMap::affine(a.map.getNum(), a.map.getDen(), std::min(a.map.getOffLo(), b.map.getOffLo()),
                                 std::max(a.map.getOffHi(), b.map.getOffHi()))};
}

OpRelation dovetail::getRelation(const Definition &definition, TypeRange types) {
  OpRelation relation;
  for (const Loop &loop : definition.loops)
    if (loop.kind != LoopKind::Tap)
      relation.loops.push_back(loop);
  relation.operands.resize(types.size());
  SmallVector<Interval> ranges = definition.getRanges();
  for (const Access &access : definition.reads) {
    SmallVector<DimRelation> &dims = relation.operands[access.operand];
    ArrayRef<int64_t> shape = cast<RankedTensorType>(types[access.operand]).getShape();
    bool isFirst = dims.empty();
    for (auto [number, dim] : llvm::enumerate(access.dims)) {
      DimRelation related = relate(definition, dim, ranges, shape[number]);
      if (isFirst)
        dims.push_back(related);
      else
        dims[number] = join(dims[number], related);
    }
  }
  // Operands that are never read are not needed, and a rank may hold any of them.
  for (auto [dims, type] : llvm::zip_equal(relation.operands, types))
    if (dims.empty())
      dims.resize(cast<RankedTensorType>(type).getRank(), DimRelation::whole());
  return relation;
}
