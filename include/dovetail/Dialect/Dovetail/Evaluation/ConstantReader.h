//===- ConstantReader.h - Elements of constants -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines ConstantReader, which reads single elements of constant attributes.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_EVALUATION_CONSTANTREADER_H
#define DOVETAIL_DIALECT_DOVETAIL_EVALUATION_CONSTANTREADER_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/APInt.h"

#include <optional>

namespace dovetail {

/// Reads elements of dense constants and of resources without converting them as a whole. Valid as long as the
/// attribute's context and, for a resource, its blob.
class ConstantReader {
public:
  /// None if `attribute` is neither, or is a resource whose blob is missing or has the wrong size.
  static std::optional<ConstantReader> create(mlir::Attribute attribute);

  /// The bits of element number `i` in row-major order.
  llvm::APInt readBits(int64_t i) const;
  /// The same as a FloatAttr, or an IntegerAttr of signless type.
  mlir::TypedAttr read(int64_t i) const;

private:
  explicit ConstantReader(mlir::ElementsAttr attribute)
      : attribute(attribute), elementType(attribute.getElementType()) {}

  mlir::ElementsAttr attribute;
  mlir::Type elementType;
  /// The bytes of a resource.
  llvm::ArrayRef<char> bytes;
};

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_EVALUATION_CONSTANTREADER_H
