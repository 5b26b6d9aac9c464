//===- ProductEpilogue.h - Post-ops of products by cuBLASLt ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which post-ops cuBLASLt does as part of a product, and the operands of these.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_PRODUCTEPILOGUE_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_PRODUCTEPILOGUE_H

#include "MatrixCall.h"
#include "PostOpWork.h"

#include "absl/functional/function_ref.h"

namespace dovetail::runtime::cuda {

/// How many of `count` post-ops a product has: as many as the library takes, or none. Without most of them it also
/// divides sums among blocks of threads. On an H100, in f32, 196 x 1024 x 256 takes 25 us with a bias and 10 without.
/// `plan` plans the product with some post-ops, and returns how many times its blocks fill the device; nothing if the
/// library does not take it. The last plan is the chosen one. Nothing if there is no way.
absl::StatusOr<std::optional<size_t>> chooseFused(size_t count,
                                                  absl::FunctionRef<absl::StatusOr<std::optional<float>>(size_t)> plan);

/// The first post-ops of a product: a bias, a matrix that is added, and Gelu behind both. Not Relu: the library's makes
/// 0 of NaN (forums.developer.nvidia.com, 329783), and ONNX's does not.
class ProductEpilogue {
public:
  /// Of the first `fused` of `ops`, applied to `outBox`, whose dimension `columnDim` are the columns. Tells `product`
  /// about the bias and the activation. False if the library does something else. Errors: those of `operandOf`.
  absl::StatusOr<bool> plan(const RankMemory &memory, const std::vector<PostOpInfo> &ops, size_t fused,
                            const layout::Box &outBox, int columnDim, MatrixProduct &product);
  /// Gives `call` the address of the bias, `repeated` if that is not null, and finds that of the matrix. Errors: those
  /// of `operandOf`.
  absl::Status bind(const RankMemory &memory, const std::vector<PostOpInfo> &ops, const layout::Box &outBox,
                    MatrixCall &call, const std::byte *repeated = nullptr);
  /// The number of the bias among the post-ops, if there is one.
  std::optional<size_t> biasNumber() const { return bias; }

  /// The matrix that is added, without an address; null if there is none.
  const PostOpOperand *addedOperand() const { return operand ? &*operand : nullptr; }
  const std::byte *addedData() const { return data; }

private:
  std::optional<size_t> bias, added;
  std::optional<PostOpOperand> operand;
  const std::byte *data = nullptr;
};

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_PRODUCTEPILOGUE_H
