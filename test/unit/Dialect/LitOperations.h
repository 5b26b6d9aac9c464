//===- LitOperations.h - Operations of the lit tests ------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how tests go through all operations that lit tests have.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_UNIT_DIALECT_LITOPERATIONS_H
#define DOVETAIL_TEST_UNIT_DIALECT_LITOPERATIONS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace dovetail {

/// Calls `look` with each operation of the lit tests that has a definition.
inline void forEachOperation(llvm::function_ref<void(DefinitionOpInterface)> look) {
  for (const auto &entry : std::filesystem::recursive_directory_iterator(DOVETAIL_LIT_TESTS)) {
    if (entry.path().extension() != ".mlir")
      continue;
    std::ifstream stream(entry.path());
    std::stringstream text;
    text << stream.rdbuf();
    llvm::StringRef rest = llvm::StringRef(text.view());
    while (!rest.empty()) {
      auto [part, others] = rest.split("// -----");
      rest = others;
      mlir::MLIRContext context;
      context.loadDialect<DovetailDialect, mlir::func::FuncDialect>();
      // Files of invalid input have errors.
      mlir::ScopedDiagnosticHandler quiet(&context, [](mlir::Diagnostic &) { return mlir::success(); });
      if (auto module = mlir::parseSourceString<mlir::ModuleOp>(part, &context))
        module->walk(look);
    }
  }
}

} // namespace dovetail

#endif // DOVETAIL_TEST_UNIT_DIALECT_LITOPERATIONS_H
