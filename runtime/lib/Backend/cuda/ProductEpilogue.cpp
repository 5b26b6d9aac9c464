//===- ProductEpilogue.cpp - Post-ops of products by cuBLASLt ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductEpilogue.h"

#include "../common/DeviceStaging.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using layout::Box;

absl::StatusOr<bool> ProductEpilogue::plan(const RankMemory &memory, const std::vector<PostOpInfo> &ops, size_t fused,
                                           const Box &outBox, int columnDim, MatrixProduct &product) {
  *this = {};
  for (size_t i = 0; i < fused; ++i) {
    const PostOpInfo &op = ops[i];
    if (product.activation != MatrixProduct::Activation::None)
      return false; // The activation is the last thing that the library does.
    if (op.kind == PostOpKind::Relu) {
      product.activation = MatrixProduct::Activation::Relu;
    } else if (op.kind == PostOpKind::GeluTanh) {
      product.activation = MatrixProduct::Activation::GeluTanh;
    } else if (op.kind == PostOpKind::AddTensor) {
      absl::StatusOr<PostOpOperand> read = operandOf(memory, op, outBox);
      if (!read.ok())
        return read.status();
      bool isVector = read->box[columnDim].size() == product.n && (product.n == 1 || read->strides[columnDim] == 1);
      for (int dim = 0; dim < outBox.rank(); ++dim)
        isVector &= dim == columnDim || read->box[dim].size() == 1;
      if (isVector && !bias) {
        bias = i;
        product.hasBias = true;
        product.biasAlignment = std::min(vectorAlignment, read->alignment);
      } else if (read->isFull && !added) {
        added = i;
        operand = *std::move(read);
      } else {
        return false;
      }
    } else {
      return false;
    }
  }
  return true;
}

absl::Status ProductEpilogue::bind(const RankMemory &memory, const std::vector<PostOpInfo> &ops, const Box &outBox,
                                   MatrixCall &call) {
  auto find = [&](size_t number) { return operandOf(memory, ops[number], outBox); };
  if (added) {
    absl::StatusOr<PostOpOperand> found = find(*added);
    if (!found.ok())
      return found.status();
    data = found->address;
  }
  if (bias) {
    absl::StatusOr<PostOpOperand> found = find(*bias);
    if (!found.ok())
      return found.status();
    return call.setBias(found->address);
  }
  return absl::OkStatus();
}
