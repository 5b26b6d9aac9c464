//===- WidenCalls.cpp - Give libraries types that they have -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Computes operations that a library has in a wider type only in that type, between conversions.
//
//===----------------------------------------------------------------------===//

#include "LibraryPass.h"
#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/IR/TypeUtilities.h"

namespace dovetail {
#define GEN_PASS_DEF_WIDENCALLS
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

/// Rewrites the operations of one block.
class CallWidener {
public:
  CallWidener(Block &block, const Libraries &libraries) : block(block), libraries(libraries) {}

  void run();

private:
  void widen(Operation *op, const LibraryCall &call);
  /// Creates `op` on wide operands, with a wide result, in its place. The former one goes at the end of the pass.
  Operation *rebuild(Operation *op, FloatType type);
  /// `value` in `type`, for an operation at `builder`; as it is if its elements are of `type` or no floats.
  Value getWide(Value value, FloatType type, OpBuilder &builder);
  /// Computes the operations behind `op`, which became `wide`, in `type`, too, as far as `call` applies them to the
  /// result.
  void widenEpilogue(Operation *op, Operation *wide, const LibraryCall &call, FloatType type);
  /// The type of the sums that `op` reads and that are still partial, if these are wide; else null.
  FloatType getWideSum(Operation *op);
  /// Computes `op`, which reads such sums, in `type`, too. Where it completes them the result is rounded.
  void passSum(Operation *op, FloatType type);
  /// Makes the users of the result of `op` read that of `wide`, rounded.
  void narrow(Operation *op, Operation *wide);

  Block &block;
  const Libraries &libraries;
  /// Wide forms of narrow values.
  DenseMap<Value, Value> wideOf;
  /// Operations that go at the end: those that have been created anew, and conversions that nobody needs any more.
  DenseSet<Operation *> replaced;
};

struct WidenCalls : LibraryPass<dovetail::impl::WidenCallsBase<WidenCalls>> {
  using LibraryPass::LibraryPass;

  LogicalResult run(func::FuncOp function, const Libraries &callable) override {
    CallWidener(function.getBody().front(), callable).run();
    return success();
  }
};

} // namespace

static RankedTensorType withElementType(Type type, FloatType elementType) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), elementType, tensor.getEncoding());
}

/// Whether the pieces of `value` leave none of its elements out.
static bool coversAll(Value value) {
  ShardingAttr sharding = getSharding(value);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return !sharding || llvm::all_of(llvm::zip_equal(sharding.getDims(), shape), [](auto pair) {
    auto [dim, extent] = pair;
    return dim.covers(extent);
  });
}

/// `value` in `type`, on every rank what it holds of it.
static Value convert(OpBuilder &builder, Value value, FloatType type) {
  auto cast =
      CastOp::create(builder, value.getLoc(), withElementType(value.getType(), type), value, TypeAttr::get(type));
  if (ShardingAttr sharding = getSharding(value))
    llvm::cast<SplitOpInterface>(cast.getOperation())
        .setLoopShardings(LoopShardingsAttr::get(builder.getContext(), sharding.getMesh(), sharding.getDims()));
  return cast;
}

Value CallWidener::getWide(Value value, FloatType type, OpBuilder &builder) {
  Type narrow = getElementTypeOrSelf(value.getType());
  if (!wideOf.contains(value) && (narrow == type || !isa<FloatType>(narrow)))
    return value;
  Value &wide = wideOf[value];
  if (wide) {
    // An epilogue comes later than operations that are looked at after it.
    Operation *user = &*builder.getInsertionPoint();
    if (auto cast = wide.getDefiningOp<CastOp>(); cast && !cast->isBeforeInBlock(user))
      cast->moveBefore(user);
    return wide;
  }
  // A uniform constant stays one, for epilogues to recognise and kernels to contain.
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (elements && elements.isSplat()) {
    auto number = elements.getSplatValue<APFloat>();
    bool losesInfo;
    number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    OpBuilder atConstant(constant);
    Operation *clone = atConstant.clone(*constant);
    auto wideType = withElementType(value.getType(), type);
    cast<ConstantOp>(clone).setValueAttr(DenseElementsAttr::get(elements.getType().clone(type), number));
    clone->getResult(0).setType(wideType);
    return wide = clone->getResult(0);
  }
  // What no rank needs of a value is not computed: where its pieces leave gaps, the conversion comes before they are
  // cut.
  if (auto reshard = value.getDefiningOp<ReshardOp>(); reshard && !coversAll(value)) {
    OpBuilder atReshard(reshard);
    Value source = getWide(reshard.getOperand(), type, atReshard);
    return wideOf[value] =
               ReshardOp::create(atReshard, reshard.getLoc(), withElementType(value.getType(), type), source);
  }
  return wide = convert(builder, value, type);
}

