//===- ConvolutionAlgorithms.h - Ways to compute convolutions ---*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the algorithms for convolutions that the runtime has kernels for, beside those of libraries. Compiler and
// runtime ask here which convolutions an algorithm is for, and how much work and memory it takes.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CALLS_CONVOLUTIONALGORITHMS_H
#define DOVETAIL_CALLS_CONVOLUTIONALGORITHMS_H

#include "dovetail/Calls/CallForm.h"

namespace dovetail::calls {

/// How a convolution is computed.
enum class ConvolutionAlgorithm : uint8_t {
  Library,  ///< As the target's library does it.
  Winograd, ///< F(4 x 4, 3 x 3), in f32, by the runtime's own kernels on CPUs.
  Gathered, ///< As products over rows that are gathered from windows, in f32, by the same.
};

/// Products of matrices that an algorithm consists of, `batch` of `rows` x `depth` with `depth` x columns, and what it
/// takes beyond these.
struct AlgorithmWork {
  double batch = 1, rows = 1, depth = 1;
  double products = 0;   ///< Multiplications with additions of all of them.
  double operations = 0; ///< Scalar ones.
  double readBytes = 0;  ///< Of transformed weights, beyond what weights have.
};

/// Bytes of weights as the algorithm has them, and of scratch memory for each thread.
struct AlgorithmMemory {
  int64_t weights = 0, thread = 0;
};

/// An algorithm for some convolutions in f32. `loops`: iterations of the dimensions of the result, and of the input
/// channels of a group.
struct AlgorithmEntry {
  ConvolutionAlgorithm algorithm;
  const char *name;      ///< As in plans.
  const char *condition; ///< Which convolutions it is for: `of 3 x 3`.
  bool (*applies)(const ConvolutionForm &form);
  /// Of algorithms that are chosen where they are faster, though they transform weights to larger ones; else null, and
  /// sizes decide (`Library::isSlow`).
  AlgorithmWork (*getWork)(std::span<const int64_t> loops) = nullptr;
  AlgorithmMemory (*getMemory)(std::span<const int64_t> loops) = nullptr;
  /// The largest error, of the largest result, beyond that of sums of products: 0 if sums of integers that f32 holds
  /// are exact.
  double error = 0;

  bool isChoice() const { return getWork != nullptr; }
};

std::span<const AlgorithmEntry> getAlgorithms();

/// The entry for `algorithm`; null for a library's.
const AlgorithmEntry *findAlgorithm(ConvolutionAlgorithm algorithm);

/// Whether some algorithm that may be chosen for a convolution of this form rounds where sums of products do not.
bool mayRound(const ConvolutionForm &form);

} // namespace dovetail::calls

#endif // DOVETAIL_CALLS_CONVOLUTIONALGORITHMS_H
