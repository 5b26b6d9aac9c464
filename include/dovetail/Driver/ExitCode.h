//===- ExitCode.h - Exit codes of the programs -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the stable exit codes of `dovetail`, documented in `dovetail --help`.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_EXITCODE_H
#define DOVETAIL_DRIVER_EXITCODE_H

namespace dovetail {

/// What the tools return, as their help says.
enum class ExitCode {
  Ok = 0,
  /// Outputs that were compared differ.
  Different = 1,
  /// The command line, or options that do not fit the model.
  Usage = 2,
  /// A file cannot be read or written.
  File = 3,
  /// The model breaks the rules of ONNX.
  InvalidModel = 4,
  /// The model or an option asks for what this compiler does not have.
  Unsupported = 5,
  /// Not enough memory.
  DoesNotFit = 6,
  /// An artifact is damaged, foreign, or for another machine.
  Artifact = 7,
  /// A device or the communication between ranks failed.
  Device = 8,
  /// A defect of Dovetail itself.
  Internal = 9,
};

} // namespace dovetail

#endif // DOVETAIL_DRIVER_EXITCODE_H
