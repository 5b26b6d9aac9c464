//===- PackConstants.cpp - Constants of elements of few bits -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements dovetail-pack-constants.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"
#include "dovetail/Dialect/Dovetail/Ops/NarrowOps.h"
#include "dovetail/Transforms/Passes.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"

namespace dovetail {
#define GEN_PASS_DEF_PACKCONSTANTS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// The dimension along which elements share bytes: not the last one, if there is another, so that loops over it read
/// bytes that follow each other, and shift them by the same number of bits.
static int64_t chooseDim(ArrayRef<int64_t> shape, int64_t perByte) {
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    if (shape[dim] >= perByte)
      return dim;
  return static_cast<int64_t>(shape.size()) - 1;
}

/// Elements that are packed along the last dimension, which does not leave bits over, or that are a byte each.
namespace {
struct Elements {
  ArrayRef<char> bytes;
  /// The logarithm of how many of them there are in a byte.
  unsigned log;

  int64_t operator[](int64_t index) const {
    return static_cast<unsigned char>(bytes[index >> log]) >> ((index & ((1 << log) - 1)) << (3 - log));
  }
};
} // namespace

/// The bytes of a tensor of `shape`, with `perByte` elements of those along `dim` in one.
static AsmResourceBlob pack(Elements elements, ArrayRef<int64_t> shape, int64_t dim, int64_t perByte) {
  int64_t outer = ShapedType::getNumElements(shape.take_front(dim));
  int64_t inner = ShapedType::getNumElements(shape.drop_front(dim + 1));
  int64_t extent = shape[dim], packedExtent = llvm::divideCeil(extent, perByte);
  int64_t width = 8 / perByte;
  AsmResourceBlob blob = HeapAsmResourceBlob::allocate(outer * packedExtent * inner, /*align=*/64);
  MutableArrayRef<char> bytes = blob.getMutableData();
  llvm::fill(bytes, 0);
  for (int64_t row = 0; row < outer * extent; ++row) {
    int64_t at = row % extent;
    char *to = bytes.data() + (row / extent * packedExtent + at / perByte) * inner;
    int64_t shift = at % perByte * width;
    for (int64_t i = 0; i < inner; ++i)
      to[i] = static_cast<char>(to[i] | (elements[row * inner + i] & ((1 << width) - 1)) << shift);
  }
  return blob;
}

namespace {
struct PackConstants : dovetail::impl::PackConstantsBase<PackConstants> {
  using PackConstantsBase::PackConstantsBase;

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<ConstantOp, UnpackOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (auto constant = dyn_cast<ConstantOp>(op))
        packConstant(constant);
      else
        repack(cast<UnpackOp>(op));
  }

  /// Packs the elements of a constant.
  void packConstant(ConstantOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    auto resource = dyn_cast<DenseResourceElementsAttr>(op.getValue());
    if (!resource || !isNarrow(type.getElementType()) || type.getRank() == 0)
      return;
    int64_t perByte = UnpackOp::getElementsPerByte(type.getElementType());
    if (perByte == 1)
      return;
    replace(op, type, resource, /*stored=*/1, perByte);
    op.erase();
  }

  /// Packs elements that are packed along the last dimension along another one.
  void repack(UnpackOp op) {
    auto constant = op.getOperand().getDefiningOp<ConstantOp>();
    auto resource = constant ? dyn_cast<DenseResourceElementsAttr>(constant.getValue()) : nullptr;
    RankedTensorType type = op.getType();
    int64_t perByte = UnpackOp::getElementsPerByte(type.getElementType()), last = type.getRank() - 1;
    if (!resource || op.getDim() != static_cast<uint64_t>(last) || type.getShape().back() % perByte != 0 ||
        chooseDim(type.getShape(), perByte) == last)
      return;
    replace(op, type, resource, /*stored=*/perByte, perByte);
    op.erase();
    if (isOpTriviallyDead(constant))
      constant.erase();
  }

  /// Replaces `op`, whose elements are `resource` with `stored` of them in a byte, by others of which there are
  /// `perByte`.
  void replace(Operation *op, RankedTensorType type, DenseResourceElementsAttr resource, int64_t stored,
               int64_t perByte) {
    int64_t dim = chooseDim(type.getShape(), perByte);
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = llvm::divideCeil(shape[dim], perByte);
    OpBuilder builder(op);
    auto packedType = RankedTensorType::get(shape, builder.getIntegerType(8, /*isSigned=*/false));
    DenseResourceElementsHandle handle = resource.getRawHandle();
    DenseResourceElementsAttr packed;
    if (AsmResourceBlob *blob = handle.getBlob()) {
      packed = DenseResourceElementsAttr::get(
          packedType, handle.getKey(), pack({blob->getData(), llvm::Log2_64(stored)}, type.getShape(), dim, perByte));
    } else {
      // Data that are missing are missing packed.
      auto &manager = DenseResourceElementsHandle::getManagerInterface(&getContext());
      packed = DenseResourceElementsAttr::get(packedType, manager.insert(handle.getKey()));
    }
    Value constant = ConstantOp::create(builder, op->getLoc(), packed);
    op->getResult(0).replaceAllUsesWith(UnpackOp::create(builder, op->getLoc(), type, constant, dim).getResult());
  }
};
} // namespace
