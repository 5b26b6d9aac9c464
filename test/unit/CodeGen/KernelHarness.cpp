//===- KernelHarness.cpp - Compiles and runs kernels in tests -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what tests of generated kernels share.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include "dovetail/CodeGen/CPU/Compile.h"
#include "dovetail/CodeGen/Passes.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/runtime/HostFeatures.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace dovetail;
using namespace dovetail::test;

LoadedKernels::LoadedKernels(llvm::StringRef source, const std::string &cpu) {
  MLIRContext context;
  context.loadDialect<DovetailDialect, plan::PlanDialect>();
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &diagnostic) {
    ADD_FAILURE() << diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
  if (!module)
    return;
  PassManager passes(&context);
  passes.addPass(createGenerateCpuKernels());
  if (failed(passes.run(*module)))
    return;
  CodeGenOptions options;
  options.cpu = cpu;
  // For looking at what a failing test generated.
  if (std::getenv("DOVETAIL_DUMP_KERNELS")) {
    module->print(llvm::errs());
    options.dumpAssembly = &llvm::errs();
  }
  FailureOr<ProgramCode> code = compileCpuKernels(*module, options);
  if (failed(code))
    return;
  int file = memfd_create("kernels", 0);
  llvm::ArrayRef<char> object = code->images.front().bytes;
  if (write(file, object.data(), object.size()) != static_cast<ssize_t>(object.size()))
    ADD_FAILURE() << "cannot write the shared object";
  // Vectorised loops call libmvec, which nothing else loads.
  dlopen("libmvec.so.1", RTLD_NOW | RTLD_GLOBAL);
  library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    ADD_FAILURE() << dlerror();
  close(file);
}

LoadedKernels::~LoadedKernels() {
  if (library)
    dlclose(library);
}

DovetailKernel LoadedKernels::get(const char *name) const {
  auto kernel = library ? reinterpret_cast<DovetailKernel>(dlsym(library, name)) : nullptr;
  if (!kernel)
    ADD_FAILURE() << "no kernel " << name;
  return kernel;
}

std::vector<std::string> test::runnableCpus(std::initializer_list<const char *> cpus) {
  std::vector<std::string> runnable;
  for (const char *cpu : cpus)
    if (llvm::all_of(getCpuFeatures(cpu), runtime::hostHasFeature))
      runnable.push_back(cpu);
  return runnable;
}

std::string test::testName(std::string cpu) {
  std::replace(cpu.begin(), cpu.end(), '-', '_');
  return cpu;
}

float test::noise(const Index &index) {
  uint64_t state = 0x9e3779b97f4a7c15;
  for (int64_t coordinate : index)
    state = (state ^ static_cast<uint64_t>(coordinate + 1)) * 0xbf58476d1ce4e5b9;
  state ^= state >> 29;
  return static_cast<float>(state >> 40) / static_cast<float>(1 << 22) - 2.0f;
}
