//===- PassOptions.td - Options of passes that ask libraries -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIBRARY_PASSOPTIONS_TD
#define DOVETAIL_LIBRARY_PASSOPTIONS_TD

include "mlir/Pass/PassBase.td"

class LibraryOptions {
  list<Option> options = [
    ListOption<"libraries", "libraries", "std::string",
               "The libraries that calls may use: onednn, cudnn, cublaslt, cufft; none: every operation is a kernel">,
    ListOption<"features", "features", "std::string",
               "What the processor has, as far as libraries ask, in LLVM's spelling, such as avx512bf16; rounded-factors: "
               "products may round their factors">
  ];
}

#endif // DOVETAIL_LIBRARY_PASSOPTIONS_TD
