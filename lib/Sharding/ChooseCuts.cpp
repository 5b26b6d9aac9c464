//===- ChooseCuts.cpp - Choose cut positions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses the cut positions that the user left open, aligned for the whole network.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Layout/Cuts.h"
#include "dovetail/Sharding/Passes.h"
#include "dovetail/Sharding/ShardingUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <numeric>

namespace dovetail {
#define GEN_PASS_DEF_CHOOSECUTS
#include "dovetail/Sharding/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

/// For each dimension of a value, the multiple at which cuts stay aligned in every layer behind it.
using Alignments = DenseMap<Value, SmallVector<int64_t>>;

struct ChooseCuts : dovetail::impl::ChooseCutsBase<ChooseCuts> {
  void runOnOperation() override {
    FailureOr<MeshOp> mesh = getModuleMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    if (!*mesh)
      return;
    for (auto function : getDefinitions(getOperation()))
      if (failed(runOnFunction(function, mesh->getMesh())))
        return signalPassFailure();
  }

  LogicalResult runOnFunction(func::FuncOp function, const layout::Mesh &mesh);
};

} // namespace

/// The least common multiple, or `a` if that exceeds `extent`: no cut could be aligned to it.
static int64_t combine(int64_t a, int64_t b, int64_t extent) {
  int64_t multiple = std::lcm(a, b);
  return multiple <= std::max<int64_t>(extent, 1) ? multiple : std::max(a, b);
}

static Alignments getAlignments(func::FuncOp function) {
  Alignments alignments;
  auto get = [&](Value value) -> SmallVector<int64_t> & {
    SmallVector<int64_t> &entry = alignments[value];
    if (entry.empty())
      entry.assign(cast<RankedTensorType>(value.getType()).getRank(), 1);
    return entry;
  };
  for (Operation &op : llvm::reverse(function.getBody().front())) {
    auto partitionable = dyn_cast<DefinitionOpInterface>(op);
    if (!partitionable)
      continue;
    OpRelation relation = partitionable.getRelation();
    SmallVector<int64_t> loops(relation.loops.size(), 1);
    for (Value result : op.getResults())
      for (auto [loop, alignment, extent] : llvm::zip(loops, get(result), relation.loops))
        loop = combine(loop, alignment, extent.extent);
    for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
      ArrayRef<int64_t> shape = cast<RankedTensorType>(operand.getType()).getShape();
      SmallVector<int64_t> &entry = get(operand);
      for (auto [dim, to] : llvm::enumerate(relation.operands[number]))
        if (to.loop >= 0)
          entry[dim] = combine(entry[dim], to.map.operandAlignment(loops[to.loop]), shape[dim]);
    }
  }
  return alignments;
}

/// Balanced cuts at the largest divisor of `alignment` that leaves no piece more than a quarter above its fair share.
static std::vector<int64_t> chooseCuts(int64_t extent, int64_t parts, int64_t alignment) {
  int64_t fair = (extent + parts - 1) / parts;
  for (int64_t divisor = alignment; divisor > 1; --divisor) {
    if (alignment % divisor != 0)
      continue;
    std::vector<int64_t> cuts = layout::balancedCuts(extent, parts, divisor);
    int64_t largest = 0;
    for (int64_t i = 0; i < parts; ++i)
      largest = std::max(largest, cuts[i + 1] - cuts[i]);
    if (4 * largest <= 5 * fair)
      return cuts;
  }
  return layout::balancedCuts(extent, parts);
}

LogicalResult ChooseCuts::runOnFunction(func::FuncOp function, const layout::Mesh &mesh) {
  Alignments alignments;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto request = function.getArgAttrOfType<ArrayAttr>(index, kShardAttrName);
    if (!request)
      continue;
    if (alignments.empty())
      alignments = getAlignments(function);
    auto type = cast<RankedTensorType>(argument.getType());
    SmallVector<Attribute> dims;
    for (auto [dim, attribute] : llvm::enumerate(request)) {
      auto sharding = cast<DimShardingAttr>(attribute);
      if (!sharding.isSplit() || !sharding.getPieces().empty()) {
        dims.push_back(sharding);
        continue;
      }
      int64_t parts = 1;
      for (StringAttr axis : sharding.getAxes()) {
        std::optional<int> position = mesh.axisIndex({axis.data(), axis.size()});
        if (!position)
          return function.emitError("argument ")
                 << index << " is to be split over " << axis << ", which the mesh does not have";
        parts *= mesh.axisSize(*position);
      }
      auto entry = alignments.find(argument);
      int64_t alignment = entry == alignments.end() ? 1 : entry->second[dim];
      dims.push_back(DimShardingAttr::getCuts(sharding.getAxes(), chooseCuts(type.getDimSize(dim), parts, alignment)));
    }
    function.setArgAttr(index, kShardAttrName, ArrayAttr::get(&getContext(), dims));
  }
  return success();
}
