//===- FakeCudnn.cpp - cuDNN for tests ---------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stands in for libcudnn.so: computes graphs of convolutions and pointwise operations on the host, as the library's
// documentation defines them. Refuses what FAKE_CUDNN_REFUSES names, and has plans where the library had them on an
// H100 and as its documentation says. FAKE_CUDNN_OFFERS=chains: it has all plans for all graphs. See FakeLibraries.h.
//
//===----------------------------------------------------------------------===//

#include "FakeCudnnRules.h"
#include "FakeLibraries.h"
#include "FakeStream.h"

#include "Harness/Halves.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <cudnn_graph.h>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

using namespace dovetail::test;

namespace {

struct FakeHandle {
  cudaStream_t stream = nullptr;
};

FakeCudnnLog theLog;
std::mutex logMutex; ///< Ranks are threads.

int64_t workspaceBytes(int plan) {
  if (static_cast<size_t>(plan) < theLog.workspaces.size())
    return theLog.workspaces[plan];
  return plan == 3 ? int64_t(4) << 30 : 512 + plan;
}

Descriptor *of(cudnnBackendDescriptor_t handle) { return static_cast<Descriptor *>(handle); }

size_t sizeOf(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_DOUBLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return 8;
  case CUDNN_TYPE_BOOLEAN:
    return 1;
  default:
    return 4;
  }
}

void forEach(const Shape &shape, const std::function<void(const Shape &)> &body) {
  Shape index(shape.size());
  for (;;) {
    body(index);
    size_t dim = shape.size();
    while (dim-- > 0) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
      if (dim == 0)
        return;
    }
  }
}

/// The elements of a tensor while a graph is done.
struct Values {
  Shape dims, strides;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  void *memory = nullptr; ///< Null for virtual tensors, which `elements` holds.
  std::vector<double> elements;

  /// A dimension of extent 1 is broadcast.
  double read(const Shape &index) {
    if (!memory)
      return element(index);
    if (type == CUDNN_DATA_FLOAT)
      return static_cast<float *>(memory)[offset(index)];
    return fromHalf(static_cast<uint16_t *>(memory)[offset(index)], format());
  }
  void write(const Shape &index, double value) {
    if (!memory)
      element(index) = value;
    else if (type == CUDNN_DATA_FLOAT)
      static_cast<float *>(memory)[offset(index)] = static_cast<float>(value);
    else
      static_cast<uint16_t *>(memory)[offset(index)] = toHalf(value, format());
  }
  HalfFormat format() const { return type == CUDNN_DATA_HALF ? kF16 : kBF16; }
  double &element(const Shape &index) {
    size_t number = 0, count = 1;
    for (size_t i = 0; i < index.size(); ++i) {
      number = number * dims[i] + (dims[i] == 1 ? 0 : index[i]);
      count *= dims[i];
    }
    if (elements.empty())
      elements.resize(count);
    return elements[number];
  }
  int64_t offset(const Shape &index) const {
    int64_t result = 0;
    for (size_t i = 0; i < index.size(); ++i)
      result += dims[i] == 1 ? 0 : index[i] * strides[i];
    return result;
  }
};

