//===- Validator.h - How parts of a plan must fit ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Validator, whose checks of library calls and of all else are in files of their own.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_PROGRAM_VALIDATOR_H
#define DOVETAIL_RUNTIME_LIB_PROGRAM_VALIDATOR_H

#include "StepParts.h"

#include "dovetail/Layout/Exchange.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>
#include <optional>

namespace dovetail::runtime {

class Validator {
public:
  explicit Validator(const Plan &plan) : plan(plan) {}

  absl::Status validate();

private:
  absl::Status checkTensor(size_t index);
  absl::Status checkBounded(const std::string &where, int32_t count, int64_t extent);
  absl::Status checkBoundedLoops(const std::string &where, const std::vector<LoopInfo> &loops);
  absl::Status checkStep(const std::string &where, const StepInfo &step, bool inPrologue);
  /// An operand of a library call.
  struct Read {
    uint32_t tensor;
    const Access &access;
    size_t firstWindow; ///< Dimensions from here on may have elements that no iteration reads.
  };
  absl::Status checkLoops(const std::string &where, const std::vector<LoopInfo> &loops, uint32_t output, size_t sums,
                          size_t taps, std::initializer_list<Read> reads);
  absl::Status checkConvolution(const std::string &where, const ConvolutionCall &call);
  absl::Status checkMatMul(const std::string &where, const MatMulCall &call);
  bool mayWriteOver(const MatMulCall &call) const;
  absl::Status checkPool(const std::string &where, const PoolCall &call);
  absl::Status checkAttention(const std::string &where, const AttentionCall &call);
  absl::Status checkTransform(const std::string &where, const TransformCall &call);
  absl::Status checkMove(const std::string &where, const MoveInfo &move);
  absl::Status checkExchange(const std::string &where, const ExchangeCall &call);
  absl::Status checkCondition(const std::string &where, uint32_t condition, bool inPrologue);
  absl::Status checkPostOps(const std::string &where, const std::vector<PostOpInfo> &ops, uint32_t output);
  absl::Status checkCounts();
  absl::Status checkFeedback(const PortInfo &input);
  absl::Status checkFedLengths();
  const std::vector<int64_t> &shape(uint32_t tensor) const { return plan.bufferOf(tensor).shape; }
  bool sameType(uint32_t a, uint32_t b) const { return plan.bufferOf(a).type == plan.bufferOf(b).type; }

  absl::Status checkRead(const std::string &where, const StepInfo &step, uint32_t tensor) const;
  void endSteps(size_t begin);

  /// What is in a buffer: nothing, something if steps have been chosen that may not be, or something.
  enum class Written { No, Chosen, Yes };

  const Plan &plan;
  std::vector<Written> written; ///< For each buffer.
  /// The same where the repeats and choices began that have not ended: there may be no iteration that writes anything.
  std::vector<std::vector<Written>> writtenBefore;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_LIB_PROGRAM_VALIDATOR_H
