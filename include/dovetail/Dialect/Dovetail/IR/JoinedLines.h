//===- JoinedLines.h - Row programs for several lines -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines JoinsLines, which marks row programs that go through several lines at once, in vectors.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_JOINEDLINES_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_JOINEDLINES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

namespace dovetail {

/// Marks row programs whose lines all take the same steps, whatever their elements are. Where code can, it has such an
/// operation go through lines together: `LineBuilder::getInnerLoops` is then one loop, through whose range the
/// operation goes itself, with scratch memory. Elsewhere there is no such loop, and results are the only memory.
template <typename ConcreteType> class JoinsLines : public mlir::OpTrait::TraitBase<ConcreteType, JoinsLines> {};

/// How many lines of elements of `type` make a vector: as many as fit into 32 bytes. Wider vectors of some CPUs would
/// double the scratch memory, which is to stay in a cache.
inline int64_t countJoinedLines(mlir::Type type) { return 256 / type.getIntOrFloatBitWidth(); }

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_JOINEDLINES_H
