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

#include "dovetail/runtime/Places.h"
#include "mlir/IR/Diagnostics.h"
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
  // Others may be too old for some architectures.
  SmallVector<std::filesystem::path> folders = {runtime::installedFolder("bin")};
  for (const std::filesystem::path &package : runtime::nvidiaPackages())
    folders.push_back(package / "bin");
  for (const std::filesystem::path &folder : folders)
    if (std::string ptxas = (folder / "ptxas").string(); llvm::sys::fs::can_execute(ptxas))
      return ptxas;
  if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  const char *home = std::getenv("CUDA_HOME");
  std::string place = home ? std::string(home) + "/bin/ptxas" : "";
  return llvm::sys::fs::can_execute(place) ? place : "";
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
static std::vector<runtime::KernelUse> parseUses(StringRef text, StringRef arch) {
  std::vector<runtime::KernelUse> uses;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    if (line.contains("Compiling entry function '")) {
      uses.emplace_back().symbol = line.split('\'').second.split('\'').first.str();
      uses.back().arch = arch.str();
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

namespace {

/// A file that is removed on destruction, with the process that writes it.
class TemporaryFile {
public:
  TemporaryFile() = default;
  TemporaryFile(TemporaryFile &&) = delete;
  ~TemporaryFile() {
    if (!path.empty())
      llvm::sys::fs::remove(path);
  }

  LogicalResult create(Location location, StringRef suffix, StringRef text = "") {
    int descriptor;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("dovetail-kernels", suffix, descriptor, path))
      return emitError(location, "cannot create a temporary file for kernels: ") << error.message();
    llvm::raw_fd_ostream file(descriptor, /*shouldClose=*/true);
    file << text;
    file.close();
    if (!file.has_error())
      return success();
    std::string why = file.error().message();
    file.clear_error();
    return emitError(location) << "cannot write " << path << ": " << why;
  }

  StringRef getPath() const { return path; }

private:
  SmallString<128> path;
};

/// A run of ptxas, which ends with this object at the latest.
class Assembly {
public:
  Assembly(Location location, StringRef arch, const std::string &ptxas)
      : location(location), arch(arch), ptxas(ptxas) {}
  ~Assembly() {
    if (process.Pid != llvm::sys::ProcessInfo::InvalidPid)
      llvm::sys::Wait(process, std::nullopt);
  }

  LogicalResult start(StringRef source);
  LogicalResult finish(ProgramCode &code);

private:
  Location location;
  StringRef arch;
  const std::string &ptxas;
  TemporaryFile output, messages;
  llvm::sys::ProcessInfo process;
  std::string error;
};

} // namespace

LogicalResult Assembly::start(StringRef source) {
  if (failed(output.create(location, "cubin")) || failed(messages.create(location, "log")))
    return failure();
  std::string archOption = ("-arch=" + arch).str();
  StringRef arguments[] = {ptxas, archOption, "-O3", "-v", "-o", output.getPath(), source};
  std::optional<StringRef> redirects[] = {std::nullopt, messages.getPath(), messages.getPath()};
  bool executionFailed = false;
  process = llvm::sys::ExecuteNoWait(ptxas, arguments, std::nullopt, redirects, 0, &error, &executionFailed);
  if (executionFailed)
    return emitError(location) << "cannot run '" << ptxas << "': " << error
                               << "; set DOVETAIL_PTXAS to NVIDIA's ptxas, or to nothing for PTX without machine code";
  return success();
}

LogicalResult Assembly::finish(ProgramCode &code) {
  int result = llvm::sys::Wait(process, std::nullopt, &error).ReturnCode;
  process = {};
  auto said = llvm::MemoryBuffer::getFile(messages.getPath());
  StringRef text = said ? (*said)->getBuffer() : StringRef();
  if (result != 0)
    return emitError(location) << "'" << ptxas << "' cannot assemble kernels for " << arch << " (exit code " << result
                               << "): " << (error.empty() ? text.trim() : StringRef(error))
                               << "\nset DOVETAIL_PTXAS to another ptxas, or --arch to other architectures";
  auto cubin = llvm::MemoryBuffer::getFile(output.getPath(), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!cubin)
    return emitError(location) << "cannot read " << output.getPath() << ": " << cubin.getError().message();
  code.images.push_back(
      {runtime::SectionKind::Cubin, arch.str(), {(*cubin)->getBufferStart(), (*cubin)->getBufferEnd()}});
  llvm::append_range(code.uses, parseUses(text, arch));
  return success();
}

LogicalResult dovetail::assemble(Location location, StringRef ptx, ArrayRef<std::string> archs,
                                 const std::string &ptxas, ProgramCode &code) {
  TemporaryFile source;
  if (failed(source.create(location, "ptx", ptx)))
    return failure();
  std::vector<std::unique_ptr<Assembly>> assemblies;
  for (StringRef arch : archs)
    if (failed(assemblies.emplace_back(std::make_unique<Assembly>(location, arch, ptxas))->start(source.getPath())))
      return failure();
  for (std::unique_ptr<Assembly> &assembly : assemblies)
    if (failed(assembly->finish(code)))
      return failure();
  return success();
}
