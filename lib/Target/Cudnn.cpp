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

#include "Factories.h"
#include "NvidiaLibrary.h"
#include "Windows.h"

using namespace mlir;
using namespace dovetail;

namespace {
class Cudnn : public NvidiaLibrary {
public:
  StringRef getName() const override { return "cudnn"; }
  FormatPreference getFormatPreference(Operation *) const override { return FormatPreference::ChannelsLast; }

protected:
  bool hasOperation(Operation *op) const override { return isModestConvolution(op); }
};
} // namespace

std::unique_ptr<Library> dovetail::createCudnn(ArrayRef<std::string>) { return std::make_unique<Cudnn>(); }
