//===- Autotune.h - Decisions by measurement -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides by running on this machine how convolutions are computed, in place of estimates.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_AUTOTUNE_H
#define DOVETAIL_DRIVER_AUTOTUNE_H

#include "dovetail/Driver/Compilation.h"

#include <vector>

namespace dovetail {

/// The algorithms that convolutions may be done by instead of a library's, those first whose weights take most.
llvm::SmallVector<plan::ConvolutionAlgorithm> listAlgorithms();

/// The fastest algorithm of each convolution that may be computed in several ways, in the order of the program, as
/// `CompileOptions::algorithms` takes them: that of which the rank that takes longest takes less. Compiles what
/// `compilation` has partitioned once for each algorithm, and runs all ranks as threads of this process, with as many
/// threads each as its options say, on random inputs. Empty if no convolution has a choice. Errors are those of
/// compiling and running.
llvm::FailureOr<std::vector<plan::ConvolutionAlgorithm>> measureAlgorithms(Compilation &compilation,
                                                                           Diagnostics &diagnostics);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_AUTOTUNE_H
