//===- Fake.h - A device on the fake driver -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_CUDA_FAKE_H
#define DOVETAIL_TEST_CUDA_FAKE_H

#include "FakeDriver.h"

#include "Backend/cuda/Context.h"

#include <cstdlib>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dovetail::test {

/// The folder of a fake library.
inline std::string fakeFolder(const std::string &name) { return std::string(DOVETAIL_TEST_LIBRARIES) + "/" + name; }

/// A test with a device on the fake driver, which is the driver of the whole process.
class FakeDevice : public testing::Test {
protected:
  void SetUp() override {
    ::setenv("DOVETAIL_CUDA_PATH", fakeFolder("driver").c_str(), 1);
    absl::StatusOr<const runtime::cuda::DriverApi *> api = runtime::cuda::driver();
    ASSERT_TRUE(api.ok()) << api.status();
    void *handle = ::dlopen((*api)->path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(handle, nullptr);
    auto *function = reinterpret_cast<FakeDriverLogFunction *>(::dlsym(handle, "fakeDriverLog"));
    ASSERT_NE(function, nullptr) << (*api)->path << " is not the fake driver";
    log = function();
    log->copies = 0;
    log->failure = log->lateFailure = CUDA_SUCCESS;
    log->owner = 0;
    log->clock = log->launchTime = 0;
    auto opened = runtime::cuda::Context::of(0);
    ASSERT_TRUE(opened.ok()) << opened.status();
    context = *opened;
    device = runtime::cuda::createDevice(context, {});
    stream = *device->createStream();
    log->launches = 0;
  }

  FakeDriverLog *log = nullptr;
  std::shared_ptr<runtime::cuda::Context> context;
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<runtime::DeviceStream> stream;
};

} // namespace dovetail::test

#endif // DOVETAIL_TEST_CUDA_FAKE_H
