// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hides from a program what a CPU has beyond x86-64-v3 (AVX2): AVX-512, AVX-VNNI, AMX and what came with them. For
// programs that cannot be limited otherwise, such as ONNX Runtime. Preloaded, by LD_PRELOAD.
//
// Linux lets a process fault on the instruction CPUID (arch_prctl, ARCH_SET_CPUID) where the CPU can do so, which
// /proc/cpuinfo calls cpuid_fault. The handler executes the instruction and clears bits of its answer. Without that
// ability the program ends with exit status 77. Threads inherit the setting; programs that it starts preload this, too.

#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static long faultOnCpuid(unsigned long isOn) { return syscall(SYS_arch_prctl, ARCH_SET_CPUID, !isOn); }

#define BIT(n) (1u << (n))

static void answer(int number, siginfo_t *info, void *context) {
  (void)info;
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const unsigned char *code = (const unsigned char *)registers[REG_RIP];
  if (code[0] != 0x0f || code[1] != 0xa2) {
    signal(number, SIG_DFL);
    return;
  }
  unsigned leaf = registers[REG_RAX], subleaf = registers[REG_RCX], a, b, c, d;
  faultOnCpuid(0);
  __cpuid_count(leaf, subleaf, a, b, c, d);
  faultOnCpuid(1);
  // The numbers of bits are those of Intel's manual, volume 2, CPUID.
  if (leaf == 7 && subleaf == 0) {
    // AVX-512: F, DQ, IFMA, PF, ER, CD, BW, VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; 4VNNIW, 4FMAPS, VP2INTERSECT, FP16.
    b &= ~(BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31));
    c &= ~(BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14));
    d &= ~(BIT(2) | BIT(3) | BIT(8) | BIT(23));
    // AMX: BF16, TILE, INT8.
    d &= ~(BIT(22) | BIT(24) | BIT(25));
  } else if (leaf == 7 && subleaf == 1) {
    // AVX-VNNI, AVX512-BF16, AMX-FP16, AVX-IFMA; what d has is newer than AVX2.
    a &= ~(BIT(4) | BIT(5) | BIT(21) | BIT(23));
    d = 0;
  }
  registers[REG_RAX] = a;
  registers[REG_RBX] = b;
  registers[REG_RCX] = c;
  registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void hide(void) {
  struct sigaction action = {0};
  action.sa_sigaction = answer;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, 0);
  if (faultOnCpuid(1) != 0)
    _exit(77);
}
