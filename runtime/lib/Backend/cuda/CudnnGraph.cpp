//===- CudnnGraph.cpp - Graphs of cuDNN ----------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudnnGraph.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

CudnnDescriptor::CudnnDescriptor(const CudnnApi &api, cudnnBackendDescriptorType_t type) : api(&api) {
  keep(api.cudnnBackendCreateDescriptor(type, &handle));
}

CudnnDescriptor::~CudnnDescriptor() {
  if (handle)
    api->cudnnBackendDestroyDescriptor(handle);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor &&other) noexcept
    : api(other.api), handle(std::exchange(other.handle, nullptr)), status(other.status) {}

CudnnDescriptor &CudnnDescriptor::operator=(CudnnDescriptor &&other) noexcept {
  std::swap(api, other.api);
  std::swap(handle, other.handle);
  std::swap(status, other.status);
  return *this;
}

absl::StatusOr<cudnnDataType_t> dovetail::runtime::cuda::cudnnTypeOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return CUDNN_DATA_FLOAT;
  case ElementType::F16:
    return CUDNN_DATA_HALF;
  case ElementType::BF16:
    return CUDNN_DATA_BFLOAT16;
  default:
    return absl::UnimplementedError(
        absl::StrCat("cuDNN does no arithmetic on ", elementTypeName(type),
                     "; compile the model with --no-libraries, which uses generated kernels instead"));
  }
}

CudnnGraph::~CudnnGraph() {
  // Plans hold code on the device.
  DeviceScope scope(*handles.context);
  plans.clear();
}

int CudnnGraph::addTensor(const Tensor &tensor) {
  auto uid = static_cast<int64_t>(tensors.size()) + 1;
  CudnnDescriptor descriptor(handles.cudnnApi(), CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, tensor.isVirtual ? CUDNN_DATA_FLOAT : type);
  descriptor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.dims);
  descriptor.set(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides);
  descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid);
  descriptor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, tensor.alignment);
  descriptor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, tensor.isVirtual);
  descriptor.finalize();
  uids.push_back(tensor.isVirtual ? -1 : uid);
  tensors.push_back(std::move(descriptor));
  return static_cast<int>(uid) - 1;
}

void CudnnGraph::addConvolution(const Convolution &convolution, int input, int weights, int output) {
  CudnnDescriptor descriptor(handles.cudnnApi(), CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
                 static_cast<int64_t>(convolution.strides.size()));
  descriptor.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, convolution.pre);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, convolution.post);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, convolution.strides);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, convolution.dilations);
  descriptor.finalize();

  float one = 1, zero = 0;
  bool transposed = convolution.transposed;
  // A transposed convolution is the gradient of one with respect to its input.
  CudnnDescriptor operation(handles.cudnnApi(), transposed
                                                    ? CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                                                    : CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  operation.set(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC
                           : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                descriptor);
  operation.set(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                tensors[input]);
  operation.set(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                tensors[weights]);
  operation.set(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                tensors[output]);
  operation.set(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA
                           : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                CUDNN_TYPE_FLOAT, one);
  operation.set(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA
                           : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                CUDNN_TYPE_FLOAT, zero);
  operation.finalize();
  parts.push_back(std::move(descriptor));
  operations.push_back(std::move(operation));
}

