//===- LibraryCalls.cpp - What libraries do -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matches operations, and the elementwise operations behind them, with library calls.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dovetail;
using plan::PostOpAttr;
using plan::PostOpKind;

/// True if the plan can state the windows of `op`. Larger ones are mistakes that a generated kernel gets right, too.
template <typename OpT> static bool hasModestWindows(OpT op) {
  constexpr int64_t limit = int64_t(1) << 20;
  auto isModest = [](ArrayRef<int64_t> values) {
    return llvm::all_of(values, [](int64_t value) { return -limit <= value && value <= limit; });
  };
  return isModest(op.getStrides()) && isModest(op.getDilations()) && isModest(op.getPadsLow()) &&
         isModest(op.getPadsHigh());
}

bool dovetail::hasLibraryCall(Operation *op, ArrayRef<StringRef> libraries) {
  // Libraries here compute in f32; other element types have generated kernels.
  auto isF32 = [](Type type) { return getElementTypeOrSelf(type).isF32(); };
  if (op->getNumResults() != 1 || !llvm::all_of(op->getOperandTypes(), isF32) || !isF32(op->getResult(0).getType()))
    return false;
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  if (result.getNumElements() == 0)
    return false;
  auto has = [&](StringRef name) { return llvm::is_contained(libraries, name); };
  return TypeSwitch<Operation *, bool>(op)
      .Case<ConvOp, ConvTransposeOp>([&](auto conv) {
        return has("convolution") && result.getRank() >= 3 && result.getRank() <= 5 && hasModestWindows(conv);
      })
      .Case([&](MatMulOp) { return has("matmul"); })
      .Case([&](PoolOp pool) {
        if (!has("pool"))
          return false;
        // The library's dilated pooling is its slow reference, and not right where a window hits padding alone.
        for (auto [kernel, dilation] : llvm::zip_equal(pool.getKernel(), pool.getDilations()))
          if (kernel > 1 && dilation > 1)
            return false;
        if (result.getRank() < 3 || result.getRank() > 5 || pool.getCeil() || !hasModestWindows(pool))
          return false;
        return pool.getKind() != PoolKind::Lp;
      })
      .Default(false);
}

/// The value of a constant whose elements are all equal.
static std::optional<float> getSplat(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant)
    return std::nullopt;
  auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!elements || !elements.isSplat() || !elements.getElementType().isF32())
    return std::nullopt;
  return elements.getSplatValue<APFloat>().convertToFloat();
}

/// True if the library can read `tensor` while it writes `result`: same format, or a vector that broadcasts.
static bool isPostTensor(Value tensor, Value result, const Formats &formats) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto resultType = cast<RankedTensorType>(result.getType());
  if (!type.getElementType().isF32())
    return false;
  if (ShardingAttr sharding = getSharding(tensor); sharding && sharding.isPartial())
    return false;
  if (type.getShape() == resultType.getShape())
    return formats.lookup(tensor) == formats.lookup(result);
  // At most one dimension that is not 1: its order in memory does not matter.
  return llvm::count_if(type.getShape(), [](int64_t extent) { return extent != 1; }) <= 1;
}

static std::optional<PostOpAttr> getPostOp(Operation *op, Value input, Value &tensor, const Formats &formats) {
  MLIRContext *context = op->getContext();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  auto other = [&] { return op->getOperand(op->getOperand(0) == input ? 1 : 0); };
  auto withTensor = [&](PostOpKind kind) -> std::optional<PostOpAttr> {
    Value candidate = other();
    if (candidate == input || !isPostTensor(candidate, op->getResult(0), formats))
      return std::nullopt;
    tensor = candidate;
    return PostOpAttr::get(context, kind);
  };
  auto plain = [&](PostOpKind kind) -> std::optional<PostOpAttr> { return PostOpAttr::get(context, kind); };
  auto with = [&](PostOpKind kind, float alpha, float beta = 0) -> std::optional<PostOpAttr> {
    return PostOpAttr::get(context, kind, alpha, beta);
  };
  return TypeSwitch<Operation *, std::optional<PostOpAttr>>(op)
      .Case([&](AddOp) { return withTensor(PostOpKind::AddTensor); })
      .Case([&](MulOp) { return withTensor(PostOpKind::MulTensor); })
      .Case([&](MaxOp) -> std::optional<PostOpAttr> {
        std::optional<float> bound = getSplat(other());
        return bound ? with(PostOpKind::Clip, *bound, infinity) : std::nullopt;
      })
      .Case([&](MinOp) -> std::optional<PostOpAttr> {
        std::optional<float> bound = getSplat(other());
        return bound ? with(PostOpKind::Clip, -infinity, *bound) : std::nullopt;
      })
      .Case([&](ReluOp) { return plain(PostOpKind::Relu); })
      .Case([&](SigmoidOp) { return plain(PostOpKind::Sigmoid); })
      .Case([&](TanhOp) { return plain(PostOpKind::Tanh); })
      .Case([&](HardSwishOp) { return plain(PostOpKind::HardSwish); })
      .Case(
          [&](GeluOp gelu) { return plain(gelu.getApproximate() == "tanh" ? PostOpKind::GeluTanh : PostOpKind::Gelu); })
      .Case([&](LeakyReluOp relu) { return with(PostOpKind::LeakyRelu, relu.getAlpha().convertToFloat()); })
      .Case([&](EluOp elu) { return with(PostOpKind::Elu, elu.getAlpha().convertToFloat()); })
      .Case([&](SwishOp swish) { return with(PostOpKind::Swish, swish.getAlpha().convertToFloat()); })
      .Case([&](HardSigmoidOp sigmoid) {
        return with(PostOpKind::HardSigmoid, sigmoid.getAlpha().convertToFloat(), sigmoid.getBeta().convertToFloat());
      })
      .Default(std::nullopt);
}

void dovetail::absorbPostOps(Group &group, const Formats &formats, const DenseSet<Operation *> &taken) {
  // Pooling has no epilogue.
  if (isa<PoolOp>(group.call))
    return;
  Value value = group.call->getResult(0);
  ShardingAttr sharding = getSharding(value);
  if (sharding && sharding.isPartial())
    return;
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (taken.contains(user) || user->getNumResults() != 1 || user->getResult(0).getType() != value.getType() ||
        formats.lookup(user->getResult(0)) != formats.lookup(value))
      return;
    Value tensor;
    std::optional<PostOpAttr> postOp = getPostOp(user, value, tensor, formats);
    if (!postOp)
      return;
    group.postOps.push_back(*postOp);
    if (tensor)
      group.postTensors.push_back(tensor);
    group.ops.push_back(user);
    value = user->getResult(0);
  }
}
