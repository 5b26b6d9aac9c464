//===- FakeCublasLt.cpp - cuBLASLt for tests ---------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stands in for libcublasLt.so: computes the products of column-major matrices on the host, as the library's
// documentation defines them. Refuses what FAKE_CUBLASLT_REFUSES names. Its algorithms are those of FakeLibraries.h.
//
//===----------------------------------------------------------------------===//

#include "FakeLibraries.h"
#include "FakeStream.h"

#include "Harness/Halves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <cublasLt.h>
#include <mutex>
#include <string>

namespace {

struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t transposeA = CUBLAS_OP_N, transposeB = CUBLAS_OP_N;
  int32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
};

struct Layout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t stride = 0;
};

/// Of addresses, in bytes: of A, B, C and D.
using Alignments = std::array<uint32_t, 4>;

struct Preference {
  uint64_t mostWorkspace = 0;
  Alignments alignments = {256, 256, 256, 256}; ///< Unless told, as the library's header says.
};

/// Whether an address is as aligned as was promised, of the first matrix of a batch and of all others.
bool isAligned(const void *address, const Layout &layout, uint64_t promised) {
  int64_t size = layout.type == CUDA_R_32F ? 4 : 2, step = layout.batch > 1 ? layout.stride * size : 0;
  return (reinterpret_cast<uintptr_t>(address) | static_cast<uintptr_t>(step)) % promised == 0;
}

double load(const void *data, int64_t index, cudaDataType_t type) {
  if (type == CUDA_R_32F)
    return static_cast<const float *>(data)[index];
  return dovetail::test::fromHalf(static_cast<const uint16_t *>(data)[index],
                                  type == CUDA_R_16F ? dovetail::test::kF16 : dovetail::test::kBF16);
}

void store(void *data, int64_t index, cudaDataType_t type, double value) {
  if (type == CUDA_R_32F)
    static_cast<float *>(data)[index] = static_cast<float>(value);
  else
    static_cast<uint16_t *>(data)[index] =
        dovetail::test::toHalf(value, type == CUDA_R_16F ? dovetail::test::kF16 : dovetail::test::kBF16);
}

FakeCublasLtLog theLog;
std::mutex logMutex; ///< Ranks are threads.
constexpr int algorithmCount = 3;

Layout *of(cublasLtMatrixLayout_t handle) { return reinterpret_cast<Layout *>(handle); }
Operation *of(cublasLtMatmulDesc_t handle) { return reinterpret_cast<Operation *>(handle); }
Preference *of(cublasLtMatmulPreference_t handle) { return reinterpret_cast<Preference *>(handle); }

bool refuses(const char *what) {
  const char *list = std::getenv("FAKE_CUBLASLT_REFUSES");
  return list && std::strstr(list, what);
}

} // namespace

