//===- PortChecks.h - Whether tensors fit the ports of a program *- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_RUNNER_PORTCHECKS_H
#define DOVETAIL_RUNTIME_RUNNER_PORTCHECKS_H

#include "dovetail/runtime/ProgramRunner.h"

namespace dovetail::runtime {

/// `kind` is `input` or `output`. Tensors may be on the host, or on devices of DLPack's kind `device`, if that is not
/// 0. Errors: INVALID_ARGUMENT, naming the port.
absl::Status checkTensors(const char *kind, const std::vector<PortInfo> &ports, absl::Span<const FullTensor> tensors,
                          int device);

/// The same of what each of `ranks` holds in turn, with the extents of its boxes. Errors name the rank, too.
absl::Status checkLocalTensors(const char *kind, const Plan &plan, const std::vector<PortInfo> &ports,
                               absl::Span<const FullTensor> tensors, const std::vector<int> &ranks, int device);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_RUNNER_PORTCHECKS_H
