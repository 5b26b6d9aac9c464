//===- KernelProduct.cpp - Product of matrices by own kernels -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelProduct.h"

#include "../../Memory/Alignment.h"
#include "KernelEpilogue.h"

#include "absl/strings/str_cat.h"

using namespace dovetail;
using namespace dovetail::runtime;
using dnnl::memory;

/// Fewer rows than these take as long as reading the weights does.
static constexpr int64_t leastRows = 4;

static const int64_t *stridesOf(const memory::desc &desc) { return desc.data.format_desc.blocking.strides; }

const VectorKernels *KernelProduct::fastKernels() {
#ifdef __x86_64__
  return &avx2Kernels;
#else
  return nullptr;
#endif
}

bool KernelProduct::takes(const memory::desc &input, const memory::desc &weights, const memory::desc &output,
                          int64_t rowsOfAll) {
  memory::dims a = input.dims(), b = weights.dims(), c = output.dims();
  size_t last = c.size() - 1;
  for (size_t dim = 0; dim + 1 < last; ++dim)
    if (b[dim] != 1)
      return false;
  return output.data_type() == memory::data_type::f32 && rowsOfAll >= leastRows && c[last - 1] > 0 &&
         (stridesOf(input)[last] == 1 || a[last] == 1) && (stridesOf(output)[last] == 1 || c[last] == 1);
}

KernelProduct::KernelProduct(const memory::desc &input, const memory::desc &second, const memory::desc &output)
    : kernels(hostKernels()) {
  memory::dims a = input.dims(), c = output.dims();
  size_t last = c.size() - 1;
  task.rows = c[last - 1];
  task.columns = weights.columns = c[last];
  task.depth = weights.depth = a[last];
  task.inputRow = stridesOf(input)[last - 1];
  task.outputRow = stridesOf(output)[last - 1];
  weights.termStride = stridesOf(second)[last - 1];
  weights.columnStride = stridesOf(second)[last];
  for (size_t dim = 0; dim + 1 < last; ++dim) {
    batch.push_back({c[dim], a[dim] == 1 ? 0 : stridesOf(input)[dim], stridesOf(output)[dim]});
    matrices *= c[dim];
  }
}

PostOps::Outcome KernelProduct::create(const PostOps::Fused &fused, CallBudget &budget, bool isShared) {
  std::optional<Epilogue> found = kernelEpilogue(fused);
  if (!found || !budget.allows(isShared ? 0 : packedBytes(), 0))
    return PostOps::Outcome::Impossible;
  task.epilogue = *found;
  fusesBias = fused.hasBias;
  return PostOps::Outcome::Fast;
}

std::string KernelProduct::implementation() const { return absl::StrCat("own product, ", kernels.name); }

int64_t KernelProduct::packedBytes() const {
  return alignedSize(4 * kernels.productWeights(weights.depth, weights.columns));
}

std::string KernelProduct::packedFormat() const { return absl::StrCat("product in panels of ", kernels.panel); }

void KernelProduct::bind(const std::byte *input, const std::byte *from, std::byte *packedWeights, std::byte *output,
                         const std::byte *bias) {
  task.input = reinterpret_cast<const float *>(input);
  task.output = reinterpret_cast<float *>(output);
  task.weights = packed = reinterpret_cast<float *>(packedWeights);
  weights.data = reinterpret_cast<const float *>(from);
  // A tensor that is added lies there before the call.
  task.epilogue.addend = task.output;
  task.epilogue.bias = fusesBias ? reinterpret_cast<const float *>(bias) : nullptr;
}

void KernelProduct::pack() const { kernels.packProduct(weights, packed); }

void KernelProduct::run() const {
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    ProductTask own = task;
    int64_t rest = matrix;
    for (size_t dim = batch.size(); dim-- > 0;) {
      own.input += rest % batch[dim].extent * batch[dim].inputStride;
      own.output += rest % batch[dim].extent * batch[dim].outputStride;
      rest /= batch[dim].extent;
    }
    own.epilogue.addend = own.output;
    kernels.runProduct(own);
  }
}
