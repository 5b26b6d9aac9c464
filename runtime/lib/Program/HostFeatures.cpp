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

/// What the CPU says of itself in ECX; 0 where it does not know the question.
static unsigned cpuidEcx(unsigned leaf) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(leaf, &eax, &ebx, &ecx, &edx) ? ecx : 0;
}

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
#ifdef __clang__ // GCC learns of these later.
      FEATURE("avx10.1"),
      FEATURE("avx10.2"),
      FEATURE("avxifma"),
      FEATURE("avxneconvert"),
      FEATURE("avxvnniint16"),
      FEATURE("avxvnniint8"),
      // LLVM's names for the parts of APX, which CPUs have together.
      {"ccmp", __builtin_cpu_supports("apxf") != 0},
      {"cf", __builtin_cpu_supports("apxf") != 0},
      {"egpr", __builtin_cpu_supports("apxf") != 0},
      {"ndd", __builtin_cpu_supports("apxf") != 0},
      {"nf", __builtin_cpu_supports("apxf") != 0},
      {"ppx", __builtin_cpu_supports("apxf") != 0},
      {"push2pop2", __builtin_cpu_supports("apxf") != 0},
      {"zu", __builtin_cpu_supports("apxf") != 0},
#endif
      // clang-format on
      // GCC 12 cannot be asked for these.
      {"cx16", (cpuidEcx(1) & bit_CMPXCHG16B) != 0},
      {"sahf", (cpuidEcx(0x80000001) & bit_LAHF_LM) != 0},
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
