//===- FakeCufft.cpp - cuFFT for tests ---------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stands in for libcufft.so: computes transforms on the host by their definition, in the layouts of the library's
// documentation. As that allows, it overwrites the spectra of real numbers and its work areas, and gives no numbers for
// spectra that real numbers do not have. Each line of a batch needs FAKE_CUFFT_LINE_BYTES of work area, or else 1000.
//
//===----------------------------------------------------------------------===//

#include "FakeStream.h"

#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <cufft.h>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

namespace {

struct FakePlan {
  bool allocates = true, isMade = false;
  int64_t length = 0, inPoint = 0, inLine = 0, outPoint = 0, outLine = 0, lines = 0;
  cufftType type = CUFFT_C2C;
  size_t workBytes = 0;
  void *work = nullptr;
  cudaStream_t stream = nullptr;
};

std::mutex planMutex; ///< Ranks are threads.
std::map<cufftHandle, FakePlan> plans;
cufftHandle nextHandle = 1;

FakePlan *find(cufftHandle handle) {
  std::lock_guard lock(planMutex);
  auto plan = plans.find(handle);
  return plan == plans.end() ? nullptr : &plan->second;
}

template <typename Real, bool readsReal, bool writesReal>
void transform(const FakePlan &plan, void *source, void *target, int direction) {
  constexpr Real nan = std::numeric_limits<Real>::quiet_NaN();
  if (plan.workBytes)
    std::memset(plan.work, 0xff, plan.workBytes);
  auto *in = static_cast<Real *>(source), *out = static_cast<Real *>(target);
  int64_t n = plan.length, half = n / 2 + 1;
  // All is read before anything is written.
  std::vector<std::complex<double>> x(plan.lines * n);
  for (int64_t line = 0; line < plan.lines; ++line)
    for (int64_t i = 0; i < (writesReal ? half : n); ++i) {
      int64_t at = line * plan.inLine + i * plan.inPoint;
      std::complex<double> &value = x[line * n + i];
      if constexpr (readsReal) {
        value = in[at];
        continue;
      }
      value = {in[2 * at], in[2 * at + 1]};
      if constexpr (!writesReal)
        continue;
      if (value.imag() != 0 && (i == 0 || 2 * i == n))
        value = nan;
      if (i > 0)
        x[line * n + n - i] = std::conj(value);
      in[2 * at] = in[2 * at + 1] = nan;
    }
  for (int64_t line = 0; line < plan.lines; ++line)
    for (int64_t k = 0; k < (readsReal ? half : n); ++k) {
      std::complex<double> sum;
      for (int64_t i = 0; i < n; ++i)
        sum += x[line * n + i] * std::polar(1.0, direction * 2 * M_PI * static_cast<double>(i * k % n) / n);
      int64_t at = line * plan.outLine + k * plan.outPoint;
      if constexpr (writesReal) {
        out[at] = static_cast<Real>(sum.real());
      } else {
        out[2 * at] = static_cast<Real>(sum.real());
        out[2 * at + 1] = static_cast<Real>(sum.imag());
      }
    }
}

template <typename Real, bool readsReal, bool writesReal>
cufftResult execute(cufftHandle handle, cufftType type, void *in, void *out, int direction) {
  FakePlan *plan = find(handle);
  if (!plan || !plan->isMade || plan->type != type)
    return CUFFT_INVALID_PLAN;
  if (!plan->allocates && plan->workBytes > 0 && !plan->work)
    return CUFFT_NO_WORKSPACE;
  for (void *memory : {in, out})
    if (!memory || reinterpret_cast<uintptr_t>(memory) % (2 * sizeof(Real)) != 0)
      return CUFFT_UNALIGNED_DATA;
  auto work = [plan = *plan, in, out, direction] { transform<Real, readsReal, writesReal>(plan, in, out, direction); };
  return enqueue(plan->stream, work) ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

} // namespace

extern "C" {
cufftResult cufftGetVersion(int *version) {
  *version = 12000;
  return CUFFT_SUCCESS;
}
cufftResult cufftCreate(cufftHandle *handle) {
  std::lock_guard lock(planMutex);
  *handle = nextHandle++;
  plans[*handle];
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle handle) {
  std::lock_guard lock(planMutex);
  return plans.erase(handle) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftSetAutoAllocation(cufftHandle handle, int allocates) {
  FakePlan *plan = find(handle);
  if (!plan || plan->isMade)
    return CUFFT_INVALID_PLAN;
  plan->allocates = allocates != 0;
  return CUFFT_SUCCESS;
}
cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long *n, long long *inembed, long long istride,
                                long long idist, long long *onembed, long long ostride, long long odist, cufftType type,
                                long long batch, size_t *workSize) {
  FakePlan *plan = find(handle);
  if (!plan || plan->isMade)
    return CUFFT_INVALID_PLAN;
  // Without these the distances are not those that are given.
  if (rank != 1 || !inembed || !onembed || n[0] < 1 || istride < 1 || ostride < 1 || batch < 1 ||
      (batch > 1 && (idist < 1 || odist < 1)))
    return CUFFT_INVALID_VALUE;
  const char *lineBytes = std::getenv("FAKE_CUFFT_LINE_BYTES");
  plan->length = n[0];
  plan->inPoint = istride;
  plan->inLine = idist;
  plan->outPoint = ostride;
  plan->outLine = odist;
  plan->lines = batch;
  plan->type = type;
  plan->workBytes = *workSize = batch * (lineBytes ? std::atoll(lineBytes) : 1000);
  plan->isMade = true;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetWorkArea(cufftHandle handle, void *work) {
  FakePlan *plan = find(handle);
  if (!plan || reinterpret_cast<uintptr_t>(work) % 256 != 0)
    return CUFFT_INVALID_VALUE;
  plan->work = work;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  FakePlan *plan = find(handle);
  if (!plan)
    return CUFFT_INVALID_PLAN;
  plan->stream = stream;
  return CUFFT_SUCCESS;
}
cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *in, cufftComplex *out, int direction) {
  return execute<float, false, false>(plan, CUFFT_C2C, in, out, direction);
}
cufftResult cufftExecR2C(cufftHandle plan, cufftReal *in, cufftComplex *out) {
  return execute<float, true, false>(plan, CUFFT_R2C, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *in, cufftReal *out) {
  return execute<float, false, true>(plan, CUFFT_C2R, in, out, CUFFT_INVERSE);
}
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *in, cufftDoubleComplex *out, int direction) {
  return execute<double, false, false>(plan, CUFFT_Z2Z, in, out, direction);
}
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *in, cufftDoubleComplex *out) {
  return execute<double, true, false>(plan, CUFFT_D2Z, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *in, cufftDoubleReal *out) {
  return execute<double, false, true>(plan, CUFFT_Z2D, in, out, CUFFT_INVERSE);
}
}
