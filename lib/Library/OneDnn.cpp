//===- OneDnn.cpp - What oneDNN does -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes oneDNN 2.6 on x86-64.
//
//===----------------------------------------------------------------------===//

#include "CallSizes.h"
#include "Factories.h"
#include "GatheredMemory.h"
#include "OneDnnConvolutions.h"
#include "OneDnnMemory.h"

using namespace mlir;
using namespace dovetail;

namespace {
class OneDnn : public Library {
public:
  explicit OneDnn(ArrayRef<std::string> features)
      : hasBF16(llvm::is_contained(features, "avx512bf16")), hasAvx512(llvm::is_contained(features, "avx512f")),
        hasAvx2(llvm::is_contained(features, "avx2")), hasVnni(llvm::is_contained(features, "avx512vnni")),
        leastVector(getLeastVector(features)) {}

  StringRef getName() const override { return "onednn"; }
  bool hasIntegerProducts() const override { return hasVnni; }
  bool hasPlainProducts() const override { return true; }
  bool hasEpilogue(const CallShape &call, const PostOp &) const override {
    return !call.as<PoolCall>() && isa<FloatType>(call.result.getElementType());
  }
  FormatPreference getFormatPreference(const CallShape &call) const override {
    return call.as<ProductCall>() ? FormatPreference::RowMajor : FormatPreference::ChannelsLast;
  }
  bool readsFormat(const CallShape &call, unsigned number, plan::FormatAttr format,
                   plan::FormatAttr result) const override;
  bool writesOver(const CallShape &call, unsigned number) const override;
  bool isSlow(const CallShape &call) const override {
    return isSlowConvolution(call, layout::Box::ofShape(call.loops), hasAvx2, hasAvx512);
  }
  std::optional<CallBytes> getMemoryBound(plan::CallOpInterface op, const layout::Box &loops,
                                          bool packsOnce) const override {
    std::optional<CallBytes> bytes = getOneDnnMemory(op, loops, packsOnce, hasAvx512);
    if (!bytes)
      return bytes;
    CallShape call = CallShape::get(op);
    if (!mayGather(call))
      return bytes;
    // The runtime's own kernels do what the library is slow at for so small a part, or has no memory for.
    bool isSlow = isSlowConvolution(call, loops, hasAvx2, hasAvx512);
    CallBytes own = isSlow ? getGatheredMemory(call, loops, packsOnce, leastVector)
                           : getLeastGatheredMemory(call, loops, packsOnce, leastVector);
    bytes->packed = std::max(bytes->packed, own.packed);
    bytes->scratch = std::max(bytes->scratch, own.scratch);
    bytes->threadScratch = std::max(bytes->threadScratch, own.threadScratch);
    return bytes;
  }

protected:
  bool hasCall(const CallShape &call) const override;
  FloatType getComputeType(const CallShape &call, FloatType type) const override;

private:
  // Without instructions for bf16, which all processors with AMX have, too, the library's bf16 is slower than its f32.
  bool hasBF16, hasAvx512, hasAvx2;
  // Without these the library adds pairs of products of integers of 8 bits in 16, where they saturate.
  bool hasVnni;
  int64_t leastVector; ///< Of the runtime's own kernels.
};
} // namespace

/// Whether the library may take sums of integers through f32, which does not hold them: those of groups, some forms of
/// which it has no better implementation for.
static bool mayRound(const CallShape &call) {
  const auto *form = call.as<calls::ConvolutionForm>();
  return form && !form->isTransposed && form->groups > 1 && !isa<FloatType>(call.result.getElementType()) &&
         call.countTerms() > calls::mostExactTerms;
}

/// Products of one row and one column: with generated code one of 50 million terms takes two fifths of the time.
static bool isInnerProduct(const CallShape &call) {
  return call.as<ProductCall>() &&
         llvm::all_of(call.result.getShape().take_back(2), [](int64_t extent) { return extent == 1; });
}

/// Products in 16 or 8 bits that end the process on processors with matrices (AMX), at an illegal instruction of oneDNN
/// 2.6.3. Terms of a rank nearly fill two rows of a matrix there: they are 63 of 16 bits, or 125 to 127 of 8 bits. For
/// some numbers of rows such products work.
static bool isIllegal(const CallShape &call) {
  unsigned bits = call.as<ProductCall>() ? call.operands[0].getElementTypeBitWidth() : 32;
  if (bits > 16)
    return false;
  auto isBad = [&](int64_t terms) {
    int64_t row = 512 / bits, together = 32 / bits;
    return terms < 2 * row && terms > 2 * row - together;
  };
  if (!call.splits.empty() && call.splits.back().isSplit())
    return llvm::any_of(call.splits.back().getIntervals(), [&](layout::Interval part) { return isBad(part.size()); });
  return isBad(call.loops.back());
}

/// Windows of one element are never dilated.
static bool isDilated(const layout::Window &window) { return window.kernel > 1 && window.dilation > 1; }

bool OneDnn::hasCall(const CallShape &call) const {
  if (!isModest(call))
    return false;
  return std::visit(FormVisitor{[&](const calls::ConvolutionForm &) { return !mayRound(call); },
                                [&](const ProductCall &) { return !isInnerProduct(call) && !isIllegal(call); },
                                [&](const PoolCall &pool) {
                                  // Channels last, with AVX2 alone it takes 7 to 10 times as long as generated code for
                                  // the largest of 2 x 2 or 3 x 3.
                                  if (pool.kind == PoolKind::Max && hasAvx2 && !hasAvx512)
                                    return false;
                                  // Dilated pooling is the library's slow reference, and not right where a window hits
                                  // padding alone.
                                  return llvm::none_of(pool.windows, isDilated);
                                },
                                [](const auto &) { return false; }},
                    call.form);
}

/// The second factor may have its columns one after the other instead of its rows.
bool OneDnn::readsFormat(const CallShape &call, unsigned number, plan::FormatAttr format,
                         plan::FormatAttr result) const {
  if (Library::readsFormat(call, number, format, result))
    return true;
  if (!call.as<ProductCall>() || number != 1)
    return false;
  SmallVector<int64_t> order(format.getOrder());
  if (order.size() >= 2)
    std::swap(order[order.size() - 2], order[order.size() - 1]);
  return llvm::equal(order, llvm::seq<int64_t>(0, order.size()));
}

/// The result of a product is computed some rows at a time, and copied over these: where it is smaller, what that saves
/// does not matter.
static constexpr int64_t kLeastBytesInPlace = 16 << 20;

bool OneDnn::writesOver(const CallShape &call, unsigned number) const {
  if (!call.as<ProductCall>() || number != 0 || !call.result.getElementType().isF32() ||
      call.operands[0] != call.result || call.result.getNumElements() * 4 < kLeastBytesInPlace)
    return false;
  // Each row of the result is made of the same row of the first factor.
  ArrayRef<layout::AccessDim> dims = call.reads.front().get();
  return llvm::all_of(llvm::enumerate(dims.drop_back()),
                      [](auto each) { return each.value() == layout::AccessDim(Definition::at(each.index())); });
}

FloatType OneDnn::getComputeType(const CallShape &, FloatType type) const {
  if (type.isF32() || (type.isBF16() && hasBF16))
    return type;
  return type.isF16() || type.isBF16() ? Float32Type::get(type.getContext()) : FloatType();
}

std::unique_ptr<Library> dovetail::createOneDnn(ArrayRef<std::string> features) {
  return std::make_unique<OneDnn>(features);
}
