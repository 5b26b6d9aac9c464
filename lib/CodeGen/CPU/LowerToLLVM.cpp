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
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace dovetail;

/// Makes bf16 i16 everywhere: all arithmetic of it has become that of f32 and of its bits. Where the CPU has no bf16,
/// LLVM keeps values of it, in loops and vectors, as f32, and calls its own run-time library to convert them.
static void replaceBF16(ModuleOp kernels) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](BFloat16Type type) -> Type { return IntegerType::get(type.getContext(), 16); });
  replacer.addReplacement([](FloatAttr value) -> std::optional<std::pair<Attribute, WalkResult>> {
    if (!value.getType().isBF16())
      return std::nullopt;
    auto bits = IntegerAttr::get(IntegerType::get(value.getContext(), 16), value.getValue().bitcastToAPInt());
    return std::pair(Attribute(bits), WalkResult::skip());
  });
  replacer.recursivelyReplaceElementsIn(kernels, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
}

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
  populateVectorToLLVMConversionPatterns(types, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  if (failed(applyFullConversion(kernels, target, std::move(patterns))))
    return failure();
  replaceBF16(kernels);
  return success();
}