void CudnnGraph::addPointwise(const Pointwise &pointwise, int input, int operand, int output) {
  CudnnDescriptor descriptor(handles.cudnnApi(), CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, pointwise.mode);
  descriptor.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  if (pointwise.mode == CUDNN_POINTWISE_RELU_FWD) {
    // All of them, and no infinity, as the library's own frontend does it.
    double lower = 0, upper = std::min(pointwise.upper, std::numeric_limits<float>::max()), slope = pointwise.slope;
    descriptor.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, CUDNN_PROPAGATE_NAN);
    descriptor.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE, lower);
    descriptor.set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, upper);
    descriptor.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, slope);
  }
  double alpha = pointwise.alpha;
  if (pointwise.mode == CUDNN_POINTWISE_ELU_FWD)
    descriptor.set(CUDNN_ATTR_POINTWISE_ELU_ALPHA, CUDNN_TYPE_DOUBLE, alpha);
  if (pointwise.mode == CUDNN_POINTWISE_SWISH_FWD)
    descriptor.set(CUDNN_ATTR_POINTWISE_SWISH_BETA, CUDNN_TYPE_DOUBLE, alpha);
  descriptor.finalize();

  CudnnDescriptor operation(handles.cudnnApi(), CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, descriptor);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors[input]);
  if (operand >= 0)
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors[operand]);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors[output]);
  operation.finalize();
  parts.push_back(std::move(descriptor));
  operations.push_back(std::move(operation));
}

const char *CudnnGraph::brokenRule(cudnnBackendDescriptor_t engine, MathMode mode) const {
  if (!engine)
    return "the library does not tell its engine";
  std::optional<std::vector<cudnnBackendNumericalNote_t>> notes = numericalNotes(engine);
  if (!notes)
    return "the library does not tell its notes";
  for (cudnnBackendNumericalNote_t note : *notes)
    switch (note) {
    // Every run, and every rank, gets the same bits.
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      return "its results differ from run to run";
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      return "it rounds sums";
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      return "it rounds operands";
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
      return "its Winograd tiles of 13x13 lose digits";
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      // Tensor cores have no products of float32.
      if (type == CUDNN_DATA_FLOAT && mode == MathMode::F32)
        return "tensor cores round f32, which --math f32 excludes";
      break;
    default:
      break;
    }
  return nullptr;
}

absl::Status CudnnGraph::addPlans(cudnnBackendHeurMode_t list, PlanSource source, MathMode mode, size_t count,
                                  Workspace &workspace) {
  const CudnnApi &api = handles.cudnnApi();
  absl::StatusOr<cudnnHandle_t> handle = handles.cudnn();
  if (!handle.ok())
    return handle.status();
  CudnnDescriptor query(api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  query.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  query.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, list);
  const char *name = list == CUDNN_HEUR_MODE_A ? "mode A" : "fallback";
  // The log has all else from the time when the list was asked first.
  bool isKnown = source == PlanSource::LastResort;
  // What fails from here on means that there are no plans.
  if (query.finalize() != CUDNN_STATUS_SUCCESS) {
    if (!isKnown)
      note(name, nullptr, CallCandidate::Status::Failed, lastError());
    return absl::OkStatus();
  }
  int64_t available = 0;
  if (api.cudnnBackendGetAttribute(query.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                   &available, nullptr) != CUDNN_STATUS_SUCCESS)
    return absl::OkStatus();
  std::vector<CudnnDescriptor> offered;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < available; ++i) {
    offered.emplace_back(api, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(offered.back().get());
  }
  if (available == 0 && !isKnown)
    note(name, nullptr, CallCandidate::Status::Failed, "the library offers no implementation");
  if (available == 0 ||
      api.cudnnBackendGetAttribute(query.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, available,
                                   &available, raw.data()) != CUDNN_STATUS_SUCCESS)
    return absl::OkStatus();
  for (int64_t i = 0; i < available; ++i) {
    if (plans.size() == count && (!log || isKnown))
      break;
    CudnnDescriptor memory(api, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t engine = engineOf(offered[i], memory);
    if (isKnown && !(engine && isLastResort(engine)))
      continue;
    if (plans.size() == count) {
      note(name, &offered[i], CallCandidate::Status::Untried);
      continue;
    }
    const char *reason = brokenRule(engine, mode);
    if (!reason && !isKnown && isLastResort(engine))
      reason = "it is compiled at run time and has no tensor cores: the last resort";
    if (reason) {
      if (!isKnown)
        note(name, &offered[i], CallCandidate::Status::Rejected, reason);
      continue;
    }
    Plan made{{}, CudnnDescriptor(api, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)};
    made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, *handle);
    made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, offered[i]);
    int64_t found = 0, needed = 0;
    if (made.plan.finalize() != CUDNN_STATUS_SUCCESS ||
        api.cudnnBackendGetAttribute(made.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                     &found, &needed) != CUDNN_STATUS_SUCCESS) {
      note(name, &offered[i], CallCandidate::Status::Failed, lastError());
      continue;
    }
    if (needed > workspace.most) {
      note(name, &offered[i], CallCandidate::Status::Rejected,
           absl::StrCat("the plan allows ", workspace.most, " bytes of workspace"), needed);
      workspace.refuse(needed);
      continue;
    }
    made.candidate = log ? log->candidates.size() : 0;
    note(name, &offered[i], plans.empty() ? CallCandidate::Status::Chosen : CallCandidate::Status::Usable, {}, needed);
    made.config = std::move(offered[i]);
    plans.push_back(std::move(made));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> CudnnGraph::finalize() {
  if (isGraph)
    return *isGraph;
  isGraph = false;
  absl::StatusOr<cudnnHandle_t> handle = handles.cudnn();
  if (!handle.ok())
    return handle.status();
  for (const std::vector<CudnnDescriptor> *list : {&tensors, &parts, &operations})
    for (const CudnnDescriptor &descriptor : *list)
      if (descriptor.problem() != CUDNN_STATUS_SUCCESS) {
        note(
            "graph", nullptr, CallCandidate::Status::Failed,
            absl::StrCat("cuDNN rejects an operation: ", handles.cudnnApi().cudnnGetErrorString(descriptor.problem())));
        return false;
      }
  graph = CudnnDescriptor(handles.cudnnApi(), CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor &operation : operations)
    raw.push_back(operation.get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.data(), raw.size());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, *handle);
  if (graph.finalize() != CUDNN_STATUS_SUCCESS) {
    note("graph", nullptr, CallCandidate::Status::Failed, lastError());
    return false;
  }
  isGraph = true;
  return true;
}

