//===- DriverTest.cpp - Finding and using the driver -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fake.h"

#include "dovetail/runtime/ExitCode.h"
#include "dovetail/runtime/Transport.h"

#include <cstdio>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using testing::HasSubstr;
using testing::Not;

namespace {

absl::Status openWith(const char *folder) {
  ::setenv("DOVETAIL_CUDA_PATH", folder ? test::fakeFolder(folder).c_str() : "", 1);
  return DriverApi::open().status();
}

TEST(Driver, MissingDriverIsOneSentence) {
  if (void *handle = ::dlopen("libcuda.so.1", RTLD_LAZY)) {
    ::dlclose(handle);
    GTEST_SKIP() << "this machine has a driver, or a test before this one has opened an imitation";
  }
  absl::Status status = openWith(nullptr);
  EXPECT_EQ(exitCodeOf(status), 8);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the NVIDIA driver (libcuda.so.1) is not on this machine"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
}

TEST(Driver, NoDevice) {
  absl::Status status = openWith("driver-none");
  EXPECT_EQ(exitCodeOf(status), 8);
  EXPECT_THAT(std::string(status.message()), HasSubstr("finds no GPU"));
}

TEST(Driver, TooOldNamesBothVersions) {
  absl::Status status = openWith("driver-old");
  EXPECT_EQ(exitCodeOf(status), 8);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the NVIDIA driver for CUDA 11.4"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("too old: CUDA 12.0 or newer is needed"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("driver-old/libcuda.so.1"));
}

TEST(Driver, MissingFunctionIsNamed) {
  absl::Status status = openWith("driver-partial");
  EXPECT_EQ(exitCodeOf(status), 8);
  EXPECT_THAT(std::string(status.message()), HasSubstr("for CUDA 13.0"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("lacks the function cuInit"));
}

/// Nothing of CUDA is needed to load a plug-in, and it shows one symbol.
class OnePlugin : public testing::TestWithParam<std::pair<const char *, const char *>> {};

TEST_P(OnePlugin, NeedsNothingAndShowsOneSymbol) {
  std::string command = std::string("readelf -d -W --dyn-syms ") + GetParam().first, output;
  FILE *pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char buffer[4096];
  while (size_t count = std::fread(buffer, 1, sizeof(buffer), pipe))
    output.append(buffer, count);
  ASSERT_EQ(::pclose(pipe), 0);
  EXPECT_THAT(output, HasSubstr("(NEEDED)"));
  EXPECT_THAT(output, HasSubstr(GetParam().second));
  for (const char *library : {"[libcu", "[libnccl", "[libnv", "[libdnnl"})
    EXPECT_THAT(output, Not(HasSubstr(library)));
  size_t shown = 0;
  for (size_t at = 0; (at = output.find(" GLOBAL DEFAULT ", at)) != std::string::npos; ++at)
    shown += output.compare(at, 21, " GLOBAL DEFAULT  UND ") != 0;
  EXPECT_EQ(shown, 1u);
}
INSTANTIATE_TEST_SUITE_P(Plugin, OnePlugin,
                         testing::Values(std::pair{DOVETAIL_TEST_PLUGIN, devicePluginSymbol},
                                         std::pair{DOVETAIL_TEST_TRANSPORT, transportPluginSymbol}));

TEST(Plugin, Opens) {
  void *handle = ::dlopen(DOVETAIL_TEST_PLUGIN, RTLD_NOW);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  auto *function = reinterpret_cast<const DevicePlugin *(*)()>(::dlsym(handle, devicePluginSymbol));
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function()->version, devicePluginVersion);
}

class Code : public test::FakeDevice {
protected:
  static CodeImage image(SectionKind kind, const char *arch, const char *text) {
    return {kind, arch, absl::Span<const std::byte>(reinterpret_cast<const std::byte *>(text), std::strlen(text))};
  }
};

TEST_F(Code, BestImageIsLoaded) {
  auto ptx80 = image(SectionKind::Ptx, "sm_80", "ptx 80"), ptx90 = image(SectionKind::Ptx, "sm_90", "ptx 90"),
       ptx100 = image(SectionKind::Ptx, "sm_100", "ptx 100"), cubin86 = image(SectionKind::Cubin, "sm_86", "cubin 86"),
       cubin90 = image(SectionKind::Cubin, "sm_90", "cubin 90"), broken = image(SectionKind::Cubin, "sm_90", "BROKEN");
  // The device is an sm_90.
  ASSERT_TRUE(device->loadCode({ptx80, cubin86, ptx90, cubin90, ptx100}).ok());
  EXPECT_EQ(log->lastImage, "cubin 90");
  ASSERT_TRUE(device->loadCode({ptx80, cubin86, ptx90, ptx100}).ok());
  EXPECT_EQ(log->lastImage, "ptx 90");
  ASSERT_TRUE(device->loadCode({broken, ptx80}).ok());
  EXPECT_EQ(log->lastImage, "ptx 80");

  absl::Status none = device->loadCode({ptx100, cubin86}).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("kernels for PTX for sm_100, sm_86, but GPU 0 is sm_90; compile the model with --arch sm_90"));
  absl::Status bad = device->loadCode({broken}).status();
  EXPECT_THAT(std::string(bad.message()), HasSubstr("its compiler says: ptxas fatal: it is broken"));
}

