//===- HostFeatures.cpp - What this machine's CPU can do ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/HostFeatures.h"

#include "absl/strings/str_cat.h"

#include <cpuid.h>
#include <cstdlib>
#include <map>

using namespace dovetail::runtime;

namespace {

/// What the CPU says of itself; zeros where it does not know the question.
struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers result;
  if (!__get_cpuid_count(leaf, subleaf, &result.eax, &result.ebx, &result.ecx, &result.edx))
    return {};
  return result;
}

bool hasBit(unsigned value, unsigned bit) { return (value >> bit & 1) != 0; }

/// The version of AVX10 (Intel's AVX10 Architecture Specification, CPUID); 0 if the CPU has none, or the system does
/// not save what it needs.
unsigned avx10Version() {
  bool has = __builtin_cpu_supports("avx512f") != 0 && hasBit(cpuid(7, 1).edx, 19);
  return has ? cpuid(0x24).ebx & 0xff : 0;
}

/// One of the features of AVX that compilers cannot all be asked for.
bool hasAvxExtension(unsigned word, unsigned bit) { return __builtin_cpu_supports("avx") != 0 && hasBit(word, bit); }

/// APX, all of it, which CPUs have together, and its registers are saved (XCR0, bit 19).
bool hasApx() {
  if (!hasBit(cpuid(7, 1).edx, 21) || (cpuid(1).ecx & bit_OSXSAVE) == 0)
    return false;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return hasBit(low, 19);
}

/// The lowest level that has a feature.
CpuLevel lowestLevel(absl::string_view name) {
  static const std::map<absl::string_view, CpuLevel> levels = {
      // clang-format off
      {"64bit", CpuLevel::V1}, {"cmov", CpuLevel::V1}, {"cx8", CpuLevel::V1}, {"fxsr", CpuLevel::V1},
      {"mmx", CpuLevel::V1}, {"sse", CpuLevel::V1}, {"sse2", CpuLevel::V1}, {"x87", CpuLevel::V1},
      {"crc32", CpuLevel::V2}, {"cx16", CpuLevel::V2}, {"popcnt", CpuLevel::V2}, {"sahf", CpuLevel::V2},
      {"sse3", CpuLevel::V2}, {"sse4.1", CpuLevel::V2}, {"sse4.2", CpuLevel::V2}, {"ssse3", CpuLevel::V2},
      {"avx", CpuLevel::V3}, {"avx2", CpuLevel::V3}, {"bmi", CpuLevel::V3}, {"bmi2", CpuLevel::V3},
      {"f16c", CpuLevel::V3}, {"fma", CpuLevel::V3}, {"lzcnt", CpuLevel::V3}, {"movbe", CpuLevel::V3},
      {"xsave", CpuLevel::V3},
      {"avx512bw", CpuLevel::V4}, {"avx512cd", CpuLevel::V4}, {"avx512dq", CpuLevel::V4}, {"avx512f", CpuLevel::V4},
      {"avx512vl", CpuLevel::V4}, {"evex512", CpuLevel::V4},
      // clang-format on
  };
  auto it = levels.find(name);
  return it == levels.end() ? CpuLevel::Unlimited : it->second;
}

