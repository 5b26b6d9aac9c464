//===- PlanOpBase.td - What operations of the plan dialect share -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PLANOPBASE_TD
#define DOVETAIL_DIALECT_PLAN_IR_PLANOPBASE_TD

include "dovetail/Dialect/Plan/IR/PlanDialect.td"

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANOPBASE_TD
