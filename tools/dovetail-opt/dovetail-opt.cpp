//===- dovetail-opt.cpp - Runs any pass alone -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers the dialects and passes with MLIR's opt driver.
//
//===----------------------------------------------------------------------===//

#include "dovetail/CodeGen/Passes.h"
#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/Transforms/Passes.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Schedule/Passes.h"
#include "dovetail/Sharding/Passes.h"
#include "dovetail/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<dovetail::DovetailDialect, dovetail::plan::PlanDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::gpu::GPUDialect, mlir::LLVM::LLVMDialect, mlir::math::MathDialect,
                  mlir::scf::SCFDialect>();
  dovetail::registerDovetailDialectPasses();
  dovetail::registerDovetailCodeGenPasses();
  dovetail::registerDovetailConversionPasses();
  dovetail::registerDovetailSchedulePasses();
  dovetail::registerDovetailShardingPasses();
  dovetail::registerDovetailTransformsPasses();
  dovetail::registerLowerGraphPipeline();
  dovetail::registerGraphPipelines();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Dovetail's passes\n", registry));
}
