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

/// That these are all inputs, of their types and shapes; dimensions of one length have the same extent, from 0 to its
/// bound. Tensors may be on the host, or on devices of DLPack's kind `device`, if that is not 0. Errors:
/// INVALID_ARGUMENT, naming the port.
absl::Status checkInputs(const Plan &plan, absl::Span<const FullTensor> tensors, int device);
/// The same of the extents alone.
absl::Status checkShapes(const Plan &plan, absl::Span<const std::vector<int64_t>> shapes);
/// That these are all outputs, as large as their bounds.
absl::Status checkOutputs(const Plan &plan, absl::Span<const FullTensor> tensors, int device);

/// That ranks can be given what they hold alone: no extent depends on data, or varies from run to run. Errors:
/// UNIMPLEMENTED, naming the count.
absl::Status checkNoCounts(const Plan &plan);
/// That these are what each of `ranks` holds in turn, with the extents of its boxes. Errors name the rank, too.
absl::Status checkLocalTensors(const char *kind, const Plan &plan, const std::vector<PortInfo> &ports,
                               absl::Span<const FullTensor> tensors, const std::vector<int> &ranks, int device);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_RUNNER_PORTCHECKS_H
