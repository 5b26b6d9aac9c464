//===- Places.h - Where Dovetail is installed -------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares functions that find the files of an installation, wherever it was moved. All of them are thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PLACES_H
#define DOVETAIL_RUNTIME_PLACES_H

#include <filesystem>
#include <string>
#include <vector>

namespace dovetail::runtime {

/// The folder of the library or program that this function was linked into; empty if the system does not say.
std::filesystem::path ownFolder();

/// Where the folder `name` of this installation ("lib", "bin") is: beside `ownFolder()`, which may be it. Empty if
/// that is.
std::filesystem::path installedFolder(const std::string &name);

/// The file of a library that `dlopen` has opened by the name `asked`, which is the result if the system does not say.
std::string libraryFile(void *library, const std::string &asked);

/// The folder `name` ("lib") of the Python environment that this installation is a package of; empty outside of one.
std::filesystem::path environmentFolder(const std::string &name);

/// The folders of NVIDIA's Python packages (`site-packages/nvidia/*`) in the environment that this installation is a
/// package of, sorted; none outside of one.
std::vector<std::filesystem::path> nvidiaPackages();
/// The same for an environment whose packages are in `folder`.
std::vector<std::filesystem::path> nvidiaPackages(const std::filesystem::path &folder);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PLACES_H