TEST_F(Code, LaunchesPassPointersThenNumbers) {
  auto code = *device->loadCode({image(SectionKind::Ptx, "sm_80", "ptx")});
  LaunchDescription description;
  description.name = "rank 1, step 'add'";
  description.blocks = 3;
  description.threads = 64;
  description.sharedBytes = 3000;
  description.pointers = {reinterpret_cast<void *>(0x100), reinterpret_cast<void *>(0x200)};
  description.numbers = {-7, 8};
  log->parameters = 4;
  auto launch = code->prepareLaunch("kernel", description);
  ASSERT_TRUE(launch.ok()) << launch.status();
  ASSERT_TRUE((*launch)->issue(*stream).ok());
  EXPECT_THAT(std::vector<int64_t>(log->lastParameters, log->lastParameters + 4),
              testing::ElementsAre(0x100, 0x200, -7, 8));
  EXPECT_EQ(log->lastShared, 3000u - 1024u); // The kernel declares 1024 bytes itself.

  log->failure = CUDA_ERROR_ILLEGAL_ADDRESS;
  absl::Status failed = (*launch)->issue(*stream);
  EXPECT_EQ(exitCodeOf(failed), 8);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("rank 1, step 'add': GPU 0: the CUDA driver's cuLaunchKernel "
                                                       "failed: a fake error (CUDA_ERROR_ILLEGAL_ADDRESS)"));
}

TEST_F(Code, ImpossibleLaunchesAreRefused) {
  auto code = *device->loadCode({image(SectionKind::Ptx, "sm_80", "ptx")});
  LaunchDescription description;
  description.name = "step";
  EXPECT_EQ(code->prepareLaunch("missing", description).status().code(), absl::StatusCode::kDataLoss);
  description.threads = 1024; // The kernel has registers for 512.
  EXPECT_THAT(std::string(code->prepareLaunch("kernel", description).status().message()), HasSubstr("for 512 only"));
  description.threads = 32;
  description.sharedBytes = 200 << 10;
  EXPECT_THAT(std::string(code->prepareLaunch("kernel", description).status().message()),
              HasSubstr("204800 bytes of shared memory, but GPU 0 has 102400"));
}

class DeviceMemoryTest : public test::FakeDevice {};

TEST_F(DeviceMemoryTest, IsFreedAfterItsDevice) {
  int before = log->allocations;
  auto memory = *device->allocate(1000), pinned = *device->allocatePinned(10), none = *device->allocate(0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 256, 0u);
  EXPECT_EQ(log->allocations, before + 2);
  stream.reset();
  device.reset();
  context.reset();
  memory.reset();
  pinned.reset();
  none.reset();
  EXPECT_EQ(log->allocations, before);
}

TEST_F(DeviceMemoryTest, TooMuchSaysWhatIsFree) {
  absl::Status status = device->allocate(int64_t(1) << 30).status();
  EXPECT_EQ(exitCodeOf(status), 6);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1073741824 bytes of memory are needed, but only 536870912"));
}

TEST_F(DeviceMemoryTest, LateErrorsSayHowToFindTheStep) {
  log->lateFailure = CUDA_ERROR_ILLEGAL_ADDRESS;
  absl::Status status = stream->synchronize();
  EXPECT_EQ(exitCodeOf(status), 8);
  EXPECT_THAT(std::string(status.message()), HasSubstr("DOVETAIL_CUDA_SYNCHRONOUS=1"));
  log->lateFailure = CUDA_SUCCESS;
}

} // namespace
