//===- ExpandExp.cpp - Exponentials of f32 --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how `math.exp` of f32 becomes arithmetic: the one of MLIR takes half as many instructions again, most of
// them to keep within ranges.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// exp(x) = 2^n exp(r), where n is x / ln 2, rounded, and r = x - n ln 2. Within one unit in the last place;
/// zero for results below 2^-126.5.
struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    Location loc = op.getLoc();
    auto constant = [&](float value) -> Value {
      return arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(value));
    };
    auto fma = [&](Value a, Value b, Value c) -> Value { return math::FmaOp::create(rewriter, loc, a, b, c); };
    // Both pass on what is not a number, and are one instruction.
    auto clamp = [&](arith::CmpFPredicate predicate, Value x, Value bound) -> Value {
      Value isBeyond = arith::CmpFOp::create(rewriter, loc, predicate, x, bound);
      return arith::SelectOp::create(rewriter, loc, isBeyond, bound, x);
    };

    // All that is lower gives 2^-127, which is zero. What is larger than n = 127 has a large r, and so overflows.
    Value x = clamp(arith::CmpFPredicate::OLT, op.getOperand(), constant(-88.0f));
    // Numbers of this magnitude have no fractions, and n + 127, the exponent of 2^n, in their lowest bits.
    constexpr float shift = 12582912.0f + 127.0f;
    Value shifted = fma(x, constant(0x1.715476p+0f), constant(shift));
    shifted = clamp(arith::CmpFPredicate::OGT, shifted, constant(shift + 127.0f));
    Value n = arith::SubFOp::create(rewriter, loc, shifted, constant(shift));
    Value r = fma(n, constant(-0x1.63p-1f), x);
    r = fma(n, constant(0x1.bd0106p-13f), r);
    Value integer = arith::BitcastOp::create(rewriter, loc, rewriter.getI32Type(), shifted);
    Value bits = arith::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(23));
    Value power = arith::BitcastOp::create(rewriter, loc, rewriter.getF32Type(),
                                           arith::ShLIOp::create(rewriter, loc, integer, bits));

    // The polynomial of least relative error (1.5e-9) for r in [-0.3466, 0.6932] that begins with 1 + r.
    Value result = constant(0x1.e839b4p-13f);
    for (float coefficient :
         {0x1.6aa29ep-10f, 0x1.10db66p-7f, 0x1.555884p-5f, 0x1.55557ep-3f, 0x1.fffffcp-2f, 1.0f, 1.0f})
      result = fma(result, r, constant(coefficient));
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, result, power);
    return success();
  }
};
} // namespace

void dovetail::populateExpPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandExp>(patterns.getContext(), /*benefit=*/2);
}
