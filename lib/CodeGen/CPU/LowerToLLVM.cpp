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

/// Joins a product with the sum that is its only use, in the same block: the CPU rounds once where it has instructions
/// for that, and twice where it has none. `contract` alone leaves the choice to LLVM, which makes it anew in each loop:
/// it may gather neighbouring products into a vector and add them one by one. Then elements of one tensor would be
/// rounded in different ways, and in others where threads divide it differently. Sums that may be reordered stay as
/// they are, as LLVM has more ways to make vectors of them.
static void joinProductsWithSums(ModuleOp kernels) {
  constexpr LLVM::FastmathFlags contract = LLVM::FastmathFlags::contract, reassoc = LLVM::FastmathFlags::reassoc;
  auto has = [](LLVM::FastmathFlags flags, LLVM::FastmathFlags flag) { return (flags & flag) == flag; };
  auto join = [&](auto sum, bool isDifference) {
    Type type = getElementTypeOrSelf(sum.getType());
    if (!(type.isF32() || type.isF64()) || !has(sum.getFastmathFlags(), contract) ||
        has(sum.getFastmathFlags(), reassoc))
      return;
    for (auto [value, other] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
      auto product = value.template getDefiningOp<LLVM::FMulOp>();
      if (!product || !product->hasOneUse() || product->getBlock() != sum->getBlock() ||
          !has(product.getFastmathFlags(), contract))
        continue;
      OpBuilder builder(sum);
      Value factor = product.getLhs(), addend = other;
      if (isDifference) {
        Value &negated = value == sum.getLhs() ? addend : factor;
        negated = LLVM::FNegOp::create(builder, sum.getLoc(), negated);
      }
      sum.replaceAllUsesWith(LLVM::FMulAddOp::create(builder, sum.getLoc(), sum.getType(), factor, product.getRhs(),
                                                     addend, sum.getFastmathFlags())
                                 .getResult());
      sum.erase();
      product.erase();
      return;
    }
  };
  SmallVector<Operation *> sums;
  kernels.walk([&](Operation *op) {
    if (isa<LLVM::FAddOp, LLVM::FSubOp>(op))
      sums.push_back(op);
  });
  for (Operation *op : sums) {
    if (auto sum = dyn_cast<LLVM::FAddOp>(op))
      join(sum, /*isDifference=*/false);
    else
      join(cast<LLVM::FSubOp>(op), /*isDifference=*/true);
  }
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
  joinProductsWithSums(kernels);
  replaceBF16(kernels);
  return success();
}
