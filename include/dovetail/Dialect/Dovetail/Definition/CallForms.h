//===- CallForms.h - The forms of calls that libraries have -----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the forms of calls: what libraries do, whichever operation it is for. Operations of the graph and calls of
// plans have them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_CALLFORMS_H
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_CALLFORMS_H

#include "dovetail/Calls/CallForm.h"
#include "dovetail/Dialect/Dovetail/Definition/Enums.h"

#include <optional>
#include <variant>

namespace mlir {
class Operation;
} // namespace mlir

namespace dovetail {

struct Definition;

/// A product of matrices.
struct ProductCall : calls::ProductForm {
  /// So many dimensions of the result before the columns are the rows of one product.
  int64_t rowDims = 1;
};

/// Windows, and what is made of their elements.
struct PoolCall : calls::PoolForm {
  PoolKind kind = PoolKind::Max;
};

/// Attention, as `dovetail.attention` describes it.
struct AttentionCall {
  int64_t columns = 0; ///< Of the values of a head.
  float scale = 1, fill = 0;
  /// The result is that of parts of the keys, with scores and sums behind the columns of values.
  bool isOfParts = false;

  /// The columns of values where the loop over columns of the result has so many iterations.
  int64_t getValueColumns(int64_t iterations) const;
};

/// Fourier transforms that are not scaled.
struct TransformCall : calls::TransformForm {
  bool isInverse = false;
};

/// The form of a call. A convolution and a product are sums of products of the elements of two operands.
using CallForm = std::variant<calls::ConvolutionForm, ProductCall, PoolCall, AttentionCall, TransformCall>;

/// The form of a sum of products, by its loops and accesses alone; none if calls have no such form.
std::optional<CallForm> classify(const Definition &definition);

/// The form of calls for `op`, as it states it itself (`CallFormOpInterface`) or as that of its definition. None if
/// calls have no such form, or if it has several results.
std::optional<CallForm> classify(mlir::Operation *op);

/// Whether calls of this form read operand `number` of the operation that they are for. Libraries have roots of one
/// themselves.
inline bool readsOperand(const CallForm &form, unsigned number) {
  return number == 0 || !std::holds_alternative<TransformCall>(form);
}

/// Whether calls of this form are sums of products. Their operand 1 is what libraries pack.
inline bool isSumOfProducts(const CallForm &form) {
  return std::holds_alternative<calls::ConvolutionForm>(form) || std::holds_alternative<ProductCall>(form);
}

/// Whether calls of this form compute each element of the result apart from the others. Attention and transforms have
/// lines, whose elements have work in common.
inline bool isElementwise(const CallForm &form) {
  return isSumOfProducts(form) || std::holds_alternative<PoolCall>(form);
}

/// Calls one of several functions with the form that there is.
template <typename... Functions> struct FormVisitor : Functions... {
  using Functions::operator()...;
};
template <typename... Functions> FormVisitor(Functions...) -> FormVisitor<Functions...>;

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_CALLFORMS_H
