//===- CallWork.h - What library calls compute -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what library calls compute and move on a rank, or on one of its threads.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_COST_CALLWORK_H
#define DOVETAIL_COST_CALLWORK_H

#include "dovetail/Cost/Cluster.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"

namespace dovetail {

/// What `call`, of a program, does in so many iterations of its loops, if it
/// reads so many bytes of each of its operands and of the tensors of its epilogue.
StepWork getCallWork(plan::CallOpInterface call, llvm::ArrayRef<int64_t> loops, llvm::ArrayRef<double> bytes);

/// The same for these iterations, if it reads what they need.
StepWork getCallWork(plan::CallOpInterface call, const layout::Box &loops);

} // namespace dovetail

#endif // DOVETAIL_COST_CALLWORK_H
