//===- Library.cpp - What vendors' libraries do -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what is alike for all libraries, and the list of them.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Library/Library.h"

#include "Factories.h"

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// Library
//===----------------------------------------------------------------------===//

/// Where there is nothing to read, the result is where sums start from, and libraries go by other rules.
static bool hasEmptyTensor(Operation *op) {
  auto isEmpty = [](Type tensor) { return cast<RankedTensorType>(tensor).getNumElements() == 0; };
  return llvm::any_of(op->getResultTypes(), isEmpty) || llvm::any_of(op->getOperandTypes(), isEmpty);
}

FloatType Library::getComputeType(Operation *op) const {
  if (op->getNumResults() != 1 || !hasOperation(op) || hasEmptyTensor(op))
    return {};
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  auto type = dyn_cast<FloatType>(result.getElementType());
  // What is no number, such as a mask, is of a type of its own.
  auto isAlike = [&](Type operand) {
    Type own = getElementTypeOrSelf(operand);
    return own == type || own.isInteger(1);
  };
  if (!type || !llvm::all_of(op->getOperandTypes(), isAlike))
    return {};
  return getComputeType(op, type);
}

/// True if `op` is a product of integers as libraries have them.
static bool isIntegerProduct(Operation *op) {
  auto defined = dyn_cast<DefinitionOpInterface>(op);
  if (!defined || op->getNumOperands() != 2 || !defined.getDefinition().isProduct || hasEmptyTensor(op))
    return false;
  Type first = getElementTypeOrSelf(op->getOperand(0).getType()),
       second = getElementTypeOrSelf(op->getOperand(1).getType());
  return first.isUnsignedInteger(8) && second.isSignlessInteger(8) &&
         getElementTypeOrSelf(op->getResult(0).getType()).isInteger(32);
}

bool Library::supports(Operation *op) const {
  if (hasIntegerProducts() && isIntegerProduct(op))
    return hasOperation(op);
  FloatType type = getComputeType(op);
  return type && type == getElementTypeOrSelf(op->getResult(0).getType());
}

bool Library::readsFormat(Operation *op, unsigned number, plan::FormatAttr format, plan::FormatAttr result) const {
  return format == getReadFormat(op, number, result);
}

plan::FormatAttr Library::getReadFormat(Operation *op, unsigned number, plan::FormatAttr result) const {
  // Matrices have their rows and columns in order, and weights those of the model.
  if (number == 0 && !isa<MatMulOp>(op))
    return result;
  int64_t rank = cast<RankedTensorType>(op->getOperand(number).getType()).getRank();
  return plan::FormatAttr::getRowMajor(op->getContext(), rank);
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

namespace {
struct Entry {
  StringLiteral name;
  std::unique_ptr<Library> (*create)(ArrayRef<std::string> features);
};
} // namespace

static constexpr Entry kLibraries[] = {{"onednn", createOneDnn},
                                       {"cudnn", createCudnn},
                                       {"cublaslt", createCublasLt},
                                       {"cufft", createCufft},
                                       {"kernels", createHostKernels}};

FailureOr<Libraries> Libraries::create(Location location, ArrayRef<std::string> names, ArrayRef<std::string> features) {
  Libraries result;
  for (const std::string &name : names) {
    auto entry = llvm::find_if(kLibraries, [&](const Entry &entry) { return entry.name == name; });
    if (entry == std::end(kLibraries)) {
      InFlightDiagnostic diagnostic = emitError(location)
                                      << "library '" << name << "' is not known; the libraries are ";
      llvm::interleaveComma(kLibraries, diagnostic, [&](const Entry &entry) { diagnostic << entry.name; });
      return diagnostic;
    }
    result.libraries.push_back(entry->create(features));
  }
  return result;
}

const Library *Libraries::get(StringRef name) const {
  auto library = llvm::find_if(libraries, [&](const auto &library) { return library->getName() == name; });
  return library == libraries.end() ? nullptr : library->get();
}

const Library *Libraries::find(Operation *op) const {
  for (const std::unique_ptr<Library> &library : libraries)
    if (library->getComputeType(op))
      return library.get();
  return nullptr;
}

const Library *Libraries::findCall(Operation *op) const {
  for (const std::unique_ptr<Library> &library : libraries)
    if (library->supports(op))
      return library.get();
  return nullptr;
}

bool Libraries::hasIntegerProducts() const {
  return llvm::any_of(libraries, [](const auto &library) { return library->hasIntegerProducts(); });
}

bool Libraries::hasPlainProducts() const {
  return llvm::any_of(libraries, [](const auto &library) { return library->hasPlainProducts(); });
}

bool Libraries::hasTransforms() const {
  return llvm::any_of(libraries, [](const auto &library) { return library->hasTransforms(); });
}

bool Libraries::hasNarrowProducts() const {
  return llvm::any_of(libraries, [](const auto &library) { return library->hasNarrowProducts(); });
}

bool Libraries::isSlow(plan::ConvolutionOp call) const {
  return llvm::any_of(libraries, [&](const auto &library) { return library->isSlow(call); });
}

std::optional<CallBytes> Libraries::getMemoryBound(Operation *call, const layout::Box &loops, bool packsOnce) const {
  for (const std::unique_ptr<Library> &library : libraries)
    if (std::optional<CallBytes> bytes = library->getMemoryBound(call, loops, packsOnce))
      return bytes;
  return std::nullopt;
}
