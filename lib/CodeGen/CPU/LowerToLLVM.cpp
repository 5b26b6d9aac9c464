//===- LowerToLLVM.cpp - From loops to the LLVM dialect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the lowering of generated kernels for CPUs.
//
//===----------------------------------------------------------------------===//

#include "LowerToLLVM.h"

#include "../Kernel/Lowering.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace dovetail;

LogicalResult dovetail::lowerKernelsToLLVM(ModuleOp kernels, const FloatInstructions &instructions) {
  SmallVector<StringRef> emulatedFloats = {"bf16"};
  if (!instructions.f16)
    emulatedFloats.push_back("f16");
  if (failed(lowerKernelBodies(kernels, emulatedFloats)) || failed(expandFloatConversions(kernels, instructions)))
    return failure();
  MLIRContext *context = kernels.getContext();
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(64);
  LLVMTypeConverter types(context, options);
  RewritePatternSet patterns(context);
  populateMathToLLVMConversionPatterns(types, patterns, /*approximateLog1p=*/false);
  populateMathToLibmConversionPatterns(patterns, /*benefit=*/0);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  populateFuncToLLVMConversionPatterns(types, patterns);
  populateKernelMemoryPatterns(types, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(kernels, target, std::move(patterns));
}
