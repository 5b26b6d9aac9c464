//===- Waits.h - Waits of plans written by hand -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the runtime's tests make a plan wait for its exchanges.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_RUNTIME_WAITS_H
#define DOVETAIL_TEST_RUNTIME_WAITS_H

#include "dovetail/runtime/plan_generated.h"

namespace dovetail::test {

/// Adds waits for exchanges, as late as steps can run without, to a plan that has none. A plan that cannot be decoded
/// stays as it is.
void addWaits(artifact::PlanT &plan);

} // namespace dovetail::test

#endif // DOVETAIL_TEST_RUNTIME_WAITS_H
