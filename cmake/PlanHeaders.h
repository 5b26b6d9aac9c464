//===- PlanHeaders.h - What parts that know plans precompile -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As DialectHeaders.h, and the plan dialect. Apart from it, so that a change of plans rebuilds only what knows them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CMAKE_PLANHEADERS_H
#define DOVETAIL_CMAKE_PLANHEADERS_H

#include "DialectHeaders.h"

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"

#endif // DOVETAIL_CMAKE_PLANHEADERS_H
