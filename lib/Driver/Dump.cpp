//===- Dump.cpp - Looking at the result of each phase -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements printModule and PhaseDumper.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Dump.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace dovetail;

void dovetail::printModule(ModuleOp module, bool constants, raw_ostream &os) {
  OpPrintingFlags flags;
  if (!constants)
    flags.elideLargeElementsAttrs().elideLargeResourceString();
  module.print(os, flags);
  os << "\n";
}

FailureOr<PhaseDumper> PhaseDumper::create(StringRef folder, bool constants, Diagnostics &diagnostics) {
  std::error_code error = llvm::sys::fs::create_directories(folder, /*IgnoreExisting=*/true, llvm::sys::fs::all_all);
  // Something that is there already is no error, whatever it is.
  if (!error && !llvm::sys::fs::is_directory(folder))
    error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    return diagnostics.error(ExitCode::File,
                             "cannot make the folder '" + folder + "' for --dump-phases: " + error.message());
  return PhaseDumper(folder, constants, diagnostics);
}

std::string PhaseDumper::getPath(Phase phase, StringRef extension) const {
  return (folder + "/" + Twine(static_cast<int>(phase) + 1) + "-" + getPhaseName(phase) + "." + extension).str();
}

bool PhaseDumper::mayWrite(StringRef file) const {
  StringRef parent = llvm::sys::path::parent_path(file);
  bool isInFolder = llvm::sys::fs::equivalent(parent.empty() ? "." : parent, folder);
  for (Phase phase : getPhases())
    for (StringRef extension : {"mlir", "ll", "s"}) {
      std::string path = getPath(phase, extension);
      if (llvm::sys::fs::equivalent(path, file) ||
          (isInFolder && llvm::sys::path::filename(file) == llvm::sys::path::filename(path)))
        return true;
    }
  return false;
}

std::unique_ptr<llvm::raw_fd_ostream> PhaseDumper::open(Phase phase, StringRef extension) {
  std::string path = getPath(phase, extension);
  std::error_code error;
  auto file = std::make_unique<llvm::raw_fd_ostream>(path, error);
  if (!error)
    return file;
  (void)diagnostics->error(ExitCode::File, "cannot write '" + path + "' for --dump-phases: " + error.message());
  return nullptr;
}

LogicalResult PhaseDumper::dump(Phase phase, ModuleOp module) {
  std::unique_ptr<llvm::raw_fd_ostream> file = open(phase, "mlir");
  if (!file)
    return failure();
  printModule(module, constants, *file);
  return close(*file);
}

LogicalResult PhaseDumper::close(llvm::raw_fd_ostream &file) {
  file.close();
  std::error_code error = file.error();
  if (!error)
    return success();
  file.clear_error();
  return diagnostics->error(ExitCode::File,
                            "cannot write all of a file in '" + folder + "' for --dump-phases: " + error.message());
}
