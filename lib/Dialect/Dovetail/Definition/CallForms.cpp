//===- CallForms.cpp - The forms of calls that libraries have -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the forms of calls.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Definition/CallForms.h"

#include "dovetail/Calls/AttentionForm.h"
#include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.h"

using namespace mlir;
using namespace dovetail;

int64_t AttentionCall::getValueColumns(int64_t iterations) const {
  return isOfParts ? std::max<int64_t>(iterations - calls::attentionPartColumns, 0) : iterations;
}

std::optional<CallForm> dovetail::classify(const Definition &definition) {
  if (!definition.isProduct || definition.reads.size() != 2)
    return std::nullopt;
  calls::AccessDims first = definition.reads[0].dims, second = definition.reads[1].dims;
  SmallVector<int64_t> extents = getExtents(definition.loops);
  if (std::optional<calls::ConvolutionForm> form = calls::ConvolutionForm::find(first, second, extents))
    return *std::move(form);
  if (std::optional<calls::ProductForm> form = calls::ProductForm::find(first, second, extents))
    return ProductCall{*form};
  return std::nullopt;
}

std::optional<CallForm> dovetail::classify(Operation *op) {
  if (op->getNumResults() != 1)
    return std::nullopt;
  if (auto formed = dyn_cast<CallFormOpInterface>(op))
    return formed.getCallForm();
  auto defined = dyn_cast<DefinitionOpInterface>(op);
  return defined ? classify(defined.getDefinition()) : std::nullopt;
}