void convolve(const Descriptor &operation, const std::function<Values &(const Descriptor *)> &values) {
  bool transposed = operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  const Descriptor &convolution = *operation.at(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC
                                                           : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  // `image` is the larger one: what the convolution reads, or its gradient.
  Values &image = values(operation.at(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX
                                                 : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X));
  Values &weights = values(operation.at(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W
                                                   : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W));
  Values &result = values(operation.at(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY
                                                  : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
  Shape pre = convolution.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
        strides = convolution.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
        dilations = convolution.list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  int64_t groups = image.dims[1] / weights.dims[1], perGroup = result.dims[1] / groups;
  Values sums;
  sums.dims = image.dims;
  // Nothing is allocated for a tap: random cases would take seconds.
  Shape taps = weights.dims, w = taps, x = result.dims;
  taps[0] = 1;
  forEach(result.dims, [&](const Shape &y) {
    double sum = 0;
    forEach(taps, [&](const Shape &tap) {
      w = tap;
      w[0] = y[1];
      x[0] = y[0];
      x[1] = y[1] / perGroup * weights.dims[1] + tap[1];
      for (size_t i = 0; i < strides.size(); ++i) {
        x[2 + i] = y[2 + i] * strides[i] - pre[i] + tap[2 + i] * dilations[i];
        if (x[2 + i] < 0 || x[2 + i] >= image.dims[2 + i])
          return;
      }
      if (transposed)
        sums.element(x) += result.read(y) * weights.read(w);
      else
        sum += image.read(x) * weights.read(w);
    });
    if (!transposed)
      result.write(y, sum);
  });
  if (transposed)
    forEach(image.dims, [&](const Shape &x) { image.write(x, sums.element(x)); });
}

double apply(const Descriptor &pointwise, double x, double b) {
  double slope = pointwise.get<double>(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0);
  double upper = pointwise.get<double>(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, INFINITY);
  switch (pointwise.get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE)) {
  case CUDNN_POINTWISE_ADD:
    return x + b;
  case CUDNN_POINTWISE_MUL:
    return x * b;
  case CUDNN_POINTWISE_RELU_FWD:
    // The default loses what is not a number, and infinity is no bound.
    if (pointwise.get<cudnnNanPropagation_t>(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) != CUDNN_PROPAGATE_NAN ||
        !std::isfinite(upper))
      return NAN;
    return std::isnan(x) ? x : std::min(x >= 0 ? x : slope == 0 ? 0 : slope * x, upper);
  case CUDNN_POINTWISE_SIGMOID_FWD:
    return 1 / (1 + std::exp(-x));
  case CUDNN_POINTWISE_TANH_FWD:
    return std::tanh(x);
  case CUDNN_POINTWISE_GELU_FWD:
    return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  case CUDNN_POINTWISE_SWISH_FWD:
    return x / (1 + std::exp(-pointwise.get<double>(CUDNN_ATTR_POINTWISE_SWISH_BETA, 1) * x));
  case CUDNN_POINTWISE_ELU_FWD:
    return x < 0 ? pointwise.get<double>(CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1) * std::expm1(x) : x;
  default:
    return NAN;
  }
}

} // namespace

extern "C" {
FakeCudnnLog *fakeCudnnLog() { return &theLog; }
size_t cudnnGetVersion() { return 91301; }
const char *cudnnGetErrorString(cudnnStatus_t) { return "a fake error"; }
void cudnnGetLastErrorString(char *message, size_t size) { std::strncpy(message, "a fake reason", size); }
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(new FakeHandle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete reinterpret_cast<FakeHandle *>(handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  reinterpret_cast<FakeHandle *>(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor) {
  *descriptor = new Descriptor{type, {}, 0};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete of(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  of(descriptor)->attributes[name] = std::string(static_cast<const char *>(values), count * sizeOf(type));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t requested, int64_t *count, void *values) {
  const Descriptor *descriptor = of(handle);
  switch (name) {
  case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
    std::vector<int> plans = plansOf(*descriptor);
    *count = static_cast<int64_t>(plans.size());
    for (int64_t i = 0; i < std::min(requested, *count); ++i) {
      Descriptor *config = static_cast<Descriptor **>(values)[i];
      config->attributes = descriptor->attributes;
      config->plan = plans[i];
    }
    return CUDNN_STATUS_SUCCESS;
  }
  case CUDNN_ATTR_ENGINECFG_ENGINE:
    (*static_cast<Descriptor **>(values))->plan = descriptor->plan;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
    *count = descriptor->plan == 0;
    if (descriptor->plan == 0)
      *static_cast<cudnnBackendNumericalNote_t *>(values) = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
    *static_cast<int64_t *>(values) = 40 + descriptor->plan;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
    *count = descriptor->plan == 4;
    if (descriptor->plan == 4)
      *static_cast<cudnnBackendBehaviorNote_t *>(values) = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
    *count = 1;
    static_cast<Descriptor **>(values)[0]->plan = descriptor->plan;
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
    *static_cast<cudnnBackendKnobType_t *>(values) = CUDNN_KNOB_TYPE_TILE_SIZE;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
    *static_cast<int64_t *>(values) = 10 * descriptor->plan;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    *static_cast<int64_t *>(values) = workspaceBytes(descriptor->at(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->plan);
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  default:
    return CUDNN_STATUS_BAD_PARAM;
  }
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  const Descriptor *descriptor = of(handle);
  bool isConvolution = descriptor->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
                       descriptor->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  if (isConvolution && !isConsistent(*descriptor))
    return CUDNN_STATUS_BAD_PARAM;
  if (isConvolution && !hasTypes(*descriptor))
    return CUDNN_STATUS_NOT_SUPPORTED;
  if (descriptor->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && refuses("fusion") &&
      descriptor->list<Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS).size() > 1)
    return CUDNN_STATUS_NOT_SUPPORTED;
  if (descriptor->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR && refuses("strides")) {
    // Channels-last and dense, or nothing.
    Shape dims = descriptor->list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
          strides = descriptor->list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    int64_t stride = dims[1];
    if (strides[1] != 1)
      return CUDNN_STATUS_NOT_SUPPORTED;
    for (size_t dim = dims.size(); dim-- > 0;) {
      if (dim == 1)
        continue;
      if (dims[dim] > 1 && strides[dim] != stride)
        return CUDNN_STATUS_NOT_SUPPORTED;
      stride *= dims[dim];
    }
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t planHandle,
                                  cudnnBackendDescriptor_t packHandle) {
  const Descriptor *config = of(planHandle)->at(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Descriptor *graph = config->at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  {
    std::lock_guard lock(logMutex);
    theLog.executions.push_back(config->plan);
    theLog.operations = graph->list<Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS).size();
  }
  // Tensor cores have no products of f32; those of 16 bits are exact.
  bool isHalf = isOfHalves(*graph);
  bool fails = (config->plan == 0 && !isHalf && !theLog.tensorCores) ||
               (config->plan == (isHalf ? 0 : 1) && refuses("recommended")) ||
               (theLog.execute && !theLog.execute(config->plan));
  std::vector<int64_t> uids = of(packHandle)->list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  std::vector<void *> pointers = of(packHandle)->list<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  void *workspace = of(packHandle)->get<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  fails |= reinterpret_cast<uintptr_t>(workspace) % 256 != 0;
  fails |= !areAligned(*graph, uids, pointers);
  size_t workspaceSize = workspaceBytes(config->plan);
  auto execute = [=] {
    std::memset(workspace, 0xff, workspaceSize); // It may be overwritten.
    std::map<const Descriptor *, Values> all;
    auto values = [&](const Descriptor *tensor) -> Values & {
      auto [it, isNew] = all.try_emplace(tensor);
      if (isNew) {
        it->second.type = tensor->get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
        it->second.dims = tensor->list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
        it->second.strides = tensor->list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
        if (!tensor->get<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL))
          for (size_t i = 0; i < uids.size(); ++i)
            if (uids[i] == tensor->get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID))
              it->second.memory = pointers[i];
      }
      return it->second;
    };
    for (const Descriptor *operation : graph->list<const Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
      if (operation->type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
        convolve(*operation, values);
        continue;
      }
      Values &x = values(operation->at(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
      Values &y = values(operation->at(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
      const Descriptor *b = operation->at(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
      forEach(y.dims, [&](const Shape &index) {
        y.write(index, fails ? 0
                             : apply(*operation->at(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR), x.read(index),
                                     b ? values(b).read(index) : 0));
      });
    }
  };
  if (!enqueue(reinterpret_cast<FakeHandle *>(handle)->stream, execute))
    return CUDNN_STATUS_EXECUTION_FAILED;
  return fails ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}
}
