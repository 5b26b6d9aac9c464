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

/// An operation that writes where data say, into few lines: a tile is a part of the result, and a thread goes through
/// all updates of the lines that the part belongs to, in their order, and writes what lies in it.
std::unique_ptr<BlockMapping> createScatterMapping(const BlockKernel &kernel);

/// An operation that goes through lines of the result itself: a tile is a line, and a thread writes all of it.
std::unique_ptr<BlockMapping> createLineMapping(const BlockKernel &kernel);

/// Sums of products of two operands, each of which depends on result loops that the other one does not depend on
/// (a matrix product, a convolution): a tile is a run of iterations of these loops for each operand, and a block
/// computes it. Operands go through shared memory, some terms at a time, and a thread computes several elements.
std::unique_ptr<BlockMapping> createProductMapping(const BlockKernel &kernel);

/// As GroupMapping, where neighbouring tiles, and not neighbouring terms, are neighbours in memory: a group is a column
/// of a block, neighbouring threads have neighbouring tiles, and all parts of a group's values meet in shared memory.
std::unique_ptr<BlockMapping> createColumnMapping(const BlockKernel &kernel);

/// Values that all elements of a tile share (the maximum of a row) are computed once, by a whole group of a thread, a
/// warp or a block: threads fold every n-th term and combine their results by shuffles, those of warps through shared
/// memory. The elements of a tile are divided among the group's threads.
std::unique_ptr<BlockMapping> createGroupMapping(const BlockKernel &kernel);

/// Elements that are read in another order than they are written: a tile has two loops, and values pass through shared
/// memory: threads compute them in the order of reads, and pick them up in the order of writes.
std::unique_ptr<BlockMapping> createTransposeMapping(const BlockKernel &kernel);

/// A thread computes an element, or a vector of neighbours. Takes every kernel without values that are shared.
std::unique_ptr<BlockMapping> createElementMapping(const BlockKernel &kernel);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_GPU_MAPPING_MAPPINGS_H
