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

#include "Commands.h"

#include "dovetail/Driver/CommandLine.h"
#include "dovetail/Driver/Compilation.h"
#include "dovetail/Driver/Summary.h"
#include "dovetail/runtime/HostFeatures.h"
#include "dovetail/runtime/Interruption.h"
#include "dovetail/runtime/Version.h"

#include <new>

using namespace dovetail;

struct dovetail_compilation {
  std::vector<std::byte> artifact;
  std::string messages, output, summary;
};

/// The result of a call that SIGINT has ended.
static constexpr int kInterrupted = 130;

/// Compiles what `import` imports.
static int compile(const char *const *options, size_t numOptions, dovetail_compilation **result,
                   llvm::function_ref<llvm::LogicalResult(Compilation &)> import) {
  runtime::InterruptScope scope;
  auto compilation = std::make_unique<dovetail_compilation>();
  llvm::raw_string_ostream messages(compilation->messages);
  std::vector<std::string> arguments(options, options + numOptions);
  // Of the options of `dovetail compile` that print, this one alone.
  bool remarks = llvm::is_contained(arguments, "--remarks");
  llvm::erase(arguments, "--remarks");
  Diagnostics diagnostics(messages, remarks);
  if (absl::Status status = runtime::checkBaseline(); !status.ok()) {
    (void)diagnostics.error(ExitCode::Artifact, std::string(status.message()));
    *result = compilation.release();
    return static_cast<int>(diagnostics.getExitCode());
  }
  // Callers may be in a language that knows no exceptions.
  try {
    llvm::FailureOr<CompileOptions> parsed = parseOptions(arguments, diagnostics);
    if (succeeded(parsed)) {
      parsed->explain = remarks;
      std::unique_ptr<mlir::MLIRContext> context = createContext();
      Summary summary;
      Compilation phases(*context, std::move(*parsed), diagnostics);
      phases.afterPhase = [&](Phase phase) -> llvm::LogicalResult {
        summary.look(phases, phase);
        return llvm::success();
      };
      if (succeeded(import(phases))) {
        llvm::FailureOr<std::vector<std::byte>> artifact = phases.serialize();
        if (succeeded(artifact)) {
          compilation->artifact = std::move(*artifact);
          summary.compareAlone(phases);
          compilation->summary = summary.describe("", static_cast<int64_t>(compilation->artifact.size()));
        }
      }
    }
  } catch (const std::bad_alloc &) {
    (void)diagnostics.error(ExitCode::DoesNotFit, "there is not enough memory for the tensors of this model");
  }
  bool isDone = !compilation->artifact.empty();
  *result = compilation.release();
  return !isDone && runtime::isInterrupted() ? kInterrupted : static_cast<int>(diagnostics.getExitCode());
}

void dovetail_compiler_set_interruptible(int is_interruptible) { runtime::setInterruptible(is_interruptible != 0); }

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

int dovetail_command(int argc, const char *const *argv, const void *model, size_t size, dovetail_compilation **result) {
  runtime::InterruptScope scope;
  auto compilation = std::make_unique<dovetail_compilation>();
  int exitCode = static_cast<int>(ExitCode::Ok);
  {
    llvm::raw_string_ostream messages(compilation->messages), output(compilation->output);
    CommandContext context{output, messages};
    context.showsProgress = false;
    if (model)
      context.model = llvm::StringRef(static_cast<const char *>(model), size);
    CLI::App app("", "dovetail");
    app.require_subcommand(1);
    addInspectCommand(app, exitCode, context);
    addPlanCommand(app, exitCode, context);
    addVerifyCommand(app, exitCode, context);
    // The first argument is a name, as that of a program.
    std::vector<char *> arguments{const_cast<char *>("dovetail")};
    for (int index = 0; index < argc; ++index)
      arguments.push_back(const_cast<char *>(argv[index]));
    int count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    exitCode = carryOut(app, count, arguments.data(), exitCode, messages);
  }
  *result = compilation.release();
  return exitCode != 0 && runtime::isInterrupted() ? kInterrupted : exitCode;
}

const char *dovetail_compilation_output(const dovetail_compilation *compilation) { return compilation->output.c_str(); }

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
