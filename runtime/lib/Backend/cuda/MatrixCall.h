//===- MatrixCall.h - A product by cuBLASLt --------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines a call of cuBLASLt: row-major matrices with any strides between rows, and a batch of them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_MATRIXCALL_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_MATRIXCALL_H

#include "CandidateLog.h"
#include "Libraries.h"
#include "Staging.h"

#include "dovetail/runtime/Plan.h"

#include <vector>

namespace dovetail::runtime::cuda {

/// d[m, n] = activation(sum over k of a[m, k] * b[k, n], + c[m, n], + bias[n]), for each of a batch.
struct MatrixProduct {
  ElementType type = ElementType::F32;
  int64_t m = 1, n = 1, k = 1;
  MatrixLayout a, b, c, d;
  /// How many, and elements from one to the next.
  int64_t batch = 1, batchA = 0, batchB = 0, batchC = 0, batchD = 0;
  bool hasC = false, hasBias = false;
  int64_t biasAlignment = 16;
  enum class Activation { None, GeluTanh } activation = Activation::None;
};

class MatrixCall {
public:
  /// `log` gets the algorithms that the library offers, and what becomes of them; null: nobody asks.
  MatrixCall(LibraryHandles &handles, const MatrixProduct &product, CandidateLog *log)
      : handles(handles), product(product), log(log) {}
  ~MatrixCall();
  MatrixCall(const MatrixCall &) = delete;
  MatrixCall &operator=(const MatrixCall &) = delete;

  /// Asks for at most `count` algorithms that need no more than `workspace` allows, the best first. False if there is
  /// none; then `workspace` is told what the best one needs.
  absl::StatusOr<bool> choose(MathMode mode, size_t count, Workspace &workspace);
  size_t algorithmCount() const { return algorithms.size(); }
  /// How many times the blocks of the best algorithm fill the device, as the library says.
  float waves() const { return algorithms.empty() ? 0 : algorithms.front().waves; }
  absl::Status setBias(const void *bias);
  absl::Status issue(DeviceStream &stream, const void *a, const void *b, const void *c, void *d,
                     void *workspaceMemory) const {
    return issue(stream, a, b, c, d, workspaceMemory, algorithms[best]);
  }
  /// Runs each algorithm, and from then on uses the fastest.
  absl::Status tune(DeviceStream &stream, const void *a, const void *b, const void *c, void *d, void *workspaceMemory);
  /// The library and the algorithm that is used.
  std::string implementation() const;

private:
  struct Algorithm {
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
    float waves;
  };

  absl::Status issue(DeviceStream &stream, const void *a, const void *b, const void *c, void *d, void *workspaceMemory,
                     const Algorithm &algorithm) const;
  absl::Status createLayout(cublasLtMatrixLayout_t &layout, int64_t rows, int64_t columns, int64_t leading,
                            int64_t batchStride) const;
  absl::Status describe(MathMode mode);
  /// The algorithms that the library recommends, at most `count`; none if it has none.
  absl::StatusOr<std::vector<Algorithm>> ask(size_t count, size_t mostWorkspace) const;
  /// An algorithm with its settings.
  CallCandidate describe(const Algorithm &algorithm) const;
  /// Logs the algorithms, which come first and in their order, and `others`. There is a log.
  void explain(const std::vector<Algorithm> &others, CallCandidate::Status status, const std::string &reason);

  LibraryHandles &handles;
  MatrixProduct product;
  CandidateLog *log;
  size_t firstCandidate = 0; ///< The number of the first of `algorithms` in the log.
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t layoutA = nullptr, layoutB = nullptr, layoutC = nullptr, layoutD = nullptr;
  std::vector<Algorithm> algorithms;
  size_t best = 0;
};

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_MATRIXCALL_H
