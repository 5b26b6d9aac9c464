//===- TransformCall.cpp - Fourier transforms by definition ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TransformCall.h"

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::emulated;

namespace {

class TransformTask : public HostTask, public DeviceLibraryCall {
public:
  TransformTask(const RankMemory &memory, const TransformCall &call) : memory(memory), call(call) {}

  absl::Status bind(std::byte *, std::byte *) override { return absl::OkStatus(); }
  absl::Status issue(DeviceStream &stream) override { return stream.call(*this); }
  absl::Status perform() override {
    if (memory.memory(call.output).type == ElementType::F64)
      run<double>();
    else
      run<float>();
    return absl::OkStatus();
  }

private:
  using Complex = std::complex<double>;

  template <typename Real> void run();
  template <typename Real> std::vector<Complex> read(const Real *line, int64_t pointStride, int64_t partStride) const;

  const RankMemory &memory;
  TransformCall call;
};

} // namespace

/// All points of a line that begins there; strides are in elements.
template <typename Real>
std::vector<std::complex<double>> TransformTask::read(const Real *line, int64_t pointStride, int64_t partStride) const {
  int64_t length = call.form.length, count = call.form.writesReal ? length / 2 + 1 : length;
  std::vector<Complex> x(length);
  for (int64_t n = 0; n < count; ++n) {
    const Real *number = line + n * pointStride;
    x[n] = {*number, call.form.readsReal ? 0 : number[partStride]};
    if (!call.form.writesReal)
      continue;
    if (x[n].imag() != 0 && (n == 0 || 2 * n == length))
      x[n] = std::numeric_limits<double>::quiet_NaN();
    if (n > 0)
      x[length - n] = std::conj(x[n]);
  }
  return x;
}

template <typename Real> void TransformTask::run() {
  int64_t length = call.form.length;
  std::vector<Complex> roots(length);
  for (int64_t n = 0; n < length; ++n)
    roots[n] = std::polar(1.0, (call.isInverse ? 2 : -2) * std::numbers::pi * static_cast<double>(n) /
                                   static_cast<double>(length));

  const MemoryView &input = memory.memory(call.input), &output = memory.memory(call.output);
  layout::Box outBox = memory.resultBox(call.loops, call.output), inBox = call.form.readBox(outBox);
  int rank = outBox.rank(), axis = static_cast<int>(call.form.axis);
  const auto *source = reinterpret_cast<const Real *>(input.address(inBox));
  auto *target = reinterpret_cast<Real *>(output.address(outBox));
  int64_t numLines = 1;
  for (int dim = 0; dim + 1 < rank; ++dim)
    numLines *= dim == axis ? 1 : outBox[dim].size();
  for (int64_t line = 0; line < numLines; ++line) {
    int64_t rest = line, from = 0, to = 0;
    for (int dim = rank - 2; dim >= 0; --dim) {
      if (dim == axis)
        continue;
      from += rest % outBox[dim].size() * input.strides[dim];
      to += rest % outBox[dim].size() * output.strides[dim];
      rest /= outBox[dim].size();
    }
    std::vector<Complex> x = read(source + from, input.strides[axis], input.strides[rank - 1]);
    for (int64_t k = 0; k < outBox[axis].size(); ++k) {
      Complex sum;
      for (int64_t n = 0, root = 0; n < length; ++n, root = (root + k) % length)
        sum += x[n] * roots[root];
      Real *number = target + to + k * output.strides[axis];
      *number = static_cast<Real>(sum.real());
      if (!call.form.writesReal)
        number[output.strides[rank - 1]] = static_cast<Real>(sum.imag());
    }
  }
}

std::unique_ptr<DeviceLibraryCall> dovetail::runtime::emulated::createTransform(const RankMemory &memory,
                                                                                const TransformCall &call) {
  if (memory.resultBox(call.loops, call.output).empty())
    return nullptr;
  return std::make_unique<TransformTask>(memory, call);
}
