//===- HostFeatures.cpp - What this machine's CPU can do ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostFeatures.h"

#include <cpuid.h>
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

} // namespace

bool dovetail::runtime::hostHasFeature(const std::string &name) {
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
