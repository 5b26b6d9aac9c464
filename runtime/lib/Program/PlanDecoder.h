//===- PlanDecoder.h - From FlatBuffers to plans -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Decoder, which checks everything that can be checked on one table alone; PlanValidator.cpp checks how tables
// fit together. PlanDecoder.cpp has what a plan consists of, StepDecoder.cpp its steps.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PROGRAM_PLANDECODER_H
#define DOVETAIL_RUNTIME_PROGRAM_PLANDECODER_H

#include "PlanEnums.h"
#include "PlanValidator.h"

namespace dovetail::runtime {

/// Bounds that keep all products of coordinates, strides and element sizes inside of 64 bits.
inline constexpr int64_t maxExtent = int64_t(1) << 40;
inline constexpr int64_t maxBytes = int64_t(1) << 60;

inline std::string str(const flatbuffers::String *string) { return string ? string->str() : std::string(); }

#define RETURN_IF_ERROR(expression)                                                                                    \
  do {                                                                                                                 \
    if (absl::Status status = (expression); !status.ok())                                                              \
      return status;                                                                                                   \
  } while (false)

/// Whether the elements of a vector lie where the processor may read them. The verifier looks at the vector's beginning
/// only.
template <typename T> bool isAligned(const flatbuffers::Vector<T> *vector) {
  return !vector || vector->size() == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % alignof(int64_t) == 0;
}

/// The order of `rank` dimensions, each once.
absl::Status decodeOrder(const std::string &where, const flatbuffers::Vector<uint8_t> &order, size_t rank,
                         std::vector<int> &result);
absl::Status decodeDim(const std::string &where, const artifact::Dim &dim, layout::DimSharding &result);

/// Fills `plan` from `source`. Errors: DATA_LOSS; FAILED_PRECONDITION when this version does not read it.
class Decoder {
public:
  Decoder(const artifact::Plan &source, Plan &plan, uint64_t weightsSize)
      : source(source), plan(plan), weightsSize(weightsSize) {}

  absl::Status decode();

private:
  absl::Status decodeMesh();
  absl::Status decodeCounts();
  absl::Status decodeBuffer(size_t index, const artifact::Buffer &buffer);
  absl::Status decodeTensor(size_t index, const artifact::Tensor &tensor);
  absl::Status decodeSteps(const char *list, const flatbuffers::Vector<flatbuffers::Offset<artifact::Step>> &steps,
                           std::vector<StepInfo> &result);
  absl::Status decodePorts(const char *list, const flatbuffers::Vector<flatbuffers::Offset<artifact::Port>> &ports,
                           std::vector<PortInfo> &result);
  absl::Status decodeKernel(const std::string &where, const artifact::KernelStep &step, KernelCall &call);
  absl::Status checkEnd(const std::string &where, const LoopEnd &end);
  absl::Status decodeLoops(const std::string &where,
                           const flatbuffers::Vector<flatbuffers::Offset<artifact::Loop>> &loops,
                           std::vector<LoopInfo> &result);
  absl::Status decodeIndex(const std::string &where, const artifact::IndexExpr &source, size_t loops, int &terms,
                           layout::IndexExpr &result);
  absl::Status decodeAccess(const std::string &where, const artifact::Access &source,
                            const std::vector<LoopInfo> &loops, Access &result);
  absl::Status decodeBlocks(const std::string &where, const artifact::Blocks &blocks, KernelCall &call);
  absl::Status decodeLibrary(const std::string &where, const artifact::LibraryStep &step, StepAction &action);
  absl::Status decodeExchange(const std::string &where, const artifact::ExchangeStep &step, StepAction &action);
  /// Exchanges of a list that a step has waited for, by position.
  struct Waited {
    std::vector<bool> complete, read;
  };
  absl::Status decodeWait(const std::string &where, const artifact::WaitStep &step, const std::vector<StepInfo> &before,
                          Waited &waited, WaitCall &call);
  absl::Status decodeDivision(const std::string &where, const artifact::Division &division, const StepInfo &step,
                              CallDivision &result);
  absl::Status decodeMemory(const std::string &where, const artifact::CallMemory &memory, CallMemory &result);
  absl::Status decodePostOps(const std::string &where,
                             const flatbuffers::Vector<flatbuffers::Offset<artifact::PostOp>> *ops,
                             std::vector<PostOpInfo> &result);
  absl::Status decodeShape(const std::string &where, const flatbuffers::Vector<int64_t> &shape,
                           std::vector<int64_t> &result);
  absl::Status decodeSharding(const std::string &where,
                              const flatbuffers::Vector<flatbuffers::Offset<artifact::Dim>> &dims,
                              const flatbuffers::Vector<uint8_t> *partialAxes, artifact::Reduction kind,
                              const std::vector<int64_t> &shape, layout::Sharding &result);
  absl::Status decodeFormat(const std::string &where, const artifact::Format &format, size_t rank,
                            MemoryFormat &result);
  absl::Status tensorIndex(const std::string &where, uint32_t index);

  const artifact::Plan &source;
  Plan &plan;
  uint64_t weightsSize;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PROGRAM_PLANDECODER_H
