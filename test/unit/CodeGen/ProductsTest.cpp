//===- ProductsTest.cpp - What tiles of products are made for -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Generates kernels for devices from an operation that is like a matrix product but for the way in which terms combine.
// The dialect has none like it.
//
//===----------------------------------------------------------------------===//

#include "dovetail/CodeGen/Passes.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace dovetail;

namespace {

/// The largest product of an element of a row and one of a column.
class LargestProductOp
    : public Op<LargestProductOp, OpTrait::ZeroRegions, OpTrait::ZeroSuccessors, OpTrait::OneResult,
                OpTrait::OneTypedResult<RankedTensorType>::Impl, OpTrait::NOperands<2>::Impl,
                PartitionableOpInterface::Trait, ElementOpInterface::Trait, ReductionOpInterface::Trait> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LargestProductOp)
  using Op::Op;
  static StringRef getOperationName() { return "test.largest_product"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }

  OpRelation getRelation() {
    OpRelation relation;
    for (int64_t extent : getType().getShape())
      relation.loops.push_back({extent});
    int64_t terms = cast<RankedTensorType>(getOperand(1).getType()).getDimSize(0);
    relation.loops.push_back({terms, LoopKind::Reduction, ReduceKind::Max});
    relation.operands = {{DimRelation::identity(0), DimRelation::identity(2)},
                         {DimRelation::identity(2), DimRelation::identity(1)}};
    return relation;
  }
  Value emitInit(ElementBuilder &builder) { return builder.constant(getType().getElementType(), -INFINITY); }
  Value emitTerm(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
    return builder.mul(elements.read(0, {index[0], index[2]}), elements.read(1, {index[2], index[1]}));
  }
  Value emitCombine(ElementBuilder &builder, Value accumulator, Value term) { return builder.max(accumulator, term); }
  Value emitElement(ElementBuilder &, ArrayRef<Value>, ElementSource &) { llvm_unreachable("kernels fold the terms"); }
};

class TestDialect : public Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestDialect)
  explicit TestDialect(MLIRContext *context) : Dialect(getDialectNamespace(), context, TypeID::get<TestDialect>()) {
    addOperations<LargestProductOp>();
  }
  static StringRef getDialectNamespace() { return "test"; }
};

/// The steps of the loops of a kernel with `op` in it.
std::vector<int64_t> stepsOf(const std::string &op) {
  MLIRContext context;
  context.loadDialect<DovetailDialect, plan::PlanDialect, TestDialect>();
  auto module = parseSourceString<ModuleOp>(R"(
    plan.kernel @k(%a: tensor<200x100xf32>, %b: tensor<100x130xf32>)
        layouts [<[0, 1], [200, 100]>, <[0, 1], [100, 130]>] -> [<[0, 1], [200, 130]>]
        attributes {static_loops = array<i64: 0, 1, 2>} {
      %0 = ")" + op + R"("(%a, %b) : (tensor<200x100xf32>, tensor<100x130xf32>) -> tensor<200x130xf32>
      plan.yield %0 : tensor<200x130xf32>
    })",
                                            &context);
  PassManager passes(&context);
  passes.addPass(createGenerateBlockKernels());
  if (!module || failed(passes.run(*module)))
    return {};
  plan::KernelOp kernel = *module->getOps<plan::KernelOp>().begin();
  return kernel.getBlocks()->getSteps().vec();
}

/// Terms beyond the last one are zeros in a tile, which only sums do not mind.
TEST(Products, OnlySumsAreTiled) {
  EXPECT_EQ(stepsOf("dovetail.matmul"), (std::vector<int64_t>{64, 64}));
  EXPECT_EQ(stepsOf("test.largest_product"), (std::vector<int64_t>{1, 1}));
}

} // namespace
