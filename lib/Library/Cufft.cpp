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

#include "dovetail/Library/Library.h"

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
  bool hasEpilogue(const CallShape &, const PostOp &) const override { return false; }
  FormatPreference getFormatPreference(const CallShape &) const override { return FormatPreference::RowMajor; }
  std::optional<CallBytes> getMemoryBound(plan::CallOpInterface call, const layout::Box &loops, bool) const override;

protected:
  bool hasCall(const CallShape &call) const override {
    // Of one point there is nothing to transform.
    const auto *form = call.as<TransformCall>();
    return form && form->length > 1;
  }
  FloatType getComputeType(const CallShape &, FloatType type) const override {
    return type.isF32() || type.isF64() ? type : FloatType();
  }
};
} // namespace

/// The library says only on the device what it needs. Where all lines at once need more than this, as many as do not
/// are transformed at a time.
std::optional<CallBytes> Cufft::getMemoryBound(plan::CallOpInterface call, const layout::Box &loops, bool) const {
  std::optional<CallForm> found = call.getCallForm();
  if (!std::holds_alternative<TransformCall>(*found))
    return std::nullopt;
  RankedTensorType output = plan::getTensor(call.getOutput());
  const TransformCall &form = std::get<TransformCall>(*found);
  int64_t rank = output.getRank(), numbers = 2 * std::max(loops[form.axis].size(), loops[rank].size());
  for (int64_t dim = 0; dim + 1 < rank; ++dim)
    if (dim != static_cast<int64_t>(form.axis))
      numbers *= loops[dim].size();
  int64_t bytes = numbers * output.getElementTypeBitWidth() / 8;
  return CallBytes{0, bytes + std::min(kSmallWorkspace, kFewLinesFactor * bytes), 0};
}

std::unique_ptr<Library> dovetail::createCufft(ArrayRef<std::string>) { return std::make_unique<Cufft>(); }
