//===- ChooseMapping.cpp - Chooses how a kernel is divided ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines chooseMapping.
//
//===----------------------------------------------------------------------===//

#include "Mappings.h"

using namespace dovetail;

std::unique_ptr<BlockMapping> dovetail::chooseMapping(const BlockKernel &kernel) {
  // The first that takes the kernel: what is particular comes before what is general, and columns before groups, whose
  // kernels they take where it is better.
  using Create = std::unique_ptr<BlockMapping> (*)(const BlockKernel &);
  static constexpr Create preference[] = {createScatterMapping, createLineMapping,  createProductMapping,
                                          createColumnMapping,  createGroupMapping, createTransposeMapping,
                                          createElementMapping};
  for (Create create : preference)
    if (std::unique_ptr<BlockMapping> mapping = create(kernel); mapping->take())
      return mapping;
  llvm_unreachable("elements take every kernel");
}
