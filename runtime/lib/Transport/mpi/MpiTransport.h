//===- MpiTransport.h - Messages by MPI ------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines a communicator of MPI, and the transport over it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_MPI_MPITRANSPORT_H
#define DOVETAIL_RUNTIME_TRANSPORT_MPI_MPITRANSPORT_H

#include "MpiLibrary.h"

#include "dovetail/runtime/Transport.h"

namespace dovetail::runtime::mpi {

/// A communicator of the runtime's own, which returns errors. Shared with the work that was prepared for it.
class Group {
public:
  /// With `calls` held.
  explicit Group(MPI_Comm handle);
  /// Collective, unless the communication was ended or given up; then nobody waits for the others.
  ~Group();
  Group(const Group &) = delete;
  Group &operator=(const Group &) = delete;

  MPI_Comm handle;
  int rank = 0, size = 1;
  std::atomic<bool> isOver = false; ///< Nothing is waited for any more.
  /// Something was given up that MPI may still see to.
  std::atomic<bool> isHeld = false;
};

std::unique_ptr<Transport> makeTransport(std::shared_ptr<Group> group);

} // namespace dovetail::runtime::mpi

#endif // DOVETAIL_RUNTIME_TRANSPORT_MPI_MPITRANSPORT_H
