//===- TransposeConstants.cpp - Weights in the order products read them ---===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements dovetail-transpose-constants.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "dovetail/Dialect/Dovetail/Ops/NarrowOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"

namespace dovetail {
#define GEN_PASS_DEF_TRANSPOSECONSTANTS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

static int64_t getElementSize(Type type) { return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8); }

static SmallVector<int64_t> permute(ArrayRef<int64_t> values, ArrayRef<int64_t> permutation) {
  return llvm::map_to_vector(permutation, [&](int64_t dim) { return values[dim]; });
}

/// Whether `value` is computed, for this use alone, of constants that are stored in elements of 8 bits or fewer, but
/// for a part of them.
static bool isOfNarrowConstants(Value value) {
  int64_t narrow = 0, others = 0;
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (next.getUsers().empty() || !op || op->getNumResults() != 1)
      return false;
    auto constant = dyn_cast<ConstantOp>(op);
    if (constant && !isa<DenseResourceElementsAttr>(constant.getValue()))
      continue;
    if (!next.hasOneUse())
      return false;
    if (auto unpack = dyn_cast<UnpackOp>(op); unpack && unpack.getOperand().getDefiningOp<ConstantOp>()) {
      narrow += typeOf(next).getNumElements();
      continue;
    }
    int64_t bytes = typeOf(next).getNumElements() * getElementSize(typeOf(next).getElementType());
    if (constant)
      (typeOf(next).getElementTypeBitWidth() <= 8 ? narrow : others) += bytes;
    else if (!isa<DefinitionOpInterface>(op) || op->getNumOperands() == 0)
      return false;
    llvm::append_range(pending, op->getOperands());
  }
  return narrow > 2 * others;
}

/// The elements of a tensor of `shape` and `size` bytes each, in the order of dimensions that `permutation` says.
static AsmResourceBlob permute(ArrayRef<char> from, ArrayRef<int64_t> shape, ArrayRef<int64_t> permutation,
                               int64_t size) {
  SmallVector<int64_t> strides(shape.size(), size);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  SmallVector<int64_t> extents = permute(shape, permutation), steps = permute(strides, permutation);
  int64_t count = ShapedType::getNumElements(shape), last = extents.empty() ? 1 : extents.back();
  AsmResourceBlob blob = HeapAsmResourceBlob::allocate(count * size, /*align=*/64);
  char *to = blob.getMutableData().data();
  SmallVector<int64_t> index(extents.size(), 0);
  // Lines next to each other read neighbours in memory, so that the cache has them.
  for (int64_t done = 0; done < count; done += last) {
    const char *line = from.data();
    for (size_t dim = 0; dim + 1 < extents.size(); ++dim)
      line += index[dim] * steps[dim];
    int64_t step = extents.empty() ? 0 : steps.back();
    if (size == 1)
      for (int64_t i = 0; i < last; ++i)
        *to++ = line[i * step];
    else
      for (int64_t i = 0; i < last; ++i, to += size)
        std::memcpy(to, line + i * step, size);
    for (size_t dim = extents.size() - 1; dim-- > 0;)
      if (++index[dim] < extents[dim])
        break;
      else
        index[dim] = 0;
  }
  return blob;
}

/// The dimensions of the operand of `op` that each of its own consists of; nothing if one is in several.
static std::optional<SmallVector<SmallVector<int64_t>>> getGroups(ReshapeOp op) {
  ArrayRef<int64_t> from = shapeOf(op.getOperand()), to = shapeOf(op);
  SmallVector<SmallVector<int64_t>> groups(to.size());
  size_t next = 0;
  for (auto [dim, extent] : llvm::enumerate(to)) {
    int64_t product = 1;
    while (next < from.size() && product * from[next] <= extent && (product < extent || from[next] == 1)) {
      product *= from[next];
      groups[dim].push_back(static_cast<int64_t>(next++));
    }
    if (product != extent)
      return std::nullopt;
  }
  return next == from.size() ? std::optional(std::move(groups)) : std::nullopt;
}

