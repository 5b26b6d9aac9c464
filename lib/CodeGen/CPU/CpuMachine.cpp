//===- CpuMachine.cpp - The CPU that code is generated for -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines createCpuMachine and what is known of CPUs.
//
//===----------------------------------------------------------------------===//

#include "CpuMachine.h"

#include "dovetail/CodeGen/CPU/Compile.h"
#include "dovetail/Text/Suggestion.h"
#include "dovetail/runtime/HostFeatures.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/Triple.h"

#include <mutex>

using namespace mlir;
using namespace dovetail;

/// Dovetail's runtime runs on Linux.
static llvm::Triple getTriple() { return llvm::Triple("x86_64-unknown-linux-gnu"); }

static const llvm::Target *getTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string error;
  return llvm::TargetRegistry::lookupTarget(getTriple(), error);
}

static std::unique_ptr<llvm::MCSubtargetInfo> getSubtarget(StringRef cpu, StringRef features) {
  const llvm::Target *target = getTarget();
  return std::unique_ptr<llvm::MCSubtargetInfo>(target ? target->createMCSubtargetInfo(getTriple(), cpu, features)
                                                       : nullptr);
}

/// LLVM knows CPUs of 32 bits, too.
static bool has64Bits(StringRef cpu) { return getSubtarget(cpu, "")->checkFeatures("+64bit"); }

bool dovetail::isKnownCpu(StringRef cpu) {
  if (cpu == "native")
    return true;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget = getSubtarget("generic", "");
  return subtarget && subtarget->isCPUStringValid(cpu) && has64Bits(cpu);
}

std::vector<std::string> dovetail::listCpus() {
  std::vector<std::string> names = {"native"};
  if (std::unique_ptr<llvm::MCSubtargetInfo> subtarget = getSubtarget("generic", ""))
    for (const llvm::SubtargetSubTypeKV &cpu : subtarget->getAllProcessorDescriptions())
      if (StringRef name(cpu.Key); has64Bits(name))
        names.push_back(name.str());
  return names;
}

std::string dovetail::adviseCpu(StringRef cpu) {
  std::vector<std::string> near = text::nearest(cpu.str(), listCpus(), 3);
  std::string advice = near.empty() ? "; pass native, x86-64-v2, x86-64-v3, x86-64-v4 or a name such as haswell"
                                    : "; did you mean '" + llvm::join(near, "', '") + "'?";
  return advice + (near.empty() ? "; " : " ") + "`dovetail --list-cpus` prints all names";
}

/// The features of `subtarget` that generated code may use: all for which LLVM selects instructions unasked. One that
/// the runtime does not know counts as missing there.
static std::vector<std::string> getRequiredFeatures(const llvm::MCSubtargetInfo &subtarget) {
  static const char *const features[] = {
      "sse3",         "ssse3",        "sse4.1",      "sse4.2",     "popcnt",       "avx",
      "avx2",         "fma",          "f16c",        "bmi",        "bmi2",         "lzcnt",
      "movbe",        "avx512f",      "avx512bw",    "avx512cd",   "avx512dq",     "avx512vl",
      "avx512ifma",   "avx512vbmi",   "avx512vbmi2", "avx512vnni", "avx512bitalg", "avx512vpopcntdq",
      "avx512bf16",   "avx512fp16",   "avxvnni",     "gfni",       "sse4a",        "fma4",
      "xop",          "tbm",          "avx10.1",     "avx10.2",    "avxifma",      "avxvnniint8",
      "avxvnniint16", "avxneconvert", "egpr",        "push2pop2",  "ppx",          "ndd",
      "ccmp",         "nf",           "cf",          "zu"};
  std::vector<std::string> required;
  for (const char *feature : features)
    if (subtarget.checkFeatures((Twine("+") + feature).str()))
      required.push_back(feature);
  return required;
}

/// What LLVM calls the CPU of this machine or, where DOVETAIL_MAX_CPU limits it, the level; otherwise `cpu` itself. And
/// what is known of its features besides.
static std::pair<std::string, std::string> resolve(StringRef cpu) {
  if (cpu != "native")
    return {cpu.str(), ""};
  runtime::CpuLevel limit = runtime::maxCpuLevel().value_or(runtime::CpuLevel::V1);
  bool isLimited = limit != runtime::CpuLevel::Unlimited;
  // A hypervisor may hide some of what the CPU has.
  llvm::SubtargetFeatures features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    if (!feature.second || !isLimited)
      features.AddFeature(feature.first(), feature.second);
  return {isLimited ? runtime::cpuLevelName(limit) : llvm::sys::getHostCPUName().str(), features.getString()};
}

std::vector<std::string> dovetail::getCpuFeatures(StringRef cpu) {
  auto [name, features] = resolve(cpu);
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget = getSubtarget(name, features);
  return subtarget ? getRequiredFeatures(*subtarget) : std::vector<std::string>();
}

FailureOr<CpuMachine> dovetail::createCpuMachine(Location location, StringRef cpu) {
  const llvm::Target *target = getTarget();
  if (!target)
    return emitError(location, "this build of LLVM cannot generate code for x86-64");
  if (!isKnownCpu(cpu))
    return emitError(location) << "CPU '" << cpu << "' is not known" << adviseCpu(cpu);
  if (absl::StatusOr<runtime::CpuLevel> limit = runtime::maxCpuLevel(); cpu == "native" && !limit.ok())
    return emitError(location, std::string(limit.status().message()));
  CpuMachine result;
  std::string features;
  std::tie(result.cpu, features) = resolve(cpu);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  result.machine.reset(target->createTargetMachine(getTriple(), result.cpu, features, options, llvm::Reloc::PIC_,
                                                   std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  const llvm::MCSubtargetInfo &subtarget = *result.machine->getMCSubtargetInfo();
  result.features = getRequiredFeatures(subtarget);
  result.floats.f16 = subtarget.checkFeatures("+f16c");
  result.floats.f64ToF16 = subtarget.checkFeatures("+avx512fp16");
  return result;
}
