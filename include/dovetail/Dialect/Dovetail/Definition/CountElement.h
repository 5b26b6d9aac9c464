//===- CountElement.h - What an element takes to compute --------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares countElement, which counts what an operation emits for an element of its result, and readsOnly, which says
// whether a coordinate serves reads alone.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_COUNTELEMENT_H
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_COUNTELEMENT_H

#include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.h"

namespace dovetail {

/// The scalar operations, of which an addition is one and an exponential as many as it takes the time of, that `op`
/// emits for an element of its result, or for a line. `ends`: iterations of each loop of `definition`, its own.
/// `otherwise`: those of loops whose ends are not known when code is generated.
double countElement(DefinitionOpInterface op, const Definition &definition, llvm::ArrayRef<int64_t> ends,
                    double otherwise);
/// The same with so many iterations as are usual where data say when a loop ends.
double countElement(DefinitionOpInterface op, const Definition &definition, llvm::ArrayRef<int64_t> ends);

/// Whether what `op` emits uses the coordinate of `loop`, a dimension of its result but none of a line, as an index of
/// reads and of what it writes, and for nothing else: then an element does not depend on where it is.
bool readsOnly(DefinitionOpInterface op, const Definition &definition, unsigned loop);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_COUNTELEMENT_H