absl::StatusOr<bool> CudnnGraph::choosePlans(PlanSource source, MathMode mode, size_t count, Workspace &workspace) {
  DeviceScope scope(*handles.context);
  absl::StatusOr<bool> isTaken = finalize();
  if (!isTaken.ok() || !*isTaken)
    return isTaken;
  for (cudnnBackendHeurMode_t list : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    if (source == PlanSource::LastResort || (source == PlanSource::Recommended) == (list == CUDNN_HEUR_MODE_A))
      if (absl::Status status = addPlans(list, source, mode, count, workspace); !status.ok())
        return status;
  return !plans.empty();
}

absl::Status CudnnGraph::bind(const std::vector<void *> &addresses, void *workspace) {
  pack = CudnnDescriptor(handles.cudnnApi(), CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  std::vector<void *> pointers;
  std::vector<int64_t> named;
  for (size_t i = 0; i < uids.size(); ++i)
    if (uids[i] >= 0) {
      named.push_back(uids[i]);
      pointers.push_back(addresses[i]);
    }
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(), pointers.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, named);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  return handles.cudnnApi().check(pack.finalize(), "cudnnBackendFinalize");
}

absl::Status CudnnGraph::issue(DeviceStream &stream, size_t plan) {
  absl::StatusOr<cudnnHandle_t> handle = handles.cudnn();
  if (!handle.ok())
    return handle.status();
  const CudnnApi &api = handles.cudnnApi();
  DeviceScope scope(*handles.context);
  auto raw = reinterpret_cast<cudaStream_t>(handleOf(stream));
  if (absl::Status status = api.check(api.cudnnSetStream(*handle, raw), "cudnnSetStream"); !status.ok())
    return status;
  return api.check(api.cudnnBackendExecute(*handle, plans[plan].plan.get(), pack.get()), "cudnnBackendExecute");
}
