//===- ChooseExchanges.cpp - How ranks carry out exchanges -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splits large reductions into two phases, and gives each exchange its kind and the order of elements in messages.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Schedule/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_CHOOSEEXCHANGES
#include "dovetail/Schedule/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

/// A tensor of an exchange, and the memory in which it lies.
struct Side {
  plan::BufferOp buffer;
  RankedTensorType type;
  layout::Sharding sharding, held;
  layout::MemoryFormat format;
  /// On hosts constants are read where the artifact is mapped (`runtime::Plan::isMapped`).
  bool isMapped;

  Side(plan::ViewOp view, const layout::Mesh &mesh)
      : buffer(view.getBufferOp()), type(view.getTensorType()), format(buffer.getFormat().toLayout()) {
    sharding = toLayout(getSharding(type), mesh, type.getRank());
    held = toLayout(getSharding(buffer.getTensorType()), mesh, type.getRank());
    isMapped = buffer.getKind() == plan::BufferKind::Constant && format.isRowMajor() &&
               buffer->getParentOfType<plan::ProgramOp>().getMemory() == plan::ProgramMemory::Host;
  }
  layout::TensorMemory getMemory() const {
    // A mapped constant lies there whole.
    return {isMapped ? layout::Sharding::replicated(static_cast<int>(type.getRank())) : held, format};
  }
};

struct ChooseExchanges : dovetail::impl::ChooseExchangesBase<ChooseExchanges> {
  void runOnOperation() override;
};

} // namespace

static std::span<const int64_t> getShape(RankedTensorType type) {
  return {type.getShape().data(), type.getShape().size()};
}

/// The attribute of a dimension with cuts.
static DimShardingAttr getCutsAttr(const layout::DimSharding &dim, int64_t extent, MeshOp mesh) {
  SmallVector<StringAttr> axes;
  for (int axis : dim.axes)
    axes.push_back(cast<StringAttr>(mesh.getAxes()[axis]));
  std::vector<int64_t> cuts = *dim.cuts(extent);
  return DimShardingAttr::getCuts(axes, cuts);
}

/// The type of what is between the two phases of a reduction; null where one is enough.
static RankedTensorType getScatteredType(const Side &source, const Side &target, MeshOp mesh) {
  layout::Mesh ranks = mesh.getMesh();
  std::span<const int64_t> shape = getShape(target.type);
  if (target.sharding.largestVolume(shape) * getElementByteSize(target.type.getElementType()) < layout::minScatterBytes)
    return {};
  std::optional<layout::Sharding> parts =
      layout::scatteredSharding(ranks, shape, source.sharding, target.sharding, target.format.order);
  if (!parts)
    return {};
  ShardingAttr sharding = getSharding(target.type);
  if (!sharding)
    sharding = ShardingAttr::getReplicated(FlatSymbolRefAttr::get(mesh), target.type.getRank());
  SmallVector<DimShardingAttr> dims(sharding.getDims());
  for (auto [number, dim] : llvm::enumerate(parts->dims))
    if (!(dim == target.sharding.dims[number]))
      dims[number] = getCutsAttr(dim, shape[number], mesh);
  return withSharding(target.type, sharding.withDims(dims));
}

/// Gives an exchange of one move its kind and the order of elements.
static void choose(plan::ExchangeOp op, const Side &source, const Side &target, const layout::Mesh &mesh) {
  layout::ExchangePlace place{
      mesh, getShape(source.type), source.sharding, target.sharding, source.getMemory(), target.getMemory()};
  op.setKind(plan::fromLayout(place.findKind(getElementByteSize(source.type.getElementType()))));
  const std::vector<int> &order = place.messageFormat().order;
  op.setOrders({SmallVector<int64_t>(order.begin(), order.end())});
}

void ChooseExchanges::runOnOperation() {
  SymbolTableCollection symbols;
  WalkResult result = getOperation().walk([&](plan::ExchangeOp op) {
    // Several moves are one exchange of messages already, and what is waited for stays what it was then.
    if (op.getNumMoves() != 1 || !op.getEvent().use_empty())
      return WalkResult::advance();
    auto program = op->getParentOfType<plan::ProgramOp>();
    // The program's verifier has found it.
    auto mesh = symbols.lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr());
    layout::Mesh ranks = mesh.getMesh();
    auto sourceView = op.getSources()[0].getDefiningOp<plan::ViewOp>();
    auto targetView = op.getTargets()[0].getDefiningOp<plan::ViewOp>();
    if (!sourceView || !targetView) {
      op.emitOpError("is not between views");
      return WalkResult::interrupt();
    }
    Side source(sourceView, ranks), target(targetView, ranks);
    if (std::string why;
        !layout::verifyExchange(ranks, getShape(source.type), source.sharding, target.sharding, &why)) {
      op.emitOpError() << "is impossible: " << why;
      return WalkResult::interrupt();
    }
    RankedTensorType type = getScatteredType(source, target, mesh);
    if (!type) {
      choose(op, source, target, ranks);
      return WalkResult::advance();
    }
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(targetView);
    auto partView =
        plan::ViewOp::create(builder, op.getLoc(), plan::RefType::get(type), targetView.getBuffer(), StringAttr());
    Side part(partView, ranks);
    builder.setInsertionPoint(op);
    auto first = plan::ExchangeOp::create(builder, op.getLoc(), op.getSources()[0], partView, op.getStepNameAttr());
    choose(first, source, part, ranks);
    op.getSourcesMutable()[0].set(partView);
    choose(op, part, target, ranks);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}
