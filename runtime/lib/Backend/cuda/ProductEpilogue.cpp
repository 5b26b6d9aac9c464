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

/// Below this much of a device, more blocks are worth a launch of their own for post-ops if they are so many times
/// more.
static constexpr float starved = 0.5, worthALaunch = 2;

absl::StatusOr<std::optional<size_t>>
dovetail::runtime::cuda::chooseFused(size_t count,
                                     absl::FunctionRef<absl::StatusOr<std::optional<float>>(size_t)> plan) {
  for (size_t fused = count;; --fused) {
    absl::StatusOr<std::optional<float>> waves = plan(fused);
    if (!waves.ok())
      return waves.status();
    if (*waves && (fused == 0 || **waves >= starved))
      return fused;
    if (*waves) {
      absl::StatusOr<std::optional<float>> plain = plan(0);
      if (!plain.ok())
        return plain.status();
      if (*plain && **plain > worthALaunch * **waves)
        return 0;
      plain = plan(fused);
      return plain.ok() ? absl::StatusOr<std::optional<size_t>>(fused) : plain.status();
    }
    if (fused == 0)
      return std::nullopt;
  }
}

absl::StatusOr<bool> ProductEpilogue::plan(const RankMemory &memory, const std::vector<PostOpInfo> &ops, size_t fused,
                                           const Box &outBox, int columnDim, MatrixProduct &product) {
  *this = {};
  for (size_t i = 0; i < fused; ++i) {
    const PostOpInfo &op = ops[i];
    if (product.activation != MatrixProduct::Activation::None)
      return false; // The activation is the last thing that the library does.
    if (op.kind == PostOpKind::GeluTanh) {
      product.activation = MatrixProduct::Activation::GeluTanh;
    } else if (op.kind == PostOpKind::AddTensor) {
      absl::StatusOr<PostOpOperand> read = operandOf(memory, op, outBox);
      if (!read.ok())
        return read.status();
      int64_t columns = outBox[columnDim].size();
      bool isVector = read->box[columnDim].size() == columns && (columns == 1 || read->strides[columnDim] == 1);
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
                                   MatrixCall &call, const std::byte *repeated) {
  auto find = [&](size_t number) { return operandOf(memory, ops[number], outBox); };
  if (added) {
    absl::StatusOr<PostOpOperand> found = find(*added);
    if (!found.ok())
      return found.status();
    data = found->address;
  }
  if (bias && repeated)
    return call.setBias(repeated);
  if (bias) {
    absl::StatusOr<PostOpOperand> found = find(*bias);
    if (!found.ok())
      return found.status();
    return call.setBias(found->address);
  }
  return absl::OkStatus();
}