extern "C" {
FakeCublasLtLog *fakeCublasLtLog() { return &theLog; }
size_t cublasLtGetVersion() { return 130002; }
const char *cublasLtGetStatusString(cublasStatus_t) { return "a fake error"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(1);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *operation, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *operation = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(const cublasLtMatmulDesc_t operation) {
  delete of(operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t size) {
  void *target = name == CUBLASLT_MATMUL_DESC_TRANSA     ? static_cast<void *>(&of(operation)->transposeA)
                 : name == CUBLASLT_MATMUL_DESC_TRANSB   ? static_cast<void *>(&of(operation)->transposeB)
                 : name == CUBLASLT_MATMUL_DESC_EPILOGUE ? static_cast<void *>(&of(operation)->epilogue)
                                                         : static_cast<void *>(&of(operation)->bias);
  if (size != (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? sizeof(void *) : sizeof(int32_t)))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(target, value, size);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(const cublasLtMatrixLayout_t layout) {
  delete of(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name,
                                                const void *value, size_t size) {
  if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    std::memcpy(&of(layout)->batch, value, size);
  else
    std::memcpy(&of(layout)->stride, value, size);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete of(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name, const void *value,
                                                    size_t) {
  if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    std::memcpy(&of(preference)->mostWorkspace, value, sizeof(uint64_t));
  constexpr cublasLtMatmulPreferenceAttributes_t alignments[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (int i = 0; i < 4; ++i)
    if (name == alignments[i])
      std::memcpy(&of(preference)->alignments[i], value, sizeof(uint32_t));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *found) {
  *found = 0;
  {
    std::lock_guard lock(logMutex);
    theLog.compute = of(operation)->compute;
    theLog.mostWorkspace = of(preference)->mostWorkspace;
  }
  // The shapes must fit.
  bool ta = of(operation)->transposeA == CUBLAS_OP_T, tb = of(operation)->transposeB == CUBLAS_OP_T;
  uint64_t m = ta ? of(a)->columns : of(a)->rows, k = ta ? of(a)->rows : of(a)->columns;
  uint64_t k2 = tb ? of(b)->columns : of(b)->rows, n = tb ? of(b)->rows : of(b)->columns;
  if (k != k2 || of(d)->rows != m || of(d)->columns != n || of(c)->rows != m || of(c)->columns != n)
    return CUBLAS_STATUS_INVALID_VALUE;
  // One type for all, of those that the library's table lists with sums in f32; only f32 is rounded to less.
  cudaDataType_t type = of(d)->type;
  if (of(operation)->scale != CUDA_R_32F || (type != CUDA_R_32F && type != CUDA_R_16F && type != CUDA_R_16BF) ||
      (type != CUDA_R_32F && of(operation)->compute != CUBLAS_COMPUTE_32F))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (const Layout *layout : {of(a), of(b), of(c)})
    if (layout->type != type)
      return CUBLAS_STATUS_NOT_SUPPORTED;
  for (const Layout *layout : {of(a), of(b), of(c), of(d)})
    if (layout->leading < static_cast<int64_t>(layout->rows) || layout->batch != of(d)->batch)
      return CUBLAS_STATUS_INVALID_VALUE;
  if (refuses("all") || (of(operation)->epilogue != CUBLASLT_EPILOGUE_DEFAULT && refuses("epilogues")))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (of(d)->batch > 1 && refuses("batches"))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (int i = 0; *found < requested && i < algorithmCount; ++i) {
    size_t workspace = theLog.workspaces.empty() ? 1000 + i : theLog.workspaces[i];
    if (workspace > of(preference)->mostWorkspace)
      continue;
    results[*found].algo.data[0] = i;
    // Algorithms rely on these. The bias is a number here, whose alignment is that of the address that comes later.
    std::copy_n(of(preference)->alignments.begin(), 4, results[*found].algo.data + 1);
    auto bias = reinterpret_cast<uintptr_t>(of(operation)->bias);
    results[*found].algo.data[5] = bias & (~bias + 1);
    results[*found].state = CUBLAS_STATUS_SUCCESS;
    results[*found].workspaceSize = workspace;
    bool isPlain = of(operation)->epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    results[*found].wavesCount = isPlain ? theLog.plainWaves : theLog.fusedWaves;
    ++*found;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t name, void *value, size_t size,
                                                    size_t *written) {
  uint32_t number = static_cast<uint32_t>(algorithm->data[0]);
  uint32_t found = name == CUBLASLT_ALGO_CONFIG_ID ? 60 + number : name == CUBLASLT_ALGO_CONFIG_TILE_ID ? number : 0;
  bool isShape = name == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID || name == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
  if (size != (isShape ? sizeof(uint16_t) : sizeof(found)))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &found, size);
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *, cublasLtMatmulAlgoCapAttributes_t,
                                                 void *value, size_t size, size_t *written) {
  uint64_t flags = CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA;
  if (size != sizeof(flags))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &flags, size);
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t layoutA, const void *b, cublasLtMatrixLayout_t layoutB,
                              const void *beta, const void *c, cublasLtMatrixLayout_t layoutC, void *d,
                              cublasLtMatrixLayout_t layoutD, const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t size, cudaStream_t stream) {
  int number = static_cast<int>(algorithm->data[0]);
  {
    std::lock_guard lock(logMutex);
    theLog.executions.push_back(number);
  }
  if ((theLog.execute && !theLog.execute(number)) || (number == 0 && refuses("recommended")))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  float scale = *static_cast<const float *>(alpha), keep = *static_cast<const float *>(beta);
  bool isBiasAligned = !(of(operation)->epilogue & CUBLASLT_EPILOGUE_BIAS) ||
                       reinterpret_cast<uintptr_t>(of(operation)->bias) % algorithm->data[5] == 0;
  if (!isAligned(a, *of(layoutA), algorithm->data[1]) || !isAligned(b, *of(layoutB), algorithm->data[2]) ||
      (keep != 0 && !isAligned(c, *of(layoutC), algorithm->data[3])) ||
      !isAligned(d, *of(layoutD), algorithm->data[4]) || !isBiasAligned)
    return CUBLAS_STATUS_INVALID_VALUE;
  // The manual's words: in place if C == D and Cdesc == Ddesc.
  if (keep != 0 && c == d && layoutC != layoutD)
    return CUBLAS_STATUS_INVALID_VALUE;
  auto multiply = [=, op = *of(operation), sizeA = *of(layoutA), sizeB = *of(layoutB), sizeC = *of(layoutC),
                   sizeD = *of(layoutD)] {
    bool ta = op.transposeA == CUBLAS_OP_T, tb = op.transposeB == CUBLAS_OP_T;
    std::memset(workspace, 0xff, size); // It may be overwritten.
    auto at = [](const Layout &layout, int batch, uint64_t row, uint64_t column) {
      return static_cast<int64_t>(batch * layout.stride + column * layout.leading + row);
    };
    for (int batch = 0; batch < sizeD.batch; ++batch)
      for (uint64_t row = 0; row < sizeD.rows; ++row)
        for (uint64_t column = 0; column < sizeD.columns; ++column) {
          double sum = 0;
          for (uint64_t i = 0, k = ta ? sizeA.rows : sizeA.columns; i < k; ++i)
            sum += load(a, at(sizeA, batch, ta ? i : row, ta ? row : i), sizeA.type) *
                   load(b, at(sizeB, batch, tb ? column : i, tb ? i : column), sizeB.type);
          double value = scale * sum;
          if (keep != 0)
            value += keep * load(c, at(sizeC, batch, row, column), sizeC.type);
          if (op.epilogue & CUBLASLT_EPILOGUE_BIAS)
            value += load(op.bias, static_cast<int64_t>(row), sizeD.type); // Of the result's type, unless told.
          if (op.epilogue & CUBLASLT_EPILOGUE_RELU)
            value = std::fmax(value, 0);
          if (op.epilogue & 32) // GELU
            value = 0.5 * value * (1 + std::tanh(std::sqrt(2 / M_PI) * (value + 0.044715 * value * value * value)));
          store(d, at(sizeD, batch, row, column), sizeD.type, value);
        }
  };
  return enqueue(stream, multiply) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
}
