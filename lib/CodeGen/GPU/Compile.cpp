//===- Compile.cpp - From block kernels to PTX and cubins -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines compileCudaKernels: translation to LLVM IR, libdevice, optimisation, PTX and ptxas.
//
//===----------------------------------------------------------------------===//

#include "dovetail/CodeGen/GPU/Compile.h"

#include "LowerToNVVM.h"
#include "Ptxas.h"
#include "dovetail/runtime/ArtifactFormat.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Internalize.h"

#include <mutex>

using namespace mlir;
using namespace dovetail;

/// NVIDIA's library of mathematical functions, as LLVM bitcode, copied in when Dovetail was built; empty if it was not
/// at hand.
static const unsigned char libdevice[] = {
#ifdef DOVETAIL_LIBDEVICE
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc23-extensions"
#embed DOVETAIL_LIBDEVICE
#pragma clang diagnostic pop
#else
    0
#endif
};

ArrayRef<std::string> dovetail::getCudaArchs() {
  static const std::string archs[] = {"sm_75", "sm_80",  "sm_86",  "sm_87", "sm_89",
                                      "sm_90", "sm_100", "sm_103", "sm_120"};
  return archs;
}

static std::unique_ptr<llvm::TargetMachine> createMachine(StringRef arch) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  // The oldest versions that know the architectures, and kernels of more than 4 KiB of parameters.
  uint32_t number = runtime::archNumber({arch.data(), arch.size()}).value_or(0);
  const char *version = number < 100 ? "+ptx81" : number < 103 ? "+ptx86" : "+ptx88";
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, arch, version, options, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

static std::unique_ptr<llvm::Module> translate(gpu::GPUModuleOp kernels, llvm::LLVMContext &context,
                                               const llvm::TargetMachine &machine) {
  MLIRContext *mlirContext = kernels.getContext();
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  mlirContext->appendDialectRegistry(registry);
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(kernels, context, "kernels");
  if (!module)
    return nullptr;
  module->setTargetTriple(machine.getTargetTriple());
  module->setDataLayout(machine.createDataLayout());
  // Functions of libdevice ask for it: denormal numbers are kept.
  module->addModuleFlag(llvm::Module::Override, "nvvm-reflect-ftz", 0u);
  return module;
}

/// Brings in the functions of libdevice that `module` calls.
static LogicalResult linkLibdevice(Location location, llvm::Module &module) {
  std::string missing;
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && function.getName().starts_with("__nv_"))
      missing = function.getName().str();
  if (missing.empty())
    return success();
  if (sizeof(libdevice) <= 1)
    return emitError(location, "kernels need the function '")
           << missing << "' of libdevice, without which this Dovetail was built; build it again after scripts/setup";
  llvm::StringRef bytes(reinterpret_cast<const char *>(libdevice), sizeof(libdevice));
  auto library = llvm::parseBitcodeFile(llvm::MemoryBufferRef(bytes, "libdevice"), module.getContext());
  if (!library)
    return emitError(location, "cannot read libdevice: ") << llvm::toString(library.takeError());
  (*library)->setTargetTriple(module.getTargetTriple());
  (*library)->setDataLayout(module.getDataLayout());
  if (llvm::Linker::linkModules(module, std::move(*library), llvm::Linker::Flags::LinkOnlyNeeded,
                                [](llvm::Module &linked, const llvm::StringSet<> &names) {
                                  llvm::internalizeModule(linked, [&](const llvm::GlobalValue &value) {
                                    return !value.hasName() || !names.contains(value.getName());
                                  });
                                }))
    return emitError(location, "cannot link libdevice");
  return success();
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = true;
  llvm::PassBuilder passBuilder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  passBuilder.registerModuleAnalyses(modules);
  passBuilder.registerCGSCCAnalyses(callGraph);
  passBuilder.registerFunctionAnalyses(functions);
  passBuilder.registerLoopAnalyses(loops);
  passBuilder.crossRegisterProxies(loops, functions, callGraph, modules);
  machine.registerPassBuilderCallbacks(passBuilder);
  passBuilder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

FailureOr<ProgramCode> dovetail::compileCudaKernels(ModuleOp module, const CodeGenOptions &options,
                                                    const std::string &ptxas) {
  ProgramCode code;
  auto kernels = module.lookupSymbol<gpu::GPUModuleOp>(blockKernelsModule);
  if (!kernels)
    return code;
  Location location = module.getLoc();
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(options.archs.front());
  if (!machine)
    return emitError(location, "this build of LLVM cannot generate code for NVIDIA devices");
  llvm::LLVMContext context;
  if (failed(lowerKernelsToNVVM(kernels)))
    return emitError(location, "cannot lower kernels to NVVM");
  std::unique_ptr<llvm::Module> translated = translate(kernels, context, *machine);
  if (!translated)
    return emitError(location, "cannot translate kernels to LLVM");
  kernels.erase();
  if (failed(linkLibdevice(location, *translated)))
    return failure();
  optimize(*translated, *machine);
  if (options.dumpLLVM)
    translated->print(*options.dumpLLVM, nullptr);

  SmallVector<char> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return emitError(location, "LLVM cannot generate PTX for ") << options.archs.front();
  passes.run(*translated);
  if (options.dumpAssembly)
    *options.dumpAssembly << text;
  code.images.push_back({runtime::SectionKind::Ptx, options.archs.front(), {text.begin(), text.end()}});
  if (!ptxas.empty() && failed(assemble(location, {text.data(), text.size()}, options.archs, ptxas, code)))
    return failure();
  return code;
}
