//===- KernelHarness.h - Compiles and runs kernels in tests -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what tests of generated kernels share.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_UNIT_CODEGEN_KERNELHARNESS_H
#define DOVETAIL_TEST_UNIT_CODEGEN_KERNELHARNESS_H

#include "dovetail/runtime/KernelAbi.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace dovetail::test {

using Index = std::vector<int64_t>;

/// The kernels of a module, compiled for a CPU and loaded.
class LoadedKernels {
public:
  /// Parses `source`, generates and compiles its kernels. Adds a failure to the running test if that does not work.
  LoadedKernels(llvm::StringRef source, const std::string &cpu = "native");
  ~LoadedKernels();
  LoadedKernels(const LoadedKernels &) = delete;
  LoadedKernels &operator=(const LoadedKernels &) = delete;

  /// The kernel, or null after a failure of the test.
  DovetailKernel get(const char *name) const;

private:
  void *library = nullptr;
};

/// The part [lo, hi) of a tensor, stored densely in the physical order `order` (outermost first).
template <typename T> struct Piece {
  Index lo, hi, order;
  std::vector<T> data;

  Piece(Index lo, Index hi, Index order) : lo(lo), hi(hi), order(order) {
    int64_t size = 1;
    for (size_t dim = 0; dim < lo.size(); ++dim)
      size *= count(dim);
    data.assign(size, T(77));
  }
  /// A whole tensor in row-major order.
  explicit Piece(Index shape) : Piece(Index(shape.size(), 0), shape, Index()) {
    for (size_t dim = 0; dim < shape.size(); ++dim)
      order.push_back(dim);
  }

  /// Coordinates of a dimension.
  int64_t count(int64_t dim) const { return lo[dim] < hi[dim] ? hi[dim] - lo[dim] : 0; }
  Index strides() const {
    Index result(lo.size());
    int64_t stride = 1;
    for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
      result[*dim] = stride;
      stride *= count(*dim);
    }
    return result;
  }
  int64_t offset(const Index &index) const {
    Index stride = strides();
    int64_t result = 0;
    for (size_t dim = 0; dim < lo.size(); ++dim)
      result += (index[dim] - lo[dim]) * stride[dim];
    return result;
  }
  T &operator[](const Index &index) { return data[offset(index)]; }
  const T &operator[](const Index &index) const { return data[offset(index)]; }
  /// The address that the element at coordinate zero would have, perhaps outside of the memory.
  T *base() {
    return reinterpret_cast<T *>(reinterpret_cast<intptr_t>(data.data()) +
                                 offset(Index(lo.size(), 0)) * static_cast<int64_t>(sizeof(T)));
  }

  /// Sets every element to `value(index)`.
  template <typename F> Piece &fill(F value) {
    forEachIn(lo, hi, [&](const Index &index) { (*this)[index] = value(index); });
    return *this;
  }

  static void forEachIn(const Index &lo, const Index &hi, llvm::function_ref<void(const Index &)> body) {
    for (size_t dim = 0; dim < lo.size(); ++dim)
      if (lo[dim] >= hi[dim])
        return;
    Index index = lo;
    for (;;) {
      body(index);
      size_t dim = index.size();
      while (dim > 0 && ++index[dim - 1] == hi[dim - 1]) {
        index[dim - 1] = lo[dim - 1];
        --dim;
      }
      if (dim == 0)
        return;
    }
  }
};

/// Collects what a kernel is called with: tensors in the order of reads, then writes.
class Call {
public:
  /// `loops` holds lo and hi of each loop.
  explicit Call(Index loops) : numbers(std::move(loops)) {}
  template <typename T> Call &with(Piece<T> &piece) {
    pointers.push_back(piece.base());
    for (int64_t stride : piece.strides())
      numbers.push_back(stride);
    return *this;
  }
  void run(DovetailKernel kernel) {
    // There are no counts.
    pointers.push_back(nullptr);
    if (kernel)
      kernel(pointers.data(), numbers.data());
    pointers.pop_back();
  }

private:
  std::vector<void *> pointers;
  Index numbers;
};

/// Those of `cpus`, as `CodeGenOptions::cpu` takes them, whose code runs here.
std::vector<std::string> runnableCpus(std::initializer_list<const char *> cpus);

/// `cpu` as part of the name of a test.
std::string testName(std::string cpu);

/// A pseudo-random number in [-2, 2) that depends on `index` only.
float noise(const Index &index);

} // namespace dovetail::test

#endif // DOVETAIL_TEST_UNIT_CODEGEN_KERNELHARNESS_H
