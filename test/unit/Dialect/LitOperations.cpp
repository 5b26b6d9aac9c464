//===- LitOperations.cpp - The operations of the lit tests ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines forEachOperation.
//
//===----------------------------------------------------------------------===//

#include "LitOperations.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace mlir;
using namespace dovetail;

/// Calls `look` with each operation of the lit tests that has a definition.
void dovetail::forEachOperation(llvm::function_ref<void(DefinitionOpInterface)> look) {
  for (const auto &entry : std::filesystem::recursive_directory_iterator(DOVETAIL_LIT_TESTS)) {
    if (entry.path().extension() != ".mlir")
      continue;
    std::ifstream stream(entry.path());
    std::stringstream text;
    text << stream.rdbuf();
    StringRef rest = StringRef(text.view());
    while (!rest.empty()) {
      auto [part, others] = rest.split("// -----");
      rest = others;
      MLIRContext context;
      context.loadDialect<DovetailDialect, func::FuncDialect>();
      // Files of invalid input have errors.
      ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
      if (OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(part, &context))
        module->walk(look);
    }
  }
}
