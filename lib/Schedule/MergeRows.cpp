//===- MergeRows.cpp - Make batches rows of products -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides which batch dimensions of a matrix product are rows of one large product.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/MeshPass.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Layout/Strides.h"
#include "dovetail/Schedule/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_MERGEROWS
#include "dovetail/Schedule/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct MergeRows : MeshPass<dovetail::impl::MergeRowsBase<MergeRows>> {
  LogicalResult run(MeshOp) override;
};

/// A tensor of a product: how it lies in memory on each rank.
class Matrix {
public:
  Matrix(Value ref, const layout::Mesh &mesh);

  bool isKnown() const { return format != nullptr; }
  /// Whether the `rowDims` dimensions before the last are one in memory on `rank`, which reads or writes as many
  /// elements of the output's dimensions as `computed` says.
  bool hasRows(ArrayRef<int64_t> computed, int rank, int64_t rowDims) const;

private:
  bool areOne(ArrayRef<int64_t> computed, ArrayRef<int64_t> extents, int64_t rowDims) const;

  const layout::Mesh &mesh;
  plan::FormatAttr format; ///< Null if it is not known.
  bool isConstant = false;
  ArrayRef<int64_t> shape;
  layout::Sharding held;
};
} // namespace

Matrix::Matrix(Value ref, const layout::Mesh &mesh) : mesh(mesh) {
  plan::BufferOp buffer = plan::getBufferOp(ref);
  if (!buffer)
    return;
  format = buffer.getFormat();
  isConstant = buffer.getKind() == plan::BufferKind::Constant;
  shape = buffer.getTensorType().getShape();
  held = toLayout(getSharding(buffer.getTensorType()), mesh, shape.size());
}

/// The same in packed memory for a box of these extents.
bool Matrix::areOne(ArrayRef<int64_t> computed, ArrayRef<int64_t> extents, int64_t rowDims) const {
  std::vector<int64_t> strides = format.toLayout().strides(std::span(extents.data(), extents.size()));
  size_t last = shape.size() - 1, count = std::min<size_t>(rowDims, last);
  SmallVector<int64_t> rows;
  for (size_t dim = last - count; dim < last; ++dim)
    rows.push_back(shape[dim] == 1 ? 1 : computed[computed.size() - shape.size() + dim]);
  return layout::mergeDims(rows, std::span(strides).subspan(last - count, count)).has_value();
}

bool Matrix::hasRows(ArrayRef<int64_t> computed, int rank, int64_t rowDims) const {
  layout::Box box = held.boxOf(mesh, shape, rank);
  SmallVector<int64_t> extents;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    extents.push_back(box[dim].size());
  if (!areOne(computed, extents, rowDims))
    return false;
  // Constants may be read from the artifact as it is mapped, where a part has the strides of the whole.
  return !isConstant || areOne(computed, shape, rowDims);
}

/// How many dimensions of the output can be rows.
static int64_t countRowDims(plan::MatMulOp op, const layout::Mesh &mesh) {
  Matrix a(op.getA(), mesh), output(op.getOutput(), mesh);
  if (op.getForm()->transposesA || !a.isKnown() || !output.isKnown())
    return 1;
  ArrayRef<int64_t> shape = plan::getTensor(op.getOutput()).getShape();
  int64_t rank = shape.size(), most = 1;
  calls::ContractionRoles roles = op.getRoles();
  while (most + 1 < rank && !roles.differs(1, rank - 2 - most))
    ++most;

  SmallVector<DimShardingAttr> dims = plan::getDims(op.getLoops());
  layout::Sharding loops = toLayout(ArrayRef(dims).drop_back(), mesh);
  for (int number = 0, ranks = mesh.numRanks(); number < ranks; ++number) {
    layout::Box box = loops.boxOf(mesh, shape, number);
    if (box.empty())
      continue;
    SmallVector<int64_t> computed;
    for (int64_t dim = 0; dim < rank; ++dim)
      computed.push_back(box[dim].size());
    while (most > 1 && !(a.hasRows(computed, number, most) && output.hasRows(computed, number, most)))
      --most;
  }
  while (most > 1 && shape[rank - 1 - most] == 1)
    --most;
  return most;
}

LogicalResult MergeRows::run(MeshOp) {
  getOperation().walk([&](plan::MatMulOp op) { op.setRowDims(countRowDims(op, mesh)); });
  return success();
}
