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

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// Library
//===----------------------------------------------------------------------===//

/// Where there is nothing to read, the result is where sums start from, and libraries go by other rules.
static bool hasEmptyTensor(const CallShape &call) {
  auto isEmpty = [](RankedTensorType tensor) { return tensor.getNumElements() == 0; };
  return isEmpty(call.result) || llvm::any_of(call.operands, isEmpty);
}

FloatType Library::getComputeType(const CallShape &call) const {
  auto type = dyn_cast<FloatType>(call.result.getElementType());
  // What is no number, such as a mask, is of a type of its own.
  auto isAlike = [&](RankedTensorType operand) {
    return operand.getElementType() == type || operand.getElementType().isInteger(1);
  };
  if (!type || hasEmptyTensor(call) || !llvm::all_of(call.operands, isAlike) || !hasCall(call))
    return {};
  return getComputeType(call, type);
}

/// True if `call` is a product of integers as libraries have them.
static bool isIntegerProduct(const CallShape &call) {
  return isSumOfProducts(call.form) && !hasEmptyTensor(call) &&
         call.operands[0].getElementType().isUnsignedInteger(8) &&
         call.operands[1].getElementType().isSignlessInteger(8) && call.result.getElementType().isInteger(32);
}

bool Library::supports(const CallShape &call) const {
  if (hasIntegerProducts() && isIntegerProduct(call))
    return hasCall(call);
  FloatType type = getComputeType(call);
  return type && type == call.result.getElementType();
}

bool Library::readsFormat(const CallShape &call, unsigned number, plan::FormatAttr format,
                          plan::FormatAttr result) const {
  return format == getReadFormat(call, number, result);
}

plan::FormatAttr Library::getReadFormat(const CallShape &call, unsigned number, plan::FormatAttr result) const {
  // Matrices have their rows and columns in order, and weights those of the model.
  if (number == 0 && !call.as<ProductCall>())
    return result;
  return plan::FormatAttr::getRowMajor(call.result.getContext(), call.operands[number].getRank());
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

/// The first of `libraries` that `does` what `op` computes.
static LibraryCall findFirst(ArrayRef<std::unique_ptr<Library>> libraries, Operation *op,
                             function_ref<bool(const Library &, const CallShape &)> does) {
  std::optional<CallShape> shape = libraries.empty() ? std::nullopt : CallShape::find(op);
  if (shape)
    for (const std::unique_ptr<Library> &library : libraries)
      if (does(*library, *shape))
        return {library.get(), *std::move(shape)};
  return {};
}

LibraryCall Libraries::find(Operation *op) const {
  return findFirst(libraries, op, [](const Library &library, const CallShape &call) {
    return static_cast<bool>(library.getComputeType(call));
  });
}

LibraryCall Libraries::findCall(Operation *op) const {
  return findFirst(libraries, op, [](const Library &library, const CallShape &call) { return library.supports(call); });
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

bool Libraries::isSlow(plan::CallOpInterface call) const {
  CallShape shape = CallShape::get(call);
  return llvm::any_of(libraries, [&](const auto &library) { return library->isSlow(shape); });
}

std::optional<CallBytes> Libraries::getMemoryBound(plan::CallOpInterface call, const layout::Box &loops,
                                                   bool packsOnce) const {
  for (const std::unique_ptr<Library> &library : libraries)
    if (std::optional<CallBytes> bytes = library->getMemoryBound(call, loops, packsOnce))
      return bytes;
  return std::nullopt;
}
