//===- Mappings.h - The mappings that there are -----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares a function for each mapping that makes one for a kernel. ChooseMapping.cpp has the order of preference.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_GPU_MAPPING_MAPPINGS_H
#define DOVETAIL_LIB_CODEGEN_GPU_MAPPING_MAPPINGS_H

#include "BlockMapping.h"

namespace dovetail {

/// An operation that goes through lines of the result itself: a tile is a line, and a thread writes all of it.
std::unique_ptr<BlockMapping> createLineMapping(const BlockKernel &kernel);

/// Sums of products of two operands, each of which depends on result loops that the other one does not depend on
/// (a matrix product, a convolution): a tile is a run of iterations of these loops for each operand, and a block
/// computes it. Operands go through shared memory, some terms at a time, and a thread computes several elements.
std::unique_ptr<BlockMapping> createProductMapping(const BlockKernel &kernel);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_GPU_MAPPING_MAPPINGS_H
