//===- Operators.h - Which ONNX operators are known -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares listOperators, the operators that the import knows.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_IMPORT_OPERATORS_H
#define DOVETAIL_IMPORT_OPERATORS_H

#include "mlir/IR/MLIRContext.h"

#include <string>
#include <vector>

namespace dovetail {

/// An operator, and how it is imported.
struct KnownOperator {
  enum Way {
    Import,    ///< By a function of its own.
    Operation, ///< One to one, as an operation of the dialect.
    Function,  ///< Through the body that ONNX gives for it, if what that consists of is known.
    Expansion  ///< As ONNX's operators; ONNX itself does not have the operator.
  };

  /// "" for ONNX's own.
  std::string domain;
  std::string name;
  Way way;
};

/// All of them, by name, those of ONNX first. Loads the dialect.
std::vector<KnownOperator> listOperators(mlir::MLIRContext &context);

} // namespace dovetail

#endif // DOVETAIL_IMPORT_OPERATORS_H
