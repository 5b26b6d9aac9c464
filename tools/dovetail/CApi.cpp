//===- CApi.cpp - The compiler's C ABI -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the C ABI with Compilation.
//
//===----------------------------------------------------------------------===//

#include "dovetail/compiler.h"

#include "dovetail/Driver/CommandLine.h"
#include "dovetail/Driver/Compilation.h"
#include "dovetail/Driver/Summary.h"
#include "dovetail/runtime/HostFeatures.h"
#include "dovetail/runtime/Version.h"

#include <new>

using namespace dovetail;

struct dovetail_compilation {
  std::vector<std::byte> artifact;
  std::string messages, summary;
};

/// Compiles what `import` imports.
static int compile(const char *const *options, size_t numOptions, dovetail_compilation **result,
                   llvm::function_ref<llvm::LogicalResult(Compilation &)> import) {
  auto compilation = std::make_unique<dovetail_compilation>();
  llvm::raw_string_ostream messages(compilation->messages);
  Diagnostics diagnostics(messages);
  if (absl::Status status = runtime::checkBaseline(); !status.ok()) {
    (void)diagnostics.error(ExitCode::Artifact, std::string(status.message()));
    *result = compilation.release();
    return static_cast<int>(diagnostics.getExitCode());
  }
  // Callers may be in a language that knows no exceptions.
  try {
    std::vector<std::string> arguments(options, options + numOptions);
    llvm::FailureOr<CompileOptions> parsed = parseOptions(arguments, diagnostics);
    if (succeeded(parsed)) {
      std::unique_ptr<mlir::MLIRContext> context = createContext();
      Summary summary;
      Compilation phases(*context, std::move(*parsed), diagnostics);
      phases.afterPhase = [&](Phase phase) -> llvm::LogicalResult {
        if (phase == Phase::Lower)
          summary.predict(phases);
        return llvm::success();
      };
      if (succeeded(import(phases))) {
        llvm::FailureOr<std::vector<std::byte>> artifact = phases.serialize();
        if (succeeded(artifact)) {
          compilation->artifact = std::move(*artifact);
          compilation->summary = summary.describe("", static_cast<int64_t>(compilation->artifact.size()));
        }
      }
    }
  } catch (const std::bad_alloc &) {
    (void)diagnostics.error(ExitCode::DoesNotFit, "there is not enough memory for the tensors of this model");
  }
  *result = compilation.release();
  return static_cast<int>(diagnostics.getExitCode());
}

const char *dovetail_compiler_version(void) { return runtime::version(); }

int dovetail_compile_file(const char *path, const char *const *options, size_t numOptions,
                          dovetail_compilation **result) {
  return compile(options, numOptions, result,
                 [&](Compilation &compilation) { return compilation.import(llvm::StringRef(path)); });
}

int dovetail_compile_bytes(const void *model, size_t size, const char *name, const char *const *options,
                           size_t numOptions, dovetail_compilation **result) {
  llvm::MemoryBufferRef buffer({static_cast<const char *>(model), size}, name);
  return compile(options, numOptions, result, [&](Compilation &compilation) { return compilation.import(buffer); });
}

const void *dovetail_compilation_artifact(const dovetail_compilation *compilation, size_t *size) {
  *size = compilation->artifact.size();
  return *size ? compilation->artifact.data() : nullptr;
}

const char *dovetail_compilation_messages(const dovetail_compilation *compilation) {
  return compilation->messages.c_str();
}

const char *dovetail_compilation_summary(const dovetail_compilation *compilation) {
  return compilation->summary.c_str();
}

void dovetail_compilation_free(dovetail_compilation *compilation) { delete compilation; }
