//===- LowerToNVVM.cpp - From block kernels to the NVVM dialect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines lowerKernelsToNVVM.
//
//===----------------------------------------------------------------------===//

#include "LowerToNVVM.h"

#include "../Kernel/Lowering.h"
#include "dovetail/CodeGen/DeviceDescription.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// The root that is rounded once. That of libdevice is approximate: LLVM does not know its question for precision.
struct SqrtLowering : ConvertOpToLLVMPattern<math::SqrtOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(math::SqrtOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::SqrtOp>(op, adaptor.getOperand());
    return success();
  }
};
} // namespace

LogicalResult dovetail::lowerKernelsToNVVM(gpu::GPUModuleOp kernels) {
  MLIRContext *context = kernels.getContext();
  context->loadDialect<NVVM::NVVMDialect>();
  if (failed(lowerKernelBodies(kernels)))
    return failure();
  kernels.walk([](gpu::GPUFuncOp function) {
    if (Attribute blocks = function->removeAttr(blocksAtOnceAttrName))
      function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), blocks);
  });
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(64);
  LLVMTypeConverter types(context, options);
  RewritePatternSet patterns(context);
  // Functions without an instruction of their own are those of libdevice.
  populateGpuToNVVMConversionPatterns(types, patterns, /*benefit=*/10);
  patterns.add<SqrtLowering>(types, /*benefit=*/10);
  populateLibDeviceConversionPatterns(types, patterns, /*benefit=*/5);
  populateMathToLLVMConversionPatterns(types, patterns, /*approximateLog1p=*/false);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  populateKernelMemoryPatterns(types, patterns);
  LLVMConversionTarget target(*context);
  configureGpuToNVVMConversionLegality(target);
  target.addLegalOp<gpu::GPUModuleOp, LLVM::SqrtOp>();
  return applyPartialConversion(kernels, target, std::move(patterns));
}
