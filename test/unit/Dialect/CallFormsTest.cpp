//===- CallFormsTest.cpp - Forms of calls, found in definitions -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares the forms of calls that definitions have with the attributes of operations, for each one of the lit tests.
//
//===----------------------------------------------------------------------===//

#include "LitOperations.h"

#include "dovetail/Dialect/Dovetail/Definition/CallForms.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "gmock/gmock.h"

#include <map>

using namespace mlir;
using namespace dovetail;
using layout::Window;

namespace {

ArrayRef<int64_t> getNumbers(Operation *op, StringRef name) {
  return op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef();
}

ArrayRef<int64_t> getShape(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// The windows that attributes of `op` say, with `kernel`.
std::vector<Window> getWindows(Operation *op, ArrayRef<int64_t> kernel, bool isTransposed) {
  std::vector<Window> windows;
  for (auto [taps, stride, dilation, pad] :
       llvm::zip_equal(kernel, getNumbers(op, "strides"), getNumbers(op, "dilations"), getNumbers(op, "pads_low")))
    windows.push_back({taps, stride, dilation, pad, isTransposed});
  return windows;
}

/// Windows of one tap do not tell their dilation.
std::vector<Window> canonicalize(std::vector<Window> windows) {
  for (Window &window : windows)
    if (window.kernel == 1)
      window.dilation = 1;
  return windows;
}

} // namespace

TEST(CallForms, AreThoseOfAttributes) {
  std::map<std::string, int> found, none;
  forEachOperation([&](DefinitionOpInterface op) {
    std::string name = op->getName().stripDialect().str();
    // Operations that carry their definitions are of any kind.
    if (name == "generic")
      return;
    std::optional<CallForm> form = classify(op);
    ++(form ? found : none)[name];
    if (!form)
      return;
    if (name == "conv" || name == "conv_transpose") {
      auto *convolution = std::get_if<calls::ConvolutionForm>(&*form);
      ASSERT_TRUE(convolution);
      bool isTransposed = name == "conv_transpose";
      auto groups = op->getAttrOfType<IntegerAttr>("groups");
      EXPECT_EQ(convolution->groups, groups ? groups.getInt() : 1);
      EXPECT_EQ(convolution->isTransposed, isTransposed);
      EXPECT_EQ(canonicalize(convolution->windows),
                canonicalize(getWindows(op, getShape(op->getOperand(1)).drop_front(2), isTransposed)));
    } else if (name == "pool") {
      auto *pool = std::get_if<PoolCall>(&*form);
      ASSERT_TRUE(pool);
      EXPECT_EQ(canonicalize(pool->windows), canonicalize(getWindows(op, getNumbers(op, "kernel"), false)));
    } else if (name == "matmul") {
      auto *product = std::get_if<ProductCall>(&*form);
      ASSERT_TRUE(product);
      EXPECT_FALSE(product->transposesA || product->transposesB);
    } else if (name == "attention") {
      EXPECT_TRUE(std::holds_alternative<AttentionCall>(*form));
    } else if (name == "dft") {
      auto *transform = std::get_if<TransformCall>(&*form);
      ASSERT_TRUE(transform);
      EXPECT_EQ(transform->length, op->getAttrOfType<IntegerAttr>("length").getInt());
      EXPECT_TRUE(readsOperand(*form, 0));
      EXPECT_FALSE(readsOperand(*form, 1));
    } else {
      ADD_FAILURE() << name << " has a form of calls";
    }
  });
  EXPECT_GT(found["conv"], 30);
  for (const char *name : {"attention", "conv_transpose", "dft", "matmul", "pool"})
    EXPECT_GT(found[name], 0) << name;
  EXPECT_GT(none.size(), 50u);
}
