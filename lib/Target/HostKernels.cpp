//===- HostKernels.cpp - What the runtime's own kernels do ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes the kernels that the runtime brings along for CPUs, in as far as nobody else does what they do.
//
//===----------------------------------------------------------------------===//

#include "Factories.h"

#include "dovetail/Dialect/Dovetail/Ops/AttentionOps.h"
#include "dovetail/Layout/Attention.h"

using namespace mlir;
using namespace dovetail;

namespace {
class HostKernels : public Library {
public:
  StringRef getName() const override { return "kernels"; }
  bool hasEpilogue(Operation *, const PostOp &) const override { return false; }
  FormatPreference getFormatPreference(Operation *) const override { return FormatPreference::RowMajor; }
  bool readsFormat(Operation *, unsigned, plan::FormatAttr format, plan::FormatAttr) const override {
    return !format.isBlocked();
  }
  std::optional<CallBytes> getMemoryBound(Operation *call, const layout::Box &loops, bool packsOnce) const override {
    if (!isa<plan::AttentionOp>(call))
      return std::nullopt;
    int64_t columns = loops.rank() - 3;
    return CallBytes{0, 0, 4 * layout::attentionScratch(loops[columns + 2].size(), loops[columns].size())};
  }

protected:
  bool hasOperation(Operation *op) const override { return isa<AttentionOp>(op); }
  FloatType getComputeType(Operation *, FloatType type) const override { return type.isF32() ? type : FloatType(); }
};
} // namespace

std::unique_ptr<Library> dovetail::createHostKernels(ArrayRef<std::string>) { return std::make_unique<HostKernels>(); }
