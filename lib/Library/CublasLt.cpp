//===- CublasLt.cpp - What cuBLASLt does -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes cuBLASLt, which multiplies matrices.
//
//===----------------------------------------------------------------------===//

#include "CallSizes.h"
#include "Factories.h"
#include "NvidiaLibrary.h"

using namespace mlir;
using namespace dovetail;

/// The workspace that the library's manual recommends for Hopper. All its algorithms but those that divide sums among
/// blocks of threads do without.
static constexpr int64_t kWorkspace = int64_t(32) << 20;

namespace {
class CublasLt : public NvidiaLibrary {
public:
  StringRef getName() const override { return "cublaslt"; }
  FormatPreference getFormatPreference(const CallShape &) const override { return FormatPreference::RowMajor; }
  std::optional<CallBytes> getMemoryBound(plan::CallOpInterface call, const layout::Box &, bool) const override {
    return isProduct(*call.getCallForm()) ? std::optional(CallBytes{0, kWorkspace, 0}) : std::nullopt;
  }

protected:
  bool hasCall(const CallShape &call) const override { return isProduct(call.form) && isModest(call); }

private:
  static bool isProduct(const CallForm &form) { return std::holds_alternative<ProductCall>(form); }
};
} // namespace

std::unique_ptr<Library> dovetail::createCublasLt(ArrayRef<std::string>) { return std::make_unique<CublasLt>(); }
