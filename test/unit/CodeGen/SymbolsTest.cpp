//===- SymbolsTest.cpp - What compiled kernels may refer to -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/CodeGen/CPU/Compile.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace dovetail;

/// Compiles kernels that call `functions`, of one f64 each; returns the errors, one a line.
static std::string compileCalls(ArrayRef<StringRef> functions) {
  std::string code = "module { module @cpu_kernels {\n";
  for (StringRef function : functions)
    code += ("func.func private @" + function + "(f64) -> f64\n").str();
  for (auto [number, function] : llvm::enumerate(functions))
    code += ("func.func @kernel" + Twine(number) +
             "(%x: !llvm.ptr) {\n%0 = llvm.load %x : !llvm.ptr -> f64\n%1 = func.call @" + function +
             "(%0) : (f64) -> f64\nllvm.store %1, %x : f64, !llvm.ptr\nreturn }\n")
                .str();
  code += "} }";
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, plan::PlanDialect>();
  std::string errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(code, &context);
  if (!module)
    return errors;
  CodeGenOptions options;
  options.cpu = "x86-64-v3";
  EXPECT_EQ(failed(compileCpuKernels(*module, options)), !errors.empty());
  return errors;
}

TEST(SymbolsTest, RefusesWhatTheRuntimeDoesNotProvide) {
  std::string errors = compileCalls({"__truncdfhf2", "sin", "_ZGVdN4v_unknown", "malloc", "_ZGVdN4v_floor"});
  for (const char *what : {"'__truncdfhf2', in kernel 'kernel0'", "'_ZGVdN4v_unknown', in kernel 'kernel2'",
                           "'malloc', in kernel 'kernel3'", "'_ZGVdN4v_floor', in kernel 'kernel4'"})
    EXPECT_NE(errors.find(what), std::string::npos) << what << " is not in\n" << errors;
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 4) << errors;
}

TEST(SymbolsTest, AllowsMathematicsAndMemory) {
  EXPECT_EQ(compileCalls({"sin", "tanhf", "roundeven", "_ZGVdN4v_exp", "_ZGVeN16v_expf", "memcpy", "memset"}), "");
}
