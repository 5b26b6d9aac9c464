//===- DevicesTest.cpp - dovetail devices, and the libraries it lists ----===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backend/cuda/Libraries.h"
#include "Transport/nccl/NcclApi.h"

#include "dovetail/runtime/ExitCode.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

using namespace dovetail;
using namespace dovetail::runtime::cuda;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace {

struct Result {
  int code;
  std::string output; ///< And messages.
};

/// Runs the tool in a process of its own, with the fake libraries of these folders.
Result run(const std::string &arguments, const std::string &folders) {
  std::string path;
  for (size_t begin = 0; begin < folders.size();) {
    size_t end = std::min(folders.find(':', begin), folders.size());
    path += (path.empty() ? "" : ":") + std::string(DOVETAIL_TEST_LIBRARIES) + "/" + folders.substr(begin, end - begin);
    begin = end + 1;
  }
  std::string command = "DOVETAIL_CUDA_PATH='" + path + "' " + DOVETAIL_TEST_TOOL + " " + arguments + " 2>&1";
  FILE *pipe = ::popen(command.c_str(), "r");
  Result result{-1, ""};
  char buffer[4096];
  while (size_t count = std::fread(buffer, 1, sizeof(buffer), pipe))
    result.output.append(buffer, count);
  result.code = WEXITSTATUS(::pclose(pipe));
  return result;
}

/// Whether the machine has a driver: asked before a test opens an imitation of that name.
const bool hasDriver = [] {
  void *handle = ::dlopen("libcuda.so.1", RTLD_LAZY);
  return handle != nullptr && ::dlclose(handle) == 0;
}();

TEST(DevicesCommand, CudaWithoutDriverIsExitCode8AndOneSentence) {
  if (hasDriver)
    GTEST_SKIP() << "this machine has a driver";
  Result result = run("devices --target cuda", "");
  EXPECT_EQ(result.code, 8);
  EXPECT_THAT(result.output,
              StartsWith("dovetail-run: error: the NVIDIA driver (libcuda.so.1) is not on this machine"));
  EXPECT_EQ(result.output.find('\n'), result.output.size() - 1);
  // Nothing falls back to the CPU.
  EXPECT_THAT(result.output, Not(HasSubstr("processors")));

  Result all = run("devices", "");
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.output, HasSubstr("processors"));
  EXPECT_THAT(all.output, HasSubstr("none: the NVIDIA driver"));
}

TEST(DevicesCommand, NoGpuIsExitCode8) {
  Result result = run("devices --target cuda", "driver-none");
  EXPECT_EQ(result.code, 8);
  EXPECT_THAT(result.output, HasSubstr("finds no GPU on this machine"));
}

TEST(DevicesCommand, ListsGpusAndLibraries) {
  Result result = run("devices --target cuda", "driver:cudnn-old:nccl-old");
  EXPECT_EQ(result.code, 0) << result.output;
  for (const char *text : {"cuda 0", "Fake 9000", "sm_90", "CUDA driver", "13.0", "cuDNN 8.9.7",
                           "9.0 or newer is needed", "--comm local", "--comm nccl", "NCCL 2.7.8"})
    EXPECT_THAT(result.output, HasSubstr(text));
  // That moves memory of the host.
  EXPECT_THAT(result.output, Not(HasSubstr("--comm mpi")));
}

TEST(DevicesCommand, UnknownTargetsHaveNoPlugin) {
  Result result = run("devices --target abacus", "");
  EXPECT_EQ(result.code, 8);
  EXPECT_THAT(result.output, HasSubstr("libdovetail_abacus.so"));
}

void use(const char *folder) {
  ::setenv("DOVETAIL_CUDA_PATH", (std::string(DOVETAIL_TEST_LIBRARIES) + "/" + folder).c_str(), 1);
}

TEST(Libraries, TooOldNamesBothVersions) {
  use("cudnn-old");
  absl::Status cudnn = CudnnApi::open().status();
  EXPECT_EQ(runtime::exitCodeOf(cudnn), 8);
  EXPECT_THAT(std::string(cudnn.message()), HasSubstr("cuDNN 8.9.7 ("));
  EXPECT_THAT(std::string(cudnn.message()), HasSubstr("is too old: 9.0 or newer is needed"));
  use("libraries-old");
  EXPECT_THAT(std::string(CublasLtApi::open().status().message()), HasSubstr("cuBLASLt 11.5.4 ("));
  use("cufft-old");
  EXPECT_THAT(std::string(CufftApi::open().status().message()), HasSubstr("cuFFT 10.9.20 ("));
  EXPECT_THAT(std::string(CufftApi::open().status().message()), HasSubstr("is too old: 11.0 or newer is needed"));
  use("nccl-old");
  EXPECT_THAT(std::string(NcclApi::open().status().message()), HasSubstr("NCCL 2.7.8 ("));
  EXPECT_THAT(std::string(NcclApi::open().status().message()), HasSubstr("2.18 or newer is needed"));
}

TEST(Libraries, MissingFunctionIsNamed) {
  use("libraries");
  EXPECT_THAT(std::string(CublasLtApi::open().status().message()),
              HasSubstr("lacks the function cublasLtGetStatusString; 12.0 or newer is needed"));
}

TEST(Libraries, PythonPackagesAreFound) {
  // As site-packages has them: nvidia/NAME/lib.
  std::string site = testing::TempDir() + "/dovetail-site", folder = site + "/nvidia/cudnn/lib";
  std::string link = "rm -rf " + site + " && mkdir -p " + folder + " && cp " + DOVETAIL_TEST_LIBRARIES +
                     "/cudnn-old/libcudnn.so.9 " + folder;
  ASSERT_EQ(std::system(link.c_str()), 0);
  ::setenv("DOVETAIL_CUDA_PATH", site.c_str(), 1);
  EXPECT_THAT(std::string(CudnnApi::open().status().message()), HasSubstr(folder + "/libcudnn.so.9"));
}

} // namespace
