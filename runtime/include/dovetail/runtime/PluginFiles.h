//===- PluginFiles.h - Files of plug-ins ------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which plug-ins there are, as the files are: none is opened.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PLUGINFILES_H
#define DOVETAIL_RUNTIME_PLUGINFILES_H

#include <string>
#include <vector>

namespace dovetail::runtime {

/// The library `libdovetail_<name>.so`.
struct PluginFile {
  /// The target of a device, "transport_" and the name of a transport, or "mpi_" and an interface of MPI.
  std::string name;
  std::string path;    ///< Empty if there is none.
  std::string problem; ///< Why there is none.

  bool isForDevice() const { return name.rfind("transport_", 0) != 0 && name.rfind("mpi_", 0) != 0; }
};

/// The plug-ins of a full build, and all others that there are, sorted by name.
std::vector<PluginFile> findPluginFiles();

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PLUGINFILES_H
