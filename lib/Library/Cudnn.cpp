//===- Cudnn.cpp - What cuDNN does -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes cuDNN 9, of which convolutions are used.
//
//===----------------------------------------------------------------------===//

#include "CallSizes.h"
#include "Factories.h"
#include "NvidiaLibrary.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;

/// What engines take for tables, and for sums that they divide among blocks of threads.
static constexpr int64_t kSmallWorkspace = int64_t(32) << 20;
/// Engines that copy larger operands into formats of their own, or into tiles of transformed ones, are not worth while.
static constexpr int64_t kMostForOperands = int64_t(256) << 20;

namespace {
class Cudnn : public NvidiaLibrary {
public:
  explicit Cudnn(ArrayRef<std::string> features) : roundsFactors(llvm::is_contained(features, kRoundedFactors)) {}

  StringRef getName() const override { return "cudnn"; }
  bool hasNarrowProducts() const override { return true; }
  FormatPreference getFormatPreference(const CallShape &) const override { return FormatPreference::ChannelsLast; }
  std::optional<CallBytes> getMemoryBound(plan::CallOpInterface call, const layout::Box &loops,
                                          bool packsOnce) const override;

protected:
  bool hasCall(const CallShape &call) const override {
    return call.as<calls::ConvolutionForm>() && isModest(call) && !isSlower(call);
  }

private:
  bool isSlower(const CallShape &call) const;

  bool roundsFactors; ///< Of products in f32, so that tensor cores do them.
};
} // namespace

/// Whether generated kernels are faster at a convolution than the library, or than cuBLASLt, which does the products
/// that have no windows. Measured on an H100 with cuDNN 9.19.
bool Cudnn::isSlower(const CallShape &call) const {
  const calls::ConvolutionForm &form = *call.as<calls::ConvolutionForm>();
  if (form.isTransposed || call.result.getNumElements() == 0)
    return false;
  // Each channel for itself. 7 x 7 of 64 channels at 512 x 512 take 3.8 ms in f32 and f16. A kernel takes 0.39 in f32.
  if (form.groups > 1)
    return call.loops[call.result.getRank()] == 1;
  constexpr int64_t fewest = 16;
  int64_t columns = call.loops[1], rows = call.result.getNumElements() / columns, terms = call.countTerms();
  // 16 to 2 channels at 512 x 512 take 11 us, by cuBLASLt 27 in f32 and 40 in f16.
  if (isProductOfTaps(call) && columns < fewest)
    return true;
  // Without tiles, kernels are no better: each element is a fold of its own.
  if (roundsFactors || !call.result.getElementType().isF32() || rows < fewest || columns < fewest || terms < fewest)
    return false;
  if (isProductOfTaps(call)) {
    // cuBLASLt seldom divides long sums among blocks where results are few. In a 14 x 14 image, 1024 to 256 channels
    // take 12.3 us. A kernel takes 9.5. For short sums both take the same, but only a kernel has Relu in itself.
    constexpr int64_t edge = 64, shortSum = 128, longSum = 512, fewTiles = 64;
    if (terms <= shortSum)
      return true;
    return terms >= longSum && llvm::divideCeil(rows, edge) * llvm::divideCeil(columns, edge) <= fewTiles;
  }
  // Without tensor cores the library copies to channels first and back. It has few blocks for small images. Windows of
  // ResNet-50 take 1.04 ms, and by kernels 0.25. A U-Net of base 64 takes 70 ms at 1024 x 1024, and by kernels 33.
  // Where the library's workspace is too small, it takes a hundred times as long.
  return true;
}

/// The library says only on the device what its engines need: one that needs more than this is not used.
std::optional<CallBytes> Cudnn::getMemoryBound(plan::CallOpInterface op, const layout::Box &loops, bool) const {
  CallShape call = CallShape::get(op);
  if (!call.as<calls::ConvolutionForm>())
    return std::nullopt;
  const calls::ConvolutionForm &form = *call.as<calls::ConvolutionForm>();
  ArrayRef<int64_t> input = call.operands[0].getShape();
  int64_t rank = call.result.getRank(), elementBytes = call.result.getElementTypeBitWidth() / 8;
  int64_t perGroup = call.result.getDimSize(1) / form.groups;
  int64_t groups = llvm::divideCeil(loops[1].hi, perGroup) - loops[1].lo / perGroup;
  int64_t inputs = loops[rank].size();
  int64_t read = loops[0].size() * groups * inputs, written = loops[0].size() * loops[1].size();
  for (int64_t dim = 2; dim < rank; ++dim) {
    const layout::Window &window = form.windows[dim - 2];
    int64_t reads = form.isTransposed ? (loops[dim].size() + window.reach() - 2) / window.stride + 1
                                      : (loops[dim].size() - 1) * window.stride + window.reach();
    read *= std::min(reads, input[dim]);
    written *= loops[dim].size();
  }
  int64_t kept = loops[1].size() * inputs * form.numTaps() * elementBytes;
  return CallBytes{0, kSmallWorkspace + kept + std::min((read + written) * elementBytes, kMostForOperands), 0};
}

std::unique_ptr<Library> dovetail::createCudnn(ArrayRef<std::string> features) {
  return std::make_unique<Cudnn>(features);
}