/// Whether the machine has the feature, whatever the limit is.
bool machineHasFeature(const std::string &name) {
  // The builtin takes literals only.
#define FEATURE(name) {name, __builtin_cpu_supports(name) != 0}
  static const std::map<std::string, bool> features = {
      // clang-format off
      FEATURE("adx"),
      FEATURE("aes"),
      FEATURE("amx-bf16"),
      FEATURE("amx-int8"),
      FEATURE("amx-tile"),
      FEATURE("avx"),
      FEATURE("avx2"),
      FEATURE("avx512bf16"),
      FEATURE("avx512bitalg"),
      FEATURE("avx512bw"),
      FEATURE("avx512cd"),
      FEATURE("avx512dq"),
      FEATURE("avx512f"),
      FEATURE("avx512fp16"),
      FEATURE("avx512ifma"),
      FEATURE("avx512vbmi"),
      FEATURE("avx512vbmi2"),
      FEATURE("avx512vl"),
      FEATURE("avx512vnni"),
      FEATURE("avx512vpopcntdq"),
      FEATURE("avxvnni"),
      FEATURE("bmi"),
      FEATURE("bmi2"),
      FEATURE("cldemote"),
      FEATURE("clflushopt"),
      FEATURE("clwb"),
      FEATURE("clzero"),
      FEATURE("cmov"),
      FEATURE("f16c"),
      FEATURE("fma"),
      FEATURE("fma4"),
      FEATURE("fsgsbase"),
      FEATURE("gfni"),
      FEATURE("hreset"),
      FEATURE("kl"),
      FEATURE("lwp"),
      FEATURE("lzcnt"),
      FEATURE("mmx"),
      FEATURE("movbe"),
      FEATURE("movdir64b"),
      FEATURE("movdiri"),
      FEATURE("mwaitx"),
      FEATURE("pclmul"),
      FEATURE("pconfig"),
      FEATURE("pku"),
      FEATURE("popcnt"),
      FEATURE("prfchw"),
      FEATURE("ptwrite"),
      FEATURE("rdpid"),
      FEATURE("rdrnd"),
      FEATURE("rdseed"),
      FEATURE("rtm"),
      FEATURE("serialize"),
      FEATURE("sgx"),
      FEATURE("sha"),
      FEATURE("shstk"),
      FEATURE("sse"),
      FEATURE("sse2"),
      FEATURE("sse3"),
      FEATURE("sse4.1"),
      FEATURE("sse4.2"),
      FEATURE("sse4a"),
      FEATURE("ssse3"),
      FEATURE("tbm"),
      FEATURE("tsxldtrk"),
      FEATURE("uintr"),
      FEATURE("vaes"),
      FEATURE("vpclmulqdq"),
      FEATURE("waitpkg"),
      FEATURE("wbnoinvd"),
      FEATURE("widekl"),
      FEATURE("xop"),
      FEATURE("xsave"),
      FEATURE("xsavec"),
      FEATURE("xsaveopt"),
      FEATURE("xsaves"),
      // clang-format on
      // GCC 12 cannot be asked for these.
      {"cx16", (cpuid(1).ecx & bit_CMPXCHG16B) != 0},
      {"sahf", (cpuid(0x80000001).ecx & bit_LAHF_LM) != 0},
      {"avx10.1", avx10Version() >= 1},
      {"avx10.2", avx10Version() >= 2},
      {"avxifma", hasAvxExtension(cpuid(7, 1).eax, 23)},
      {"avxneconvert", hasAvxExtension(cpuid(7, 1).edx, 5)},
      {"avxvnniint16", hasAvxExtension(cpuid(7, 1).edx, 10)},
      {"avxvnniint8", hasAvxExtension(cpuid(7, 1).edx, 4)},
      // LLVM's names for the parts of APX.
      {"ccmp", hasApx()},
      {"cf", hasApx()},
      {"egpr", hasApx()},
      {"ndd", hasApx()},
      {"nf", hasApx()},
      {"ppx", hasApx()},
      {"push2pop2", hasApx()},
      {"zu", hasApx()},
      // Part of every x86-64 CPU, or of another feature.
      {"64bit", true},
      {"cx8", true},
      {"fxsr", true},
      {"x87", true},
      {"crc32", __builtin_cpu_supports("sse4.2") != 0},
      {"evex512", __builtin_cpu_supports("avx512f") != 0},
      // For the operating system only.
      {"invpcid", true},
  };
#undef FEATURE
  auto it = features.find(name);
  return it != features.end() && it->second;
}

} // namespace

absl::StatusOr<CpuLevel> dovetail::runtime::parseCpuLevel(absl::string_view name) {
  if (name.empty())
    return CpuLevel::Unlimited;
  for (CpuLevel level : {CpuLevel::V2, CpuLevel::V3, CpuLevel::V4})
    if (name == cpuLevelName(level))
      return level;
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is not a level of CPUs; the levels are x86-64-v2, x86-64-v3 and x86-64-v4"));
}

std::string dovetail::runtime::cpuLevelName(CpuLevel level) {
  if (level == CpuLevel::Unlimited)
    return "native";
  return level == CpuLevel::V1 ? "x86-64" : absl::StrCat("x86-64-v", static_cast<int>(level));
}

bool dovetail::runtime::levelHasFeature(CpuLevel level, absl::string_view name) { return lowestLevel(name) <= level; }

absl::StatusOr<CpuLevel> dovetail::runtime::maxCpuLevel() {
  static const auto *result = new absl::StatusOr<CpuLevel>([]() -> absl::StatusOr<CpuLevel> {
    const char *value = std::getenv("DOVETAIL_MAX_CPU");
    absl::StatusOr<CpuLevel> level = parseCpuLevel(value ? value : "");
    if (!level.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("environment variable DOVETAIL_MAX_CPU: ", level.status().message()));
    return level;
  }());
  return *result;
}

absl::Status dovetail::runtime::checkBaseline() {
  static const auto *result = new absl::Status([]() -> absl::Status {
    for (const char *feature : {"cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2"})
      if (!machineHasFeature(feature))
        return absl::FailedPreconditionError(absl::StrCat("the CPU of this machine lacks ", feature,
                                                          ": Dovetail needs an x86-64-v2 CPU, which most CPUs made "
                                                          "since 2009 are"));
    return absl::OkStatus();
  }());
  return *result;
}

bool dovetail::runtime::hostHasFeature(const std::string &name) {
  absl::StatusOr<CpuLevel> level = maxCpuLevel();
  return levelHasFeature(level.ok() ? *level : CpuLevel::V1, name) && machineHasFeature(name);
}
