//===- Backend.h - Where the memory and steps of a rank are -----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what tells sessions on different targets apart: everything else of a session is the same for all.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_BACKEND_H
#define DOVETAIL_RUNTIME_SESSION_BACKEND_H

#include "StepExecutor.h"

#include "dovetail/runtime/Mover.h"
#include "dovetail/runtime/Program.h"
#include "dovetail/runtime/Session.h"

#include "absl/types/span.h"

#include <memory>
#include <optional>
#include <string>

namespace dovetail::runtime {

/// Carries elements between the memory of a port and that of the caller.
class PortTransfer {
public:
  virtual ~PortTransfer() = default;
  /// `memory` is row-major or strided, and holds `boxes`, which lie in the port's box. It is the host's or, with
  /// `onDevice`, that of a device of the backend's kind.
  virtual absl::Status run(const MemoryView &memory, absl::Span<const layout::Box> boxes, bool onDevice) = 0;
};

/// Where one rank's memory lies and its steps run. Used on the rank's thread.
class Backend {
public:
  virtual ~Backend() = default;

  /// Whether kernels read and write memory of the host.
  virtual bool usesHostMemory() const = 0;
  /// DLPack's number of its kind of device; 0: none.
  virtual int dlpackDevice() const { return 0; }
  /// Memory for steps, null for no bytes. It may outlive the backend. Errors: RESOURCE_EXHAUSTED.
  virtual absl::StatusOr<std::shared_ptr<std::byte>> allocate(int64_t bytes) = 0;
  /// Memory that the host reads and writes while no step runs, and steps while they run. As above.
  virtual absl::StatusOr<std::shared_ptr<std::byte>> allocateShared(int64_t bytes) = 0;
  /// Fills `box` of memory for steps, at start-up.
  virtual absl::Status fill(const MemoryView &target, const MemoryView &host, const layout::Box &box) = 0;

  /// What carries out each of `steps`, which are neither exchanges nor waits: null where the rank has nothing to do,
  /// and the error of one that cannot be, after which others may be missing. `inPrologue`: they run once, so nothing is
  /// packed for them.
  virtual std::vector<StepExecutorOr> createSteps(const RankMemory &memory, absl::Span<const StepInfo *const> steps,
                                                  bool inPrologue) = 0;
  virtual Mover &mover() = 0;
  /// The nodes recorded so far (`Device::recordedNodes`).
  virtual absl::StatusOr<std::optional<GraphNodes>> recordedNodes() { return std::nullopt; }

  /// The memory has been allocated, and outlives the transfer.
  virtual absl::StatusOr<std::unique_ptr<PortTransfer>> createUpload(const MemoryView &memory,
                                                                     const layout::Box &box) = 0;
  virtual absl::StatusOr<std::unique_ptr<PortTransfer>> createDownload(const MemoryView &memory,
                                                                       const layout::Box &box) = 0;

  /// Returns when all steps and moves are done. Errors: what went wrong with them.
  virtual absl::Status finish() = 0;
};

/// The weights that a step of a run on the CPU reads only when a session starts, to pack them; none if it packs
/// nothing. `memory` needs no addresses.
std::optional<uint32_t> hostPackedTensor(const RankMemory &memory, const StepInfo &step);

/// The library that packs weights on the CPU, and the instructions that it uses here.
std::string hostPacker();

/// Memory of a step besides its operands on the CPU, with so many threads, as its executor will have. `memory` needs no
/// addresses. Errors: DATA_LOSS, UNIMPLEMENTED.
absl::StatusOr<CallBytes> hostCallBytes(const RankMemory &memory, const StepInfo &step, bool inPrologue, int threads);
/// The same on devices. Errors: DATA_LOSS.
absl::StatusOr<CallBytes> deviceCallBytes(const RankMemory &memory, const StepInfo &step, bool inPrologue);

/// The CPU.
absl::StatusOr<std::unique_ptr<Backend>> createHostBackend(const Program &program, int rank, SessionOptions options);
/// A device of the plug-in for the program's target.
absl::StatusOr<std::unique_ptr<Backend>> createDeviceBackend(const Program &program, int rank, SessionOptions options);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_BACKEND_H
