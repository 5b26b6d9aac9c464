//===- Binding.h - What a name stands for -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Binding.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_BINDING_H
#define DOVETAIL_LIB_IMPORT_ONNX_BINDING_H

#include "mlir/IR/Value.h"

#include <memory>
#include <vector>

namespace dovetail::importer {

/// What a name stands for. Sequences and optional values are resolved while the model is imported: programs have
/// tensors alone.
struct Binding {
  enum Kind {
    /// A tensor, or an optional value that holds it.
    Known,
    /// A value that is not computed because something before it is not supported.
    Unknown,
    /// An optional operand that is left out.
    Absent,
    /// A sequence of tensors, or an optional value that holds it.
    Sequence,
    /// An optional value that holds nothing.
    Nothing
  };
  Kind kind = Absent;
  mlir::Value value = {};
  /// The tensors of a sequence.
  std::shared_ptr<const std::vector<mlir::Value>> elements = nullptr;

  static Binding known(mlir::Value value) { return {Known, value}; }
  static Binding unknown() { return {Unknown}; }
  static Binding absent() { return {Absent}; }
  static Binding sequence(std::vector<mlir::Value> elements) {
    return {Sequence, {}, std::make_shared<const std::vector<mlir::Value>>(std::move(elements))};
  }
  static Binding nothing() { return {Nothing}; }

  /// Neither a tensor nor left out.
  bool isSequenceOrNothing() const { return kind == Sequence || kind == Nothing; }
  /// For messages.
  void print(llvm::raw_ostream &os) const;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Binding &binding) {
  binding.print(os);
  return os;
}

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_BINDING_H
