//===- LinearityTest.cpp - Linearity, stated and derived ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests through which operands of operations partial sums may pass, for each operation of the lit tests.
//
//===----------------------------------------------------------------------===//

#include "LitOperations.h"

#include "../Layout/Random.h"

#include "dovetail/Dialect/Dovetail/Evaluation/Evaluate.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/Ops/GenericOps.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/StringExtras.h"
#include "gmock/gmock.h"

#include <cmath>
#include <map>
#include <set>

using namespace mlir;
using namespace dovetail;

namespace {

/// Numbers whose sums and products are exact: of operand `number`, the same whenever it is asked for with one `seed`.
DenseElementsAttr draw(RankedTensorType type, unsigned number, unsigned seed) {
  layout::Random random(1000 * seed + number);
  Type element = type.getElementType();
  SmallVector<Attribute> values;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    // Divisors are not 0.
    int64_t value = random.between(1, 3);
    values.push_back(isa<FloatType>(element)
                         ? Attribute(FloatAttr::get(element, static_cast<double>(value)))
                         : Attribute(IntegerAttr::get(element, element.isInteger(1) ? value % 2 : value)));
  }
  return DenseElementsAttr::get(RankedTensorType::get(type.getShape(), element), values);
}

SmallVector<double> toNumbers(DenseElementsAttr elements) {
  SmallVector<double> numbers;
  for (const APFloat &value : elements.getValues<APFloat>())
    numbers.push_back(value.convertToDouble());
  return numbers;
}

DenseElementsAttr add(DenseElementsAttr a, DenseElementsAttr b) {
  SmallVector<Attribute> values;
  for (auto [x, y] : llvm::zip_equal(toNumbers(a), toNumbers(b)))
    values.push_back(FloatAttr::get(a.getElementType(), x + y));
  return DenseElementsAttr::get(a.getType(), values);
}

/// All operands of floats of `op`; none if a tensor is empty or large.
SmallVector<unsigned> getFloats(Operation *op) {
  SmallVector<unsigned> floats;
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (int64_t count = cast<RankedTensorType>(type).getNumElements(); count == 0 || count > 512)
      return floats;
  for (OpOperand &operand : op->getOpOperands())
    if (isa<FloatType>(getElementTypeOrSelf(operand.get().getType())))
      floats.push_back(operand.getOperandNumber());
  return floats;
}

} // namespace

/// Which operands sums may pass through, of some instance that lit tests have.
TEST(Linearity, OfOperations) {
  std::map<std::string, std::set<std::string>> linear;
  std::set<std::string> seen, joint;
  forEachOperation([&](DefinitionOpInterface op) {
    auto split = dyn_cast<SplitOpInterface>(op.getOperation());
    // Operations that carry their definitions are of any kind.
    if (!split || isa<GenericOp>(split))
      return;
    std::string name = op->getName().stripDialect().str();
    seen.insert(name);
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
      if (split.isLinearIn(operand))
        linear[name].insert(std::to_string(operand));
    SmallVector<unsigned> floats = getFloats(op);
    if (floats.size() > 1 && split.isLinearIn(floats))
      joint.insert(name);
  });
  std::string text;
  for (const auto &[name, operands] : linear)
    text += name + ": " + llvm::join(operands, " ") + "\n";
  EXPECT_EQ(text,
            "broadcast: 0\ncast: 0\nclear_tail: 0\ncol2im: 0\nconcat: 0\nconv: 0 1\nconv_transpose: 0 "
            "1\ndeform_sample: 0\ndft: 0\n"
            "div: 0\nframes: 0\ngather: 0\ngather_elements: 0\ngather_nd: 0\ngrid_sample: 0\nmatmul: 0 1\nmul: 0 1\n"
            "neg: 0\npad: 0\npool: 0\nreduce: 0\nreduce_parts: 0\nresample: 0 1\nreshape: 0\nresize: 0\nroi_align: 0\n"
            "slice: 0\ntranspose: 0\n");
  EXPECT_THAT(joint, testing::ElementsAre("add", "concat", "pad", "select", "sub"));
  EXPECT_GT(seen.size(), 60u);
}

/// Of sums, operations give sums.
TEST(Linearity, HoldsForNumbers) {
  std::map<std::string, int> checked;
  forEachOperation([&](DefinitionOpInterface op) {
    auto split = dyn_cast<SplitOpInterface>(op.getOperation());
    std::string name = op->getName().stripDialect().str();
    SmallVector<unsigned> floats = getFloats(op);
    constexpr int enough = 6;
    if (checked[name] >= enough)
      return;
    SmallVector<SmallVector<unsigned>> sets = {floats};
    for (unsigned operand : floats)
      sets.push_back({operand});
    for (ArrayRef<unsigned> operands : sets) {
      if (!split || operands.empty() || !split.isLinearIn(operands))
        continue;
      auto evaluateWith = [&](llvm::function_ref<DenseElementsAttr(RankedTensorType, unsigned)> get) {
        SmallVector<Attribute> values;
        for (OpOperand &operand : op->getOpOperands()) {
          auto type = cast<RankedTensorType>(operand.get().getType());
          unsigned number = operand.getOperandNumber();
          values.push_back(llvm::is_contained(operands, number) ? get(type, number) : draw(type, number, 7));
        }
        return evaluate(op, values);
      };
      auto first = evaluateWith([](auto type, unsigned number) { return draw(type, number, 1); }),
           second = evaluateWith([](auto type, unsigned number) { return draw(type, number, 2); }),
           both = evaluateWith(
               [](auto type, unsigned number) { return add(draw(type, number, 1), draw(type, number, 2)); });
      if (failed(first) || failed(second) || failed(both))
        continue;
      ++checked[name];
      for (auto [a, b, sum] : llvm::zip_equal(*first, *second, *both))
        for (auto [x, y, z] : llvm::zip_equal(toNumbers(a), toNumbers(b), toNumbers(sum)))
          ASSERT_NEAR(x + y, z, 1e-2 * std::abs(z)) << mlir::debugString(*op);
    }
  });
  EXPECT_GT(llvm::count_if(checked, [](const auto &each) { return each.second > 0; }), 15);
}
