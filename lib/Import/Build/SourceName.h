//===- SourceName.h - The name of a node in a user's program ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines SourceName.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_SOURCENAME_H
#define DOVETAIL_LIB_IMPORT_BUILD_SOURCENAME_H

#include <cstdint>
#include <string>

namespace dovetail::importer {

/// The name and the place of a node in the program that the model was exported from. All is clean text (`text::clean`).
struct SourceName {
  /// Such as `body.0.conv`; may be empty.
  std::string name;
  /// The file without its folders, and the line; 0 if it is not known. The file may be unknown where the line is not.
  std::string file;
  uint32_t line = 0;

  explicit operator bool() const { return !name.empty() || line > 0; }
};

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_SOURCENAME_H
