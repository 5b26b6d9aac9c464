//===- Compile.cpp - From kernels to machine code -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines compileCpuKernels: translation to LLVM IR, optimisation, machine code and linking.
//
//===----------------------------------------------------------------------===//

#include "dovetail/CodeGen/CPU/Compile.h"

#include "CpuMachine.h"
#include "LowerToLLVM.h"
#include "Symbols.h"

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/runtime/Interruption.h"
#include "lld/Common/Driver.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Transforms/Utils/Cloning.h"

LLD_HAS_DRIVER(elf)

using namespace mlir;
using namespace dovetail;

/// Translates the lowered kernels, and gives functions what the LLVM dialect has no words for.
static std::unique_ptr<llvm::Module> translate(ModuleOp kernels, llvm::LLVMContext &context, const CpuMachine &cpu) {
  MLIRContext *mlirContext = kernels.getContext();
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  mlirContext->appendDialectRegistry(registry);
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(kernels, context, "kernels");
  if (!module)
    return nullptr;
  module->setTargetTriple(cpu.machine->getTargetTriple());
  module->setDataLayout(cpu.machine->createDataLayout());
  for (llvm::Function &function : *module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", cpu.machine->getTargetCPU());
    function.addFnAttr("target-features", cpu.machine->getTargetFeatureString());
    // CPUs with AVX-512 that LLVM tunes for narrower vectors run these loops faster with wide ones.
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (function.getName().ends_with(".body")) {
      function.setLinkage(llvm::Function::InternalLinkage);
      function.addFnAttr(llvm::Attribute::AlwaysInline);
    }
  }
  return module;
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  tuning.LoopInterleaving = true;
  // Vectorised loops are interleaved already: unrolling them on top doubles compile time and gains nothing.
  tuning.LoopUnrolling = false;
  // Whoever has interrupted the compilation does not wait for the passes that are left.
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback(
      [](llvm::StringRef, const llvm::Any &) { return !runtime::isInterrupted(); });
  llvm::PassBuilder passBuilder(&machine, tuning, std::nullopt, &callbacks);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::TargetLibraryInfoImpl libraries(module.getTargetTriple(), llvm::VectorLibrary::LIBMVEC);
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(libraries); });
  passBuilder.registerModuleAnalyses(modules);
  passBuilder.registerCGSCCAnalyses(callGraph);
  passBuilder.registerFunctionAnalyses(functions);
  passBuilder.registerLoopAnalyses(loops);
  passBuilder.crossRegisterProxies(loops, functions, callGraph, modules);
  passBuilder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

/// Generates code of one kind; fails if the target cannot.
static LogicalResult generate(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType kind,
                              llvm::raw_pwrite_stream &output) {
  llvm::legacy::PassManager passes;
  passes.add(new llvm::TargetLibraryInfoWrapperPass(
      llvm::TargetLibraryInfoImpl(module.getTargetTriple(), llvm::VectorLibrary::LIBMVEC)));
  if (machine.addPassesToEmitFile(passes, output, nullptr, kind))
    return failure();
  passes.run(module);
  return success();
}

/// Links an object file into a shared object. Symbols that `checkSymbols` allows stay undefined: the runtime has them.
static FailureOr<std::vector<char>> link(Location location, ArrayRef<char> object) {
  SmallString<128> input, output;
  int descriptor;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("dovetail-kernels", "o", descriptor, input))
    return emitError(location, "cannot create a temporary file for kernels: ") << error.message();
  llvm::scope_exit removeInput([&] { llvm::sys::fs::remove(input); });
  llvm::raw_fd_ostream file(descriptor, /*shouldClose=*/true);
  file.write(object.data(), object.size());
  file.close();
  if (file.has_error()) {
    std::string why = file.error().message();
    file.clear_error();
    return emitError(location) << "cannot write " << input << ": " << why;
  }
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("dovetail-kernels", "so", output))
    return emitError(location, "cannot create a temporary file for kernels: ") << error.message();
  llvm::scope_exit removeOutput([&] { llvm::sys::fs::remove(output); });

  std::string messages;
  llvm::raw_string_ostream stream(messages);
  // One thread suffices for one file. LLVM keeps those of a pool, which a process that is forked later does not have.
  const char *arguments[] = {"ld.lld",           "-shared", "--strip-all",  "--threads=1", "-soname",
                             "dovetail-kernels", "-o",      output.c_str(), input.c_str()};
  lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return emitError(location, "cannot link kernels: ") << messages;
  auto buffer = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return emitError(location) << "cannot read " << output << ": " << buffer.getError().message();
  return std::vector<char>((*buffer)->getBufferStart(), (*buffer)->getBufferEnd());
}

FailureOr<ProgramCode> dovetail::compileCpuKernels(ModuleOp module, const CodeGenOptions &options) {
  FailureOr<CpuMachine> cpu = createCpuMachine(module.getLoc(), options.cpu);
  if (failed(cpu))
    return failure();
  ProgramCode code;
  code.cpu = cpu->cpu;
  code.features = cpu->features;
  auto kernels = module.lookupSymbol<ModuleOp>(cpuKernelsModule);
  if (!kernels)
    return code;

  llvm::LLVMContext context;
  if (failed(lowerKernelsToLLVM(kernels, cpu->floats)))
    return emitError(module.getLoc(), "cannot lower kernels to LLVM");
  std::unique_ptr<llvm::Module> translated = translate(kernels, context, *cpu);
  if (!translated)
    return emitError(module.getLoc(), "cannot translate kernels to LLVM");
  kernels.erase();
  optimize(*translated, *cpu->machine);
  if (runtime::isInterrupted())
    return failure();
  if (options.dumpLLVM)
    translated->print(*options.dumpLLVM, nullptr);
  if (options.dumpAssembly) {
    // Code generation changes the module.
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*translated);
    SmallVector<char> text;
    llvm::raw_svector_ostream stream(text);
    if (succeeded(generate(*copy, *cpu->machine, llvm::CodeGenFileType::AssemblyFile, stream)))
      options.dumpAssembly->write(text.data(), text.size());
  }
  SmallVector<char> object;
  llvm::raw_svector_ostream stream(object);
  if (failed(generate(*translated, *cpu->machine, llvm::CodeGenFileType::ObjectFile, stream)))
    return emitError(module.getLoc(), "LLVM cannot generate object files for ") << cpu->cpu;
  if (failed(checkSymbols(module, object)))
    return failure();
  FailureOr<std::vector<char>> linked = link(module.getLoc(), object);
  if (failed(linked))
    return failure();
  code.images.push_back({runtime::SectionKind::Code, /*arch=*/"", std::move(*linked)});
  return code;
}