Operation *CallWidener::rebuild(Operation *op, FloatType type) {
  OpBuilder builder(op);
  SmallVector<Value> operands =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return getWide(operand, type, builder); });
  Operation *wide = builder.clone(*op);
  wide->setOperands(operands);
  wide->getResult(0).setType(withElementType(op->getResult(0).getType(), type));
  replaced.insert(op);
  return wide;
}

void CallWidener::narrow(Operation *op, Operation *wide) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(wide);
  Value result = op->getResult(0);
  auto elementType = cast<FloatType>(getElementTypeOrSelf(result.getType()));
  result.replaceAllUsesWith(convert(builder, wide->getResult(0), elementType));
}

void CallWidener::widenEpilogue(Operation *op, Operation *wide, const LibraryCall &call, FloatType type) {
  Type narrowType = getElementTypeOrSelf(op->getResult(0).getType());
  while (op->getResult(0).hasOneUse()) {
    OpOperand &use = *op->getResult(0).use_begin();
    // What is computed in the wider type anyway, such as a batch normalisation, needs no rounding before it or after
    // it.
    auto cast = dyn_cast<CastOp>(use.getOwner());
    if (cast && (cast.getTo() == type || cast.getTo() == narrowType) &&
        getSharding(cast.getResult()) == getSharding(op->getResult(0))) {
      wideOf[cast.getResult()] = wide->getResult(0);
      replaced.insert(cast);
      op = cast;
      continue;
    }
    auto user = dyn_cast<PostOpInterface>(use.getOwner());
    std::optional<PostOp> postOp = user ? user.getPostOp(use.getOperandNumber()) : std::nullopt;
    if (!postOp || !call.library->hasEpilogue(call.shape, *postOp) ||
        user->getResult(0).getType() != op->getResult(0).getType() ||
        (postOp->operand && isPartial(user->getOperand(*postOp->operand))))
      break;
    wideOf[op->getResult(0)] = wide->getResult(0);
    op = user;
    wide = rebuild(op, type);
  }
  if (getElementTypeOrSelf(op->getResult(0).getType()) == type)
    op->getResult(0).replaceAllUsesWith(wide->getResult(0));
  else
    narrow(op, wide);
}

FloatType CallWidener::getWideSum(Operation *op) {
  for (Value operand : op->getOperands())
    if (Value wide = isPartial(operand) ? wideOf.lookup(operand) : Value())
      return cast<FloatType>(getElementTypeOrSelf(wide.getType()));
  return {};
}

void CallWidener::passSum(Operation *op, FloatType type) {
  // A sum of which only parts with gaps are needed is complete, and rounded, before it is cut.
  auto reshard = dyn_cast<ReshardOp>(op);
  if (reshard && !isPartial(reshard.getResult()) && !coversAll(reshard.getResult())) {
    OpBuilder builder(reshard);
    Value contributions = wideOf.lookup(reshard.getOperand());
    Value sum = ReshardOp::create(
        builder, reshard.getLoc(),
        withSharding(cast<RankedTensorType>(contributions.getType()), getBoxSharding(contributions)), contributions);
    auto narrowType = cast<FloatType>(getElementTypeOrSelf(reshard.getType()));
    reshard.getOperandMutable().assign(convert(builder, sum, narrowType));
    return;
  }
  Operation *wide = rebuild(op, type);
  if (isPartial(op->getResult(0)))
    wideOf[op->getResult(0)] = wide->getResult(0);
  else
    narrow(op, wide);
}

void CallWidener::widen(Operation *op, const LibraryCall &call) {
  FloatType type = call.library->getComputeType(call.shape);
  bool isSum = isPartial(op->getResult(0));
  Operation *wide = rebuild(op, type);
  // Each rank's contribution would be rounded before they are added: so they stay wide until they are.
  if (isSum)
    wideOf[op->getResult(0)] = wide->getResult(0);
  else
    widenEpilogue(op, wide, {call.library, *CallShape::find(wide)}, type);
}

void CallWidener::run() {
  SmallVector<Operation *> ops = llvm::map_to_vector(block, [](Operation &op) { return &op; });
  // In order, so that all that an operation reads is wide by then, if it is going to be.
  for (Operation *op : ops) {
    if (replaced.contains(op) || op->getNumRegions() > 0 || op->getNumResults() != 1)
      continue;
    if (FloatType type = getWideSum(op))
      passSum(op, type);
    else if (!libraries.findCall(op))
      if (LibraryCall call = libraries.find(op))
        widen(op, call);
  }
  // Code in regions has types of its own, and reads what it did.
  for (Operation *op : llvm::reverse(ops))
    if (replaced.contains(op) && op->use_empty())
      op->erase();
}
