//===- CudnnGraph.h - Graphs of cuDNN --------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how operations are described to cuDNN, and how one of its plans for them is chosen and run. This is the
// library's backend interface itself: the C++ frontend needs CUDA's runtime library, too.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_CUDNNGRAPH_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_CUDNNGRAPH_H

#include "CandidateLog.h"
#include "Libraries.h"
#include "Staging.h"

#include "dovetail/runtime/Plan.h"

#include <limits>
#include <optional>
#include <vector>

namespace dovetail::runtime::cuda {

/// A descriptor of cuDNN. Errors are kept until `finalize`.
class CudnnDescriptor {
public:
  CudnnDescriptor() = default;
  CudnnDescriptor(const CudnnApi &api, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor &&other) noexcept;
  CudnnDescriptor &operator=(CudnnDescriptor &&other) noexcept;

  template <typename T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T *values, size_t count) {
    keep(api->cudnnBackendSetAttribute(handle, name, type, static_cast<int64_t>(count), values));
  }
  template <typename T> void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    set(name, type, &value, 1);
  }
  void set(cudnnBackendAttributeName_t name, const std::vector<int64_t> &values) {
    set(name, CUDNN_TYPE_INT64, values.data(), values.size());
  }
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor &descriptor) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, descriptor.handle);
  }
  cudnnStatus_t finalize() {
    keep(api->cudnnBackendFinalize(handle));
    return status;
  }
  cudnnBackendDescriptor_t get() const { return handle; }
  cudnnStatus_t problem() const { return status; }

private:
  void keep(cudnnStatus_t result) {
    if (status == CUDNN_STATUS_SUCCESS)
      status = result;
  }

  const CudnnApi *api = nullptr;
  cudnnBackendDescriptor_t handle = nullptr;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
};

/// Where plans of a graph are looked for, the best first.
enum class PlanSource {
  Recommended, ///< The engines that the library's heuristics recommend.
  Fallback,    ///< The engines that it has besides.
  /// Of both, the engines that are passed over otherwise: those that are compiled at run time and have no tensor cores.
  /// They do any chain of operations, but at 1 % of the device's rate. On an H100 with cuDNN 9.19, convolutions of 1x1
  /// in f32 take 157 to 337 us so, with three post-ops. Without post-ops others take 13 to 42 us, and the post-ops in a
  /// kernel of their own some more.
  LastResort,
};

/// Operations to be done as a whole.
class CudnnGraph {
public:
  struct Tensor {
    std::vector<int64_t> dims, strides; ///< [N, C, spatial...], in elements.
    int64_t alignment = 16;             ///< Of its address, in bytes.
    bool isVirtual = false;             ///< Never in memory; then of float.
  };
  struct Convolution {
    bool transposed = false;
    std::vector<int64_t> pre, post, strides, dilations;
  };
  struct Pointwise {
    cudnnPointwiseMode_t mode;
    float upper = std::numeric_limits<float>::infinity(), slope = 0; ///< Of Relu.
    float alpha = 1;
  };

  /// `log` gets the engines that the library offers, and what becomes of them; null: nobody asks.
  CudnnGraph(LibraryHandles &handles, cudnnDataType_t type, CandidateLog *log)
      : handles(handles), type(type), log(log) {}
  ~CudnnGraph();
  CudnnGraph(const CudnnGraph &) = delete;
  CudnnGraph &operator=(const CudnnGraph &) = delete;

  /// Tensors are numbered from 0, for `bind`.
  int addTensor(const Tensor &tensor);
  void addConvolution(const Convolution &convolution, int input, int weights, int output);
  /// `operand` is negative when there is none.
  void addPointwise(const Pointwise &pointwise, int input, int operand, int output);

  /// Asks for plans and takes the first `count` that respect the mode and need no more than `workspace` allows, which
  /// is told of those passed over; the best first. False if there is none. May be called once for each source.
  absl::StatusOr<bool> choosePlans(PlanSource source, MathMode mode, size_t count, Workspace &workspace);
  size_t tensorCount() const { return tensors.size(); }
  size_t planCount() const { return plans.size(); }
  /// The candidate of a plan in the log.
  CallCandidate &candidate(size_t plan) const { return log->candidates[plans[plan].candidate]; }
  /// `addresses` of all tensors; those of virtual ones do not matter.
  absl::Status bind(const std::vector<void *> &addresses, void *workspace);
  absl::Status issue(DeviceStream &stream, size_t plan);
  /// The library and the engine of a plan.
  std::string implementation(size_t plan) const;

private:
  /// A plan, and what it keeps alive. With a log, it has a candidate there.
  struct Plan {
    CudnnDescriptor config, plan;
    size_t candidate = 0;
  };

  /// Describes the whole to the library; false if it refuses that.
  absl::StatusOr<bool> finalize();
  /// Adds plans of a list until there are `count`.
  absl::Status addPlans(cudnnBackendHeurMode_t list, PlanSource source, MathMode mode, size_t count,
                        Workspace &workspace);
  /// The engine of a configuration; null if the library does not tell. `memory` keeps it.
  cudnnBackendDescriptor_t engineOf(const CudnnDescriptor &config, CudnnDescriptor &memory) const;
  /// Why an engine may not be used, null if it may.
  const char *brokenRule(cudnnBackendDescriptor_t engine, MathMode mode) const;
  /// See `PlanSource`.
  bool isLastResort(cudnnBackendDescriptor_t engine) const;
  /// None if the library does not tell.
  std::optional<std::vector<cudnnBackendNumericalNote_t>> numericalNotes(cudnnBackendDescriptor_t engine) const;
  /// Empty if the library does not tell.
  std::vector<cudnnBackendBehaviorNote_t> behaviorNotes(cudnnBackendDescriptor_t engine) const;
  /// An engine with its settings.
  CallCandidate describe(const CudnnDescriptor &config) const;
  /// Logs a candidate; `config` is null where the library offers no implementation.
  void note(const char *source, const CudnnDescriptor *config, CallCandidate::Status status, std::string reason = {},
            int64_t workspaceBytes = -1);
  /// The library's words about its last failure.
  std::string lastError() const;

  LibraryHandles &handles;
  cudnnDataType_t type;
  CandidateLog *log;
  std::vector<CudnnDescriptor> tensors, parts, operations;
  std::vector<Plan> plans;
  std::vector<int64_t> uids; ///< Of tensors that are not virtual.
  CudnnDescriptor graph, pack;
  std::optional<bool> isGraph; ///< Whether the library takes the graph, once it has been asked.
};

/// The graph's type for elements, if cuDNN does arithmetic on them here.
absl::StatusOr<cudnnDataType_t> cudnnTypeOf(ElementType type);

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_CUDNNGRAPH_H
