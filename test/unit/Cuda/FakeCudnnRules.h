//===- FakeCudnnRules.h - Graphs that the fake cuDNN takes ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the descriptors of the fake library, and for which graphs it has plans. It has them where the library had
// them on an H100, as far as that is known, and where its documentation says so. FAKE_CUDNN_REFUSES names more that it
// refuses. With FAKE_CUDNN_OFFERS=chains, it has all plans for all graphs, with FAKE_CUDNN_OFFERS=fallback,
// plan 2 is in the fallback list. See FakeLibraries.h.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_CUDA_FAKECUDNNRULES_H
#define DOVETAIL_TEST_CUDA_FAKECUDNNRULES_H

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <cudnn_graph.h>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace dovetail::test {

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  std::map<int, std::string> attributes;
  int plan = 0;

  template <typename T> std::vector<T> list(int name) const {
    auto it = attributes.find(name);
    if (it == attributes.end())
      return {};
    std::vector<T> values(it->second.size() / sizeof(T));
    std::memcpy(values.data(), it->second.data(), it->second.size());
    return values;
  }
  template <typename T> T get(int name, T missing = {}) const {
    std::vector<T> values = list<T>(name);
    return values.empty() ? missing : values[0];
  }
  const Descriptor *at(int name) const { return get<const Descriptor *>(name); }
};

using Shape = std::vector<int64_t>;

inline bool names(const char *variable, const char *what) {
  const char *list = std::getenv(variable);
  return list && std::strstr(list, what);
}
inline bool refuses(const char *what) { return names("FAKE_CUDNN_REFUSES", what); }

/// Whether tensors have one type of those that the library's table of convolutions lists with sums in f32. Virtual
/// tensors may be f32.
inline bool hasTypes(const Descriptor &operation) {
  bool transposed = operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  const Descriptor &convolution = *operation.at(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC
                                                           : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  auto typeOf = [&](int name) { return operation.at(name)->get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE); };
  const int factors[] = {
      transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
      transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W};
  int result = transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y;
  cudnnDataType_t type = typeOf(factors[0]);
  bool isVirtual = operation.at(result)->get<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  return convolution.get<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT &&
         (type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16) &&
         typeOf(factors[1]) == type && typeOf(result) == (isVirtual ? CUDNN_DATA_FLOAT : type);
}

/// Whether what a graph reads and writes has 16 bits.
inline bool isOfHalves(const Descriptor &graph) {
  const Descriptor &first = *graph.list<const Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS).front();
  bool transposed = first.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  return first
             .at(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W)
             ->get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE) != CUDNN_DATA_FLOAT;
}

/// Whether the library has code for a graph that need not be compiled. It has a convolution alone, and the chain of
/// cudnnConvolutionBiasActivationForward: the addition of a tensor, of a bias, and Relu, in this order. A tensor
/// without a bias is not among it, nor are transposed convolutions.
inline bool isPrecompiled(const Descriptor &graph) {
  std::vector<const Descriptor *> operations = graph.list<const Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operations.size() == 1)
    return true;
  if (operations[0]->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    return false;
  size_t next = 1;
  auto nextIs = [&](cudnnPointwiseMode_t mode) {
    return next < operations.size() && operations[next]
                                               ->at(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                                               ->get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE) == mode;
  };
  auto tensor = [&](int name) { return operations[next]->at(name)->list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS); };
  auto isWhole = [&] {
    return tensor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC) == tensor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC) &&
           operations[next]->at(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)->list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES) ==
               operations[next]->at(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)->list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  };
  auto isBias = [&] {
    Shape bias = tensor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC), whole(bias.size(), 1);
    whole[1] = tensor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)[1];
    return bias == whole;
  };
  bool hasTensor = nextIs(CUDNN_POINTWISE_ADD) && !isBias() && isWhole();
  next += hasTensor;
  bool hasBias = nextIs(CUDNN_POINTWISE_ADD) && isBias();
  next += hasBias;
  if (nextIs(CUDNN_POINTWISE_RELU_FWD)) {
    const Descriptor &relu = *operations[next]->at(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    if (relu.get<double>(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE) != 0 ||
        relu.get<double>(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, INFINITY) < std::numeric_limits<float>::max())
      return false;
    ++next;
  }
  return hasBias && next == operations.size();
}

/// The plans that a list of the library has for a graph.
inline std::vector<int> plansOf(const Descriptor &query) {
  const Descriptor &graph = *query.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  bool isFallback = query.get<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
  if (names("FAKE_CUDNN_OFFERS", "fallback"))
    return isFallback ? std::vector<int>{2, 4} : std::vector<int>{0, 1};
  if (names("FAKE_CUDNN_OFFERS", "chains") || (!refuses("precompiled") && (isOfHalves(graph) || isPrecompiled(graph))))
    return isFallback ? std::vector<int>{4} : std::vector<int>{0, 1, 2, 3};
  return {isFallback ? 4 : 0};
}

/// Whether the extents of a convolution fit.
inline bool isConsistent(const Descriptor &operation) {
  bool transposed = operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  const Descriptor &convolution = *operation.at(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC
                                                           : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  auto dims = [&](int name) { return operation.at(name)->list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS); };
  Shape x = dims(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX
                            : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
        w = dims(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W),
        y = dims(transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY
                            : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  Shape pre = convolution.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
        post = convolution.list<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
        strides = convolution.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
        dilations = convolution.list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  bool fits = x[0] == y[0] && x[1] % w[1] == 0 && y[1] == w[0] && w[0] % (x[1] / w[1]) == 0 && x.size() >= 4;
  if (refuses("asymmetric"))
    fits &= pre == post;
  for (size_t i = 0; i < pre.size(); ++i) {
    int64_t reach = (w[2 + i] - 1) * dilations[i] + 1;
    fits &= pre[i] >= 0 && post[i] >= 0 && x[2 + i] + pre[i] + post[i] >= reach &&
            y[2 + i] == (x[2 + i] + pre[i] + post[i] - reach) / strides[i] + 1;
  }
  return fits;
}

/// Whether all tensors lie as their descriptors say.
inline bool areAligned(const Descriptor &graph, const std::vector<int64_t> &uids, const std::vector<void *> &pointers) {
  for (const Descriptor *operation : graph.list<const Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    for (int name : {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                     CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                     CUDNN_ATTR_OPERATION_POINTWISE_YDESC})
      if (const Descriptor *tensor = operation->at(name))
        for (size_t i = 0; i < uids.size(); ++i)
          if (uids[i] == tensor->get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID) &&
              reinterpret_cast<uintptr_t>(pointers[i]) % tensor->get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1))
            return false;
  return true;
}

} // namespace dovetail::test

#endif // DOVETAIL_TEST_CUDA_FAKECUDNNRULES_H
