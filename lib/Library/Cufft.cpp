//===- Cufft.cpp - What cuFFT does -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes cuFFT, which transforms lines of f32 or f64.
//
//===----------------------------------------------------------------------===//

#include "Factories.h"

#include "dovetail/Dialect/Dovetail/Ops/SpectralOps.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"

using namespace mlir;
using namespace dovetail;

/// What calls may take beyond as much as their lines, and how many times as much few lines may take, so that they fit
/// whatever the library takes.
static constexpr int64_t kSmallWorkspace = int64_t(16) << 20, kFewLinesFactor = 8;

namespace {
class Cufft : public Library {
public:
  StringRef getName() const override { return "cufft"; }
  bool hasTransforms() const override { return true; }
  // It has the roots of one itself.
  bool reads(Operation *op, unsigned number) const override { return number == 0; }
  bool hasEpilogue(Operation *, const PostOp &) const override { return false; }
  FormatPreference getFormatPreference(Operation *) const override { return FormatPreference::RowMajor; }
  std::optional<CallBytes> getMemoryBound(Operation *call, const layout::Box &loops, bool) const override;

protected:
  bool hasOperation(Operation *op) const override {
    // Of one point there is nothing to transform.
    auto dft = dyn_cast<DftOp>(op);
    return dft && dft.isPlain() && dft.getLength() > 1 && dft.getTable().getDefiningOp<ConstantOp>();
  }
  FloatType getComputeType(Operation *, FloatType type) const override {
    return type.isF32() || type.isF64() ? type : FloatType();
  }
};
} // namespace

/// The library says only on the device what it needs. Where all lines at once need more than this, as many as do not
/// are transformed at a time.
std::optional<CallBytes> Cufft::getMemoryBound(Operation *call, const layout::Box &loops, bool) const {
  auto transform = dyn_cast<plan::TransformOp>(call);
  if (!transform)
    return std::nullopt;
  RankedTensorType output = cast<plan::RefType>(transform.getOutput().getType()).getTensor();
  calls::TransformForm form = *transform.getForm();
  int64_t rank = output.getRank(), numbers = 2 * std::max(loops[form.axis].size(), loops[rank].size());
  for (int64_t dim = 0; dim + 1 < rank; ++dim)
    if (dim != static_cast<int64_t>(form.axis))
      numbers *= loops[dim].size();
  int64_t bytes = numbers * output.getElementTypeBitWidth() / 8;
  return CallBytes{0, bytes + std::min(kSmallWorkspace, kFewLinesFactor * bytes), 0};
}

std::unique_ptr<Library> dovetail::createCufft(ArrayRef<std::string>) { return std::make_unique<Cufft>(); }
