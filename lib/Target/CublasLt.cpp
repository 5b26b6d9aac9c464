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

#include "Factories.h"
#include "NvidiaLibrary.h"

using namespace mlir;
using namespace dovetail;

namespace {
class CublasLt : public NvidiaLibrary {
public:
  StringRef getName() const override { return "cublaslt"; }
  FormatPreference getFormatPreference(Operation *) const override { return FormatPreference::RowMajor; }

protected:
  bool hasOperation(Operation *op) const override { return isa<MatMulOp>(op); }
};
} // namespace

std::unique_ptr<Library> dovetail::createCublasLt(ArrayRef<std::string>) { return std::make_unique<CublasLt>(); }
