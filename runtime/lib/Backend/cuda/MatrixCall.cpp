//===- MatrixCall.cpp - A product by cuBLASLt ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatrixCall.h"
#include "Tuning.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

namespace {

/// A matrix as the library sees it: column-major, so with its dimensions swapped.
struct Orientation {
  bool transpose;  ///< Columns are contiguous, not rows.
  int64_t leading; ///< Elements from one contiguous run to the next.
};

std::optional<Orientation> orient(const MatrixLayout &layout, int64_t rows, int64_t columns) {
  if (layout.hasContiguousRows(rows, columns))
    return Orientation{false, rows == 1 ? columns : layout.rowStride};
  if (layout.isTransposed(rows, columns))
    return Orientation{true, columns == 1 ? rows : layout.columnStride};
  return std::nullopt;
}

struct Types {
  cudaDataType_t data, scale;
  cublasComputeType_t compute;
};

std::optional<Types> typesOf(ElementType type, MathMode mode) {
  switch (type) {
  case ElementType::F32:
    return Types{CUDA_R_32F, CUDA_R_32F,
                 mode == MathMode::F32    ? CUBLAS_COMPUTE_32F
                 : mode == MathMode::TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                          : CUBLAS_COMPUTE_32F_FAST_16BF};
  case ElementType::F64:
    return Types{CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
  case ElementType::F16:
    return Types{CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  case ElementType::BF16:
    return Types{CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  default:
    return std::nullopt;
  }
}

} // namespace

MatrixCall::~MatrixCall() {
  if (!operation)
    return;
  const CublasLtApi &api = handles.cublasLtApi();
  for (cublasLtMatrixLayout_t layout : {layoutA, layoutB, layoutC, layoutD})
    if (layout)
      api.cublasLtMatrixLayoutDestroy(layout);
  api.cublasLtMatmulDescDestroy(operation);
}

absl::Status MatrixCall::createLayout(cublasLtMatrixLayout_t &layout, int64_t rows, int64_t columns, int64_t leading,
                                      int64_t batchStride) const {
  const CublasLtApi &api = handles.cublasLtApi();
  Types types = *typesOf(product.type, MathMode::F32);
  absl::Status status = api.check(api.cublasLtMatrixLayoutCreate(&layout, types.data, rows, columns, leading),
                                  "cublasLtMatrixLayoutCreate");
  auto count = static_cast<int32_t>(product.batch);
  if (status.ok())
    status = api.check(
        api.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
        "cublasLtMatrixLayoutSetAttribute");
  if (status.ok())
    status = api.check(api.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                            &batchStride, sizeof(batchStride)),
                       "cublasLtMatrixLayoutSetAttribute");
  return status;
}

absl::Status MatrixCall::describe(MathMode mode) {
  const CublasLtApi &api = handles.cublasLtApi();
  Types types = *typesOf(product.type, mode);
  absl::Status status =
      api.check(api.cublasLtMatmulDescCreate(&operation, types.compute, types.scale), "cublasLtMatmulDescCreate");
  auto set = [&](cublasLtMatmulDescAttributes_t name, const auto &value) {
    if (status.ok())
      status = api.check(api.cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof(value)),
                         "cublasLtMatmulDescSetAttribute");
  };
  // The library's matrices are column-major: what it computes is the transposed product, b's times a's.
  std::optional<Orientation> a = orient(product.a, product.m, product.k), b = orient(product.b, product.k, product.n),
                             c = orient(product.c, product.m, product.n), d = orient(product.d, product.m, product.n);
  set(CUBLASLT_MATMUL_DESC_TRANSA, b->transpose ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, a->transpose ? CUBLAS_OP_T : CUBLAS_OP_N);
  cublasLtEpilogue_t epilogue = product.activation == MatrixProduct::Activation::GeluTanh
                                    ? (product.hasBias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU)
                                    : (product.hasBias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  // Algorithms depend on the alignment of the bias, whose address comes later.
  if (product.hasBias && status.ok())
    status = setBias(reinterpret_cast<const void *>(product.biasAlignment));

  auto layout = [&](cublasLtMatrixLayout_t &handle, int64_t rows, int64_t columns, const Orientation &orientation,
                    int64_t batchStride) {
    if (status.ok())
      status = orientation.transpose ? createLayout(handle, rows, columns, orientation.leading, batchStride)
                                     : createLayout(handle, columns, rows, orientation.leading, batchStride);
  };
  layout(layoutA, product.k, product.n, *b, product.batchB);
  layout(layoutB, product.m, product.k, *a, product.batchA);
  layout(layoutC, product.m, product.n, product.hasC ? *c : *d, product.hasC ? product.batchC : product.batchD);
  layout(layoutD, product.m, product.n, *d, product.batchD);
  return status;
}

absl::StatusOr<std::vector<MatrixCall::Algorithm>> MatrixCall::ask(size_t count, size_t mostWorkspace) const {
  absl::StatusOr<cublasLtHandle_t> handle = handles.cublasLt();
  if (!handle.ok())
    return handle.status();
  const CublasLtApi &api = handles.cublasLtApi();
  cublasLtMatmulPreference_t preference = nullptr;
  absl::Status status = api.check(api.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  auto set = [&](cublasLtMatmulPreferenceAttributes_t name, const auto &value) {
    if (status.ok())
      status = api.check(api.cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof(value)),
                         "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, mostWorkspace);
  // Sums by atomic additions would differ from run to run.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(product.b.alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(product.a.alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
      static_cast<uint32_t>(product.hasC ? product.c.alignment : product.d.alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(product.d.alignment));
  std::vector<cublasLtMatmulHeuristicResult_t> results(count);
  int found = 0;
  if (status.ok() &&
      api.cublasLtMatmulAlgoGetHeuristic(*handle, operation, layoutA, layoutB, layoutC, layoutD, preference,
                                         static_cast<int>(count), results.data(), &found) != CUBLAS_STATUS_SUCCESS)
    found = 0;
  if (preference)
    api.cublasLtMatmulPreferenceDestroy(preference);
  if (!status.ok())
    return status;
  std::vector<Algorithm> algorithms;
  for (int i = 0; i < found; ++i)
    if (results[i].state == CUBLAS_STATUS_SUCCESS)
      algorithms.push_back({results[i].algo, results[i].workspaceSize, results[i].wavesCount});
  return algorithms;
}

CallCandidate MatrixCall::describe(const Algorithm &algorithm) const {
  const CublasLtApi &api = handles.cublasLtApi();
  CallCandidate candidate;
  candidate.source = "heuristic";
  candidate.workspaceBytes = static_cast<int64_t>(algorithm.workspace);
  size_t written = 0;
  auto get = [&](cublasLtMatmulAlgoConfigAttributes_t name, auto &value) {
    return api.cublasLtMatmulAlgoConfigGetAttribute(&algorithm.algorithm, name, &value, sizeof(value), &written) ==
           CUBLAS_STATUS_SUCCESS;
  };
  int32_t number = 0;
  if (get(CUBLASLT_ALGO_CONFIG_ID, number))
    candidate.engine = absl::StrCat(number);
  uint32_t setting = 0;
  for (auto [name, text] : {std::pair(CUBLASLT_ALGO_CONFIG_TILE_ID, "TILE_ID"),
                            {CUBLASLT_ALGO_CONFIG_STAGES_ID, "STAGES_ID"},
                            {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, "SPLITK_NUM"},
                            {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, "REDUCTION_SCHEME"},
                            {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, "CTA_SWIZZLING"},
                            {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, "CUSTOM_OPTION"}})
    if (setting = 0; get(name, setting))
      candidate.knobs.emplace_back(text, setting);
  candidate.knobs.emplace_back("WAVES_PERCENT", std::lround(100 * algorithm.waves));
  uint16_t shape = 0;
  for (auto [name, text] : {std::pair(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, "INNER_SHAPE_ID"),
                            {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, "CLUSTER_SHAPE_ID"}})
    if (shape = 0; get(name, shape))
      candidate.knobs.emplace_back(text, shape);
  uint64_t flags = 0;
  if (api.cublasLtMatmulAlgoCapGetAttribute(&algorithm.algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags,
                                            sizeof(flags), &written) == CUBLAS_STATUS_SUCCESS)
    for (auto [flag, text] : {std::pair(CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA, "FMA"),
                              {CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA, "HMMA"},
                              {CUBLASLT_NUMERICAL_IMPL_FLAGS_DMMA, "DMMA"},
                              {CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32, "INPUT_TF32"},
                              {CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F, "ACCUMULATOR_16F"}})
      if (flags & flag)
        candidate.notes.emplace_back(text);
  return candidate;
}

void MatrixCall::explain(const std::vector<Algorithm> &others, CallCandidate::Status status,
                         const std::string &reason) {
  firstCandidate = log->candidates.size();
  for (size_t i = 0; i < algorithms.size(); ++i) {
    CallCandidate candidate = describe(algorithms[i]);
    candidate.status = i == best ? CallCandidate::Status::Chosen : CallCandidate::Status::Usable;
    log->add(std::move(candidate));
  }
  auto isSame = [](const CallCandidate &one, const CallCandidate &other) {
    return one.engine == other.engine && one.knobs == other.knobs && one.workspaceBytes == other.workspaceBytes;
  };
  for (const Algorithm &algorithm : others) {
    CallCandidate candidate = describe(algorithm);
    candidate.status = status;
    candidate.reason = reason;
    if (std::none_of(log->candidates.begin() + firstCandidate, log->candidates.end(),
                     [&](const CallCandidate &known) { return isSame(known, candidate); }))
      log->add(std::move(candidate));
  }
}

std::string MatrixCall::implementation() const {
  if (algorithms.empty())
    return {};
  std::string number = log ? log->candidates[firstCandidate + best].engine : std::string();
  return absl::StrCat("cublaslt", number.empty() ? "" : absl::StrCat(" algorithm ", number));
}

absl::StatusOr<bool> MatrixCall::choose(MathMode mode, size_t count, Workspace &workspace) {
  if (absl::Status status = handles.cublasLt().status(); !status.ok())
    return status;
  if (!typesOf(product.type, mode) || !product.a.isFactor(product.m, product.k) ||
      !product.b.isFactor(product.k, product.n) || !product.d.isResult(product.m, product.n) ||
      (product.hasC && !product.c.isResult(product.m, product.n)))
    return false;
  DeviceScope scope(*handles.context);
  if (absl::Status status = describe(mode); !status.ok())
    return status;
  auto most = static_cast<size_t>(workspace.most);
  absl::StatusOr<std::vector<Algorithm>> found = ask(count, most);
  if (!found.ok())
    return found.status();
  algorithms = *std::move(found);
  std::erase_if(algorithms, [&](const Algorithm &algorithm) { return algorithm.workspace > most; });
  if (!algorithms.empty()) {
    if (!log)
      return true;
    // A report that lacks some is no reason to end.
    explain(ask(tunedWays, most).value_or(std::vector<Algorithm>()), CallCandidate::Status::Untried, {});
    return true;
  }
  absl::StatusOr<std::vector<Algorithm>> larger = ask(1, std::numeric_limits<size_t>::max());
  if (!larger.ok())
    return larger.status();
  if (!larger->empty())
    workspace.refuse(static_cast<int64_t>(larger->front().workspace));
  if (log)
    explain(*larger, CallCandidate::Status::Rejected, absl::StrCat("the plan allows ", most, " bytes of workspace"));
  return false;
}

absl::Status MatrixCall::setBias(const void *bias) {
  const CublasLtApi &api = handles.cublasLtApi();
  return api.check(
      api.cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)),
      "cublasLtMatmulDescSetAttribute");
}

absl::Status MatrixCall::issue(DeviceStream &stream, const void *a, const void *b, const void *c, void *d,
                               void *workspaceMemory, const Algorithm &algorithm) const {
  absl::StatusOr<cublasLtHandle_t> handle = handles.cublasLt();
  if (!handle.ok())
    return handle.status();
  const CublasLtApi &api = handles.cublasLtApi();
  DeviceScope scope(*handles.context);
  bool wide = product.type == ElementType::F64;
  float one = 1, factor = product.hasC ? 1 : 0;
  double wideOne = 1, wideFactor = factor;
  const void *alpha = wide ? static_cast<const void *>(&wideOne) : &one;
  const void *beta = wide ? static_cast<const void *>(&wideFactor) : &factor;
  // In place, the library wants one description of both.
  bool isInPlace = !product.hasC || (c == d && product.c.isLike(product.d) && product.batchC == product.batchD);
  return api.check(api.cublasLtMatmul(*handle, operation, alpha, b, layoutA, a, layoutB, beta, product.hasC ? c : d,
                                      isInPlace ? layoutD : layoutC, d, layoutD, &algorithm.algorithm, workspaceMemory,
                                      algorithm.workspace, reinterpret_cast<cudaStream_t>(handleOf(stream))),
                   "cublasLtMatmul");
}

absl::Status MatrixCall::tune(DeviceStream &stream, const void *a, const void *b, const void *c, void *d,
                              void *workspaceMemory) {
  absl::StatusOr<FastestWay> fastest = findFastest(*handles.context, stream, algorithms.size(), [&](size_t number) {
    return issue(stream, a, b, c, d, workspaceMemory, algorithms[number]);
  });
  if (!fastest.ok())
    return fastest.status();
  best = fastest->number;
  std::vector<CallCandidate *> measured;
  for (size_t i = 0; log && i < algorithms.size(); ++i)
    measured.push_back(&log->candidates[firstCandidate + i]);
  noteTimes(*fastest, measured);
  return absl::OkStatus();
}
