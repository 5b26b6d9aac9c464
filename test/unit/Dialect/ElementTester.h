//===- ElementTester.h - Runs element definitions and watches what they read -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_UNIT_DIALECT_ELEMENTTESTER_H
#define DOVETAIL_TEST_UNIT_DIALECT_ELEMENTTESTER_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"

#include "gtest/gtest.h"

namespace dovetail {

/// A tensor of numbers in row-major order.
struct TestTensor {
  std::vector<int64_t> shape;
  std::vector<double> values;

  explicit TestTensor(llvm::ArrayRef<int64_t> shape, double value = 0);
  TestTensor(llvm::ArrayRef<int64_t> shape, std::vector<double> values) : shape(shape), values(std::move(values)) {}

  double &at(llvm::ArrayRef<int64_t> index) { return values[position(index)]; }
  double at(llvm::ArrayRef<int64_t> index) const { return values[position(index)]; }
  bool contains(llvm::ArrayRef<int64_t> index) const;

private:
  size_t position(llvm::ArrayRef<int64_t> index) const;
};

/// Calls `visit` with each index of a box, in row-major order.
void forEachIndex(const layout::Box &box, llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit);
void forEachIndex(llvm::ArrayRef<int64_t> shape, llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit);

/// Parses single operations and computes their results from their element definitions.
class ElementTester {
public:
  ElementTester();

  /// Parses `text`, an operation of the dialect whose operands are %0, %1, ... of `operandTypes`, and infers its type
  /// unless it is given. Null, with the diagnostics in `getErrors`, if it does not verify.
  mlir::Operation *parse(llvm::StringRef text, llvm::ArrayRef<std::string> operandTypes,
                         const std::string &resultType = "");
  const std::string &getErrors() const { return errors; }

  /// The type `8x3xf32` as text.
  static std::string type(llvm::ArrayRef<int64_t> shape, llvm::StringRef elementType = "f32");

  /// The elements of result number `number` that `loops` gives, one interval for each loop of the operation, others are
  /// NaN. Expects all reads to be inside of what the operation's relation says is needed for these loops.
  TestTensor compute(mlir::Operation *op, llvm::ArrayRef<TestTensor> operands, const layout::Box &loops,
                     unsigned number = 0);
  /// All elements.
  TestTensor compute(mlir::Operation *op, llvm::ArrayRef<TestTensor> operands, unsigned number = 0);

  /// The smallest box around what the last `compute` read, for each operand.
  const std::vector<layout::Box> &getReads() const { return reads; }

  /// What a pass makes of an operation, the last one of its module, computed operation by operation.
  TestTensor computeAfter(std::unique_ptr<mlir::Pass> pass, mlir::Operation *op, llvm::ArrayRef<TestTensor> operands);

private:
  mlir::MLIRContext context;
  std::string errors;
  std::vector<layout::Box> reads;
  llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
};

/// All loops of an operation.
layout::Box getLoopBox(mlir::Operation *op);
/// What each operand of an operation needs for `loops`, by its relation.
std::vector<layout::Box> getNeeds(mlir::Operation *op, const layout::Box &loops);

/// Expects equal shapes and values that differ by at most `tolerance` times the largest magnitude; NaN in `expected` is
/// not compared.
void expectNear(const TestTensor &actual, const TestTensor &expected, double tolerance = 1e-5);

} // namespace dovetail

#endif // DOVETAIL_TEST_UNIT_DIALECT_ELEMENTTESTER_H
