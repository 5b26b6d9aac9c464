//===- MpiChoice.h - Which MPI a process uses ------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the MPI of a process is chosen. There are two binary interfaces, that of Open MPI and that of MPICH, with
// a plug-in for each. Neither plug-in names a library of MPI: the library is opened first, for all of the process, as
// its file has other names elsewhere. A library is looked for in the folder `lib` of the Python environment that
// Dovetail is installed in, and then by the dynamic loader.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_MPI_MPICHOICE_H
#define DOVETAIL_RUNTIME_TRANSPORT_MPI_MPICHOICE_H

#include "dovetail/runtime/Transport.h"

#include "absl/status/statusor.h"

#include <string>

namespace dovetail::runtime::mpi {

/// The MPI of this process, open but not begun.
struct Choice {
  const TransportPlugin *plugin = nullptr; ///< For its interface.
  std::string file;                        ///< Of its library.
  std::string remark;                      ///< Why the MPI of the launcher was not chosen; empty if it was.
};

/// Opens the first MPI that there is of:
///
///   1. the one that the process has begun, or else loaded,
///   2. the one of the launcher,
///   3. one in the Python environment,
///   4. any other.
///
/// The plug-in for it is `libdovetail_<plugins>_<interface>.so`. Errors: UNAVAILABLE, and FAILED_PRECONDITION for a
/// plug-in of another version.
absl::StatusOr<Choice> choose(const std::string &plugins);

} // namespace dovetail::runtime::mpi

#endif // DOVETAIL_RUNTIME_TRANSPORT_MPI_MPICHOICE_H
