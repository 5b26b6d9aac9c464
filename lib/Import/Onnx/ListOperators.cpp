//===- ListOperators.cpp - Which ONNX operators are known -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements listOperators.
//
//===----------------------------------------------------------------------===//

#include "GraphImporter.h"
#include "Registry.h"
#include "dovetail/Import/Operators.h"

#include <map>

using namespace dovetail;
using namespace dovetail::importer;

std::vector<KnownOperator> dovetail::listOperators(mlir::MLIRContext &context) {
  context.loadDialect<DovetailDialect>();
  std::map<std::string, KnownOperator::Way> ways;
  for (mlir::RegisteredOperationName name : context.getRegisteredOperations())
    if (auto *interface = name.getInterface<OnnxOpInterface>())
      ways[interface->getOnnxName().str()] = KnownOperator::Operation;
  for (const onnx::OpSchema &schema : onnx::OpSchemaRegistry::get_all_schemas()) {
    // Operators that newer opsets have no more are known, too.
    if (!schema.domain().empty())
      continue;
    if (lookupImport(schema.Name()) || GraphImporter::isControlFlow(schema.Name()))
      ways[schema.Name()] = KnownOperator::Import;
    else if (schema.HasFunction() || schema.HasContextDependentFunction())
      ways.try_emplace(schema.Name(), KnownOperator::Function);
  }
  std::vector<KnownOperator> operators;
  for (const auto &[name, way] : ways)
    operators.push_back({"", name, way});
  for (const ExpansionEntry *entry : listExpansions())
    operators.push_back({entry->schema.domain(), entry->schema.Name(), KnownOperator::Expansion});
  return operators;
}
