//===- Factories.h - The libraries that there are -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares a function for each library that makes its description.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_LIBRARY_FACTORIES_H
#define DOVETAIL_LIB_LIBRARY_FACTORIES_H

#include "dovetail/Library/Library.h"

namespace dovetail {

/// `features`: what the processor that the program is compiled for has, as LLVM calls it.
std::unique_ptr<Library> createOneDnn(llvm::ArrayRef<std::string> features);
/// The kernels that the runtime brings along for CPUs.
std::unique_ptr<Library> createHostKernels(llvm::ArrayRef<std::string> features);
std::unique_ptr<Library> createCudnn(llvm::ArrayRef<std::string> features);
std::unique_ptr<Library> createCublasLt(llvm::ArrayRef<std::string> features);
std::unique_ptr<Library> createCufft(llvm::ArrayRef<std::string> features);

} // namespace dovetail

#endif // DOVETAIL_LIB_LIBRARY_FACTORIES_H