/// `value` with its dimensions in another order, computed of constants in another order as far as possible. Names of
/// the model are of tensors that are not transposed, so those that are have none.
static Value transpose(OpBuilder &builder, Value value, ArrayRef<int64_t> permutation) {
  Operation *op = value.getDefiningOp();
  Location loc = builder.getUnknownLoc();
  RankedTensorType type = typeOf(value);
  auto permuted = cast<RankedTensorType>(type.clone(permute(type.getShape(), permutation)));
  auto withOperands = [&](ValueRange operands) -> Value {
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    copy->setLoc(loc);
    copy->getResult(0).setType(permuted);
    return copy->getResult(0);
  };
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return ConstantOp::create(builder, loc, splat.resizeSplat(permuted));
    auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue());
    if (!resource)
      return TransposeOp::create(builder, loc, value, permutation);
    DenseResourceElementsHandle handle = resource.getRawHandle();
    AsmResourceBlob *blob = handle.getBlob();
    // Data that are missing are missing in any order.
    auto &manager = DenseResourceElementsHandle::getManagerInterface(builder.getContext());
    return ConstantOp::create(
        builder, loc,
        blob ? DenseResourceElementsAttr::get(
                   permuted, handle.getKey(),
                   permute(blob->getData(), type.getShape(), permutation, getElementSize(type.getElementType())))
             : DenseResourceElementsAttr::get(permuted, manager.insert(handle.getKey())));
  }
  if (op->hasTrait<dovetail::Elementwise>()) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      if (typeOf(operand).getNumElements() != 1) {
        SmallVector<int64_t> shape = alignedShape(operand, permutation.size());
        operand = shape.size() == shapeOf(operand).size() ? operand : reshapeTo(builder, loc, operand, shape);
        operand = transpose(builder, operand, permutation);
      }
      operands.push_back(operand);
    }
    return withOperands(operands);
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op);
      broadcast && typeOf(broadcast.getOperand()).getRank() == type.getRank())
    return withOperands(transpose(builder, broadcast.getOperand(), permutation));
  if (auto unpack = dyn_cast<UnpackOp>(op)) {
    int64_t dim = llvm::find(permutation, static_cast<int64_t>(unpack.getDim())) - permutation.begin();
    return UnpackOp::create(builder, loc, permuted, transpose(builder, unpack.getOperand(), permutation), dim);
  }
  if (auto slice = dyn_cast<SliceOp>(op))
    return SliceOp::create(builder, loc, transpose(builder, slice.getOperand(), permutation),
                           permute(slice.getStarts(), permutation), permute(slice.getSizes(), permutation),
                           permute(slice.getSteps(), permutation));
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    if (std::optional<SmallVector<SmallVector<int64_t>>> groups = getGroups(reshape)) {
      SmallVector<int64_t> inner;
      for (int64_t dim : permutation)
        llvm::append_range(inner, (*groups)[dim]);
      return withOperands(transpose(builder, reshape.getOperand(), inner));
    }
  return TransposeOp::create(builder, loc, value, permutation);
}

namespace {
struct TransposeConstants : dovetail::impl::TransposeConstantsBase<TransposeConstants> {
  using TransposeConstantsBase::TransposeConstantsBase;

  void runOnOperation() override {
    SmallVector<TransposeOp> transposes;
    getOperation()->walk([&](TransposeOp op) {
      auto isSecondFactor = [](OpOperand &use) { return isa<MatMulOp>(use.getOwner()) && use.getOperandNumber() == 1; };
      auto type = dyn_cast<FloatType>(op.getType().getElementType());
      if (type && !isNarrow(type) && llvm::all_of(op->getUses(), isSecondFactor) && isConstantOnly(op.getOperand()) &&
          isOfNarrowConstants(op.getOperand()))
        transposes.push_back(op);
    });
    for (TransposeOp op : transposes) {
      OpBuilder builder(op);
      SmallVector<Operation *> unused = {op};
      Value transposed = transpose(builder, op.getOperand(), op.getPermutation());
      transposed.setLoc(op.getLoc());
      op.replaceAllUsesWith(transposed);
      while (!unused.empty()) {
        Operation *next = unused.pop_back_val();
        if (!next || !isOpTriviallyDead(next))
          continue;
        for (Value operand : next->getOperands())
          if (!llvm::is_contained(unused, operand.getDefiningOp()))
            unused.push_back(operand.getDefiningOp());
        next->erase();
      }
    }
  }
};
} // namespace
