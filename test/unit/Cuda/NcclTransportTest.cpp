//===- NcclTransportTest.cpp - The end of communicators of NCCL -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fake.h"

#include "dovetail/runtime/Transport.h"

#include <future>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

/// A rank that is alone, with the imitated library.
class NcclTransport : public test::FakeDevice {
protected:
  void SetUp() override {
    FakeDevice::SetUp();
    ::setenv("DOVETAIL_CUDA_PATH", (test::fakeFolder("driver") + ":" + test::fakeFolder("nccl")).c_str(), 1);
    void *handle = ::dlopen(DOVETAIL_TEST_TRANSPORT, RTLD_NOW);
    ASSERT_NE(handle, nullptr) << ::dlerror();
    const auto *plugin = reinterpret_cast<const TransportPlugin *(*)()>(::dlsym(handle, transportPluginSymbol))();
    absl::StatusOr<std::string> name = plugin->nameGroup();
    ASSERT_TRUE(name.ok()) << name.status();
    absl::StatusOr<std::unique_ptr<Transport>> joined = plugin->joinGroup(*name, {0, 1, context});
    ASSERT_TRUE(joined.ok()) << joined.status();
    transport = *std::move(joined);
    memory = *context->allocate(128);
  }

  std::unique_ptr<Transport> transport;
  std::shared_ptr<std::byte> memory;
};

/// The end of a communicator takes as long as there are graphs with calls of it. Meanwhile others who call it are told,
/// or they would never come to free their graphs.
TEST_F(NcclTransport, CallsFailWhileItEnds) {
  absl::StatusOr<std::unique_ptr<DeviceWork>> work =
      transport->prepareCollective({layout::ExchangeKind::AllReduce, layout::ReductionKind::Sum, ElementType::F32, 4,
                                    memory.get(), memory.get() + 64});
  ASSERT_TRUE(work.ok()) << work.status();
  ASSERT_TRUE((*work)->issue(*stream).ok());
  ASSERT_TRUE(device->beginCapture(*stream).ok());
  ASSERT_TRUE((*work)->issue(*stream).ok());
  absl::StatusOr<std::unique_ptr<DeviceWork>> graph = device->endCapture(*stream);
  ASSERT_TRUE(graph.ok()) << graph.status();

  std::future<void> end = std::async(std::launch::async, [&] { transport->abort(); });
  EXPECT_EQ(end.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  std::future<absl::Status> call = std::async(std::launch::async, [&] { return (*work)->issue(*stream); });
  EXPECT_EQ(call.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  graph->reset();
  EXPECT_EQ(call.get().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(end.wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

} // namespace
