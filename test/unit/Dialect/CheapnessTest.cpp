//===- CheapnessTest.cpp - Operations that are computed again -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LitOperations.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/Ops/GenericOps.h"
#include "llvm/ADT/StringExtras.h"
#include "gmock/gmock.h"

#include <set>

using namespace mlir;
using namespace dovetail;

/// Which operations of the lit tests are stored, whatever reads them. Others may be part of a consumer.
TEST(Cheapness, OfOperations) {
  std::set<std::string> cheap, costly;
  forEachOperation([&](DefinitionOpInterface op) {
    if (isa<GenericOp>(op.getOperation()))
      return;
    (op.isCheapElement() ? cheap : costly).insert(op->getName().stripDialect().str());
  });
  EXPECT_EQ(
      llvm::join(costly, " "),
      "arg_reduce attention col2im compact conv conv_transpose deform_sample dft eliminate grid_sample gru lrn lstm "
      "matmul max_pool_indices max_roi_pool moments pool reduce reduce_parts resample resize rnn roi_align scan "
      "scatter_elements scatter_nd select_boxes sort_rows sum_exp tensor_scatter top_k");
  EXPECT_GT(cheap.size(), 40u);
  for (const std::string &name : costly)
    EXPECT_FALSE(cheap.contains(name)) << name << " is both";
}
