//===- Lowering.cpp - What lowering shares between targets -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines lowerKernelBodies and the lowering of memory accesses.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// Mathematical functions
//===----------------------------------------------------------------------===//

/// Functions of f32 whose polynomial approximation in MLIR is within a few units in the last place for all arguments;
/// the others are calls of libm, of libmvec inside vectorised loops, or of libdevice.
static bool hasGoodApproximation(StringRef name) {
  static const StringRef good[] = {"math.log", "math.log1p", "math.tanh", "math.erf"};
  return llvm::is_contained(good, name);
}

static LogicalResult expandMath(Operation *kernels) {
  RewritePatternSet patterns(kernels->getContext());
  populateMathPolynomialApproximationPatterns(patterns, hasGoodApproximation);
  populateExpPatterns(patterns);
  arith::populateExpandBFloat16Patterns(patterns);
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  GreedyRewriteConfig config;
  config.enableFolding(false);
  return applyPatternsGreedily(kernels, std::move(patterns), config);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {
/// The address of an element. Not `inbounds`: `base` is the address of coordinate zero, which may be outside of the
/// buffer.
Value getAddress(OpBuilder &builder, Location loc, Type elementType, Value base, Value offset) {
  return LLVM::GEPOp::create(builder, loc, base.getType(), elementType, base, ArrayRef<LLVM::GEPArg>{offset});
}

static unsigned getAlignment(plan::LoadOp op) { return op.getAlignment().value_or(0); }
static unsigned getAlignment(plan::ReadBackOp) { return 0; }

template <typename OpT> struct LowerLoad : ConvertOpToLLVMPattern<OpT> {
  using ConvertOpToLLVMPattern<OpT>::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = this->getTypeConverter()->convertType(op.getType());
    bool isBoolean = type.isInteger(1);
    Type inMemory = isBoolean ? rewriter.getI8Type() : type;
    Value address = getAddress(rewriter, op.getLoc(), inMemory, adaptor.getBase(), adaptor.getOffset());
    Value value = LLVM::LoadOp::create(rewriter, op.getLoc(), inMemory, address, getAlignment(op));
    if (isBoolean)
      value = LLVM::TruncOp::create(rewriter, op.getLoc(), type, value);
    rewriter.replaceOp(op, value);
    return success();
  }
};

struct LowerStore : ConvertOpToLLVMPattern<plan::StoreOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(plan::StoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value value = adaptor.getValue();
    if (value.getType().isInteger(1))
      value = LLVM::ZExtOp::create(rewriter, op.getLoc(), rewriter.getI8Type(), value);
    Value address = getAddress(rewriter, op.getLoc(), value.getType(), adaptor.getBase(), adaptor.getOffset());
    rewriter.replaceOpWithNewOp<LLVM::StoreOp>(op, value, address, op.getAlignment().value_or(0));
    return success();
  }
};
} // namespace

void dovetail::populateKernelMemoryPatterns(const LLVMTypeConverter &types, RewritePatternSet &patterns) {
  patterns.add<LowerLoad<plan::LoadOp>, LowerLoad<plan::ReadBackOp>, LowerStore>(types);
}

/// Threads may report at the same time.
static void expandCheck(plan::CheckIndexOp check) {
  OpBuilder builder(check);
  Location loc = check.getLoc();
  auto branch = scf::IfOp::create(builder, loc, check.getIsWrong(), /*withElseRegion=*/false);
  builder.setInsertionPoint(branch.thenYield());
  Value given = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), check.getGiven());
  Value address =
      LLVM::GEPOp::create(builder, loc, check.getRecords().getType(), builder.getI64Type(), check.getRecords(),
                          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(check.getNumber())});
  LLVM::StoreOp::create(builder, loc, given, address, /*alignment=*/8, /*isVolatile=*/false, /*isNonTemporal=*/false,
                        /*isInvariantGroup=*/false, LLVM::AtomicOrdering::monotonic);
  check.erase();
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

static LogicalResult lowerLoops(Operation *kernels) {
  MLIRContext *context = kernels->getContext();
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  ConversionTarget target(*context);
  target.addIllegalDialect<scf::SCFDialect>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(kernels, target, std::move(patterns));
}

LogicalResult dovetail::lowerKernelBodies(Operation *kernels, ArrayRef<StringRef> emulated) {
  kernels->getContext()->loadDialect<cf::ControlFlowDialect>();
  kernels->walk(expandCheck);
  // Arithmetic and functions of 16-bit floats are those of f32, rounded.
  PassManager floats(kernels->getContext(), kernels->getName().getStringRef());
  floats.addPass(math::createMathExtendToSupportedTypes());
  arith::ArithEmulateUnsupportedFloatsOptions floatOptions;
  for (StringRef type : emulated)
    floatOptions.sourceTypeStrs.push_back(type.str());
  floatOptions.targetTypeStr = "f32";
  floats.addPass(arith::createArithEmulateUnsupportedFloats(floatOptions));
  if (failed(floats.run(kernels)))
    return failure();
  return success(succeeded(expandMath(kernels)) && succeeded(lowerLoops(kernels)));
}
