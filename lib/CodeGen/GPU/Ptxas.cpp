//===- Ptxas.cpp - NVIDIA's assembler -----------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines assemble and findPtxas.
//
//===----------------------------------------------------------------------===//

#include "Ptxas.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace mlir;
using namespace dovetail;

std::string dovetail::findPtxas() {
  if (const char *path = std::getenv("DOVETAIL_PTXAS"))
    return path;
  if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  std::vector<std::string> places;
  if (const char *home = std::getenv("CUDA_HOME"))
    places.push_back(std::string(home) + "/bin/ptxas");
#ifdef DOVETAIL_PTXAS
  places.push_back(DOVETAIL_PTXAS);
#endif
  for (const std::string &place : places)
    if (llvm::sys::fs::can_execute(place))
      return place;
  return "";
}

/// The number before `unit` in a line such as "48 bytes stack frame, 44 bytes spill stores".
static int64_t numberBefore(StringRef line, StringRef unit) {
  size_t end = line.find((" " + unit).str());
  if (end == StringRef::npos)
    return 0;
  StringRef digits = line.take_front(end);
  digits = digits.take_back(digits.size() - digits.find_last_not_of("0123456789") - 1);
  int64_t number;
  return digits.getAsInteger(10, number) ? 0 : number;
}

/// Reads what `ptxas -v` says of each kernel.
static std::vector<KernelUse> parseUses(StringRef text, int arch) {
  std::vector<KernelUse> uses;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    if (line.contains("Compiling entry function '")) {
      uses.emplace_back().kernel = line.split('\'').second.split('\'').first.str();
      uses.back().arch = arch;
    } else if (!uses.empty() && line.contains("spill stores")) {
      uses.back().spillStores = numberBefore(line, "bytes spill stores");
      uses.back().spillLoads = numberBefore(line, "bytes spill loads");
    } else if (!uses.empty() && line.contains(" registers")) {
      uses.back().registers = numberBefore(line, "registers");
      uses.back().sharedBytes = numberBefore(line, "bytes smem");
    }
  }
  return uses;
}

FailureOr<Cubin> dovetail::assemble(Location location, StringRef ptx, int arch, const std::string &ptxas) {
  SmallString<128> source, output, messages;
  int descriptor;
  auto create = [&](StringRef suffix, SmallString<128> &path) -> LogicalResult {
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("dovetail-kernels", suffix, descriptor, path))
      return emitError(location, "cannot create a temporary file for kernels: ") << error.message();
    return success();
  };
  llvm::scope_exit remove([&] {
    for (const SmallString<128> &path : {source, output, messages})
      if (!path.empty())
        llvm::sys::fs::remove(path);
  });
  if (failed(create("ptx", source)))
    return failure();
  llvm::raw_fd_ostream file(descriptor, /*shouldClose=*/true);
  file << ptx;
  file.close();
  if (file.has_error()) {
    std::string why = file.error().message();
    file.clear_error();
    return emitError(location) << "cannot write " << source << ": " << why;
  }
  for (auto [suffix, path] : {std::pair("cubin", &output), std::pair("log", &messages)}) {
    if (failed(create(suffix, *path)))
      return failure();
    llvm::raw_fd_ostream(descriptor, /*shouldClose=*/true).close();
  }

  std::string archOption = ("-arch=sm_" + Twine(arch)).str();
  StringRef arguments[] = {ptxas, archOption, "-O3", "-v", "-o", output, source};
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(messages), StringRef(messages)};
  std::string error;
  int result = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, redirects, 0, 0, &error);
  auto said = llvm::MemoryBuffer::getFile(messages);
  StringRef text = said ? (*said)->getBuffer() : StringRef();
  if (result != 0)
    return emitError(location) << "'" << ptxas << "' cannot assemble kernels for sm_" << arch << ": "
                               << (error.empty() ? text.trim() : StringRef(error));
  auto cubin = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!cubin)
    return emitError(location) << "cannot read " << output << ": " << cubin.getError().message();
  return Cubin{arch, {(*cubin)->getBufferStart(), (*cubin)->getBufferEnd()}, parseUses(text, arch)};
}
