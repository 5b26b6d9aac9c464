//===- CudaDevice.cpp - Devices, streams and memory on CUDA ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"
#include "LibraryCalls.h"

#include "absl/strings/str_cat.h"

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

namespace {

class Memory : public DeviceMemory {
public:
  Memory(std::shared_ptr<std::byte> owner, int64_t size) : owner(std::move(owner)) {
    address = this->owner.get();
    bytes = size;
  }

private:
  std::shared_ptr<std::byte> owner;
};

class PinnedMemory : public DeviceMemory {
public:
  explicit PinnedMemory(std::shared_ptr<Context> context) : context(std::move(context)) {}
  ~PinnedMemory() override {
    DeviceScope scope(*context);
    if (address)
      context->api.cuMemFreeHost(address);
  }

  absl::Status allocate(int64_t size) {
    bytes = size;
    if (size <= 0)
      return absl::OkStatus();
    DeviceScope scope(*context);
    void *memory = nullptr;
    absl::Status status =
        context->check(context->api.cuMemHostAlloc(&memory, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                       "cuMemHostAlloc");
    address = static_cast<std::byte *>(memory);
    return status;
  }

private:
  std::shared_ptr<Context> context;
};

class Stream : public DeviceStream {
public:
  Stream(std::shared_ptr<Context> context, CUstream stream) : context(std::move(context)), stream(stream) {}
  ~Stream() override {
    DeviceScope scope(*context);
    context->api.cuStreamDestroy(stream);
  }

  void *nativeHandle() const override { return stream; }
  absl::Status call(HostTask &) override {
    return absl::UnimplementedError(absl::StrCat(context->label(), " keeps its memory where the host cannot reach it"));
  }
  absl::Status wait(const DeviceEvent &event) override;
  absl::Status synchronize() override {
    DeviceScope scope(*context);
    absl::Status status = context->check(context->api.cuStreamSynchronize(stream), "cuStreamSynchronize");
    if (status.ok() || context->synchronous)
      return status;
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), "; with DOVETAIL_CUDA_SYNCHRONOUS=1 the message of a second run "
                                                       "names the step at fault"));
  }

private:
  std::shared_ptr<Context> context;
  CUstream stream;
};

class Event : public DeviceEvent {
public:
  Event(std::shared_ptr<Context> context, CUevent event) : event(event), context(std::move(context)) {}
  ~Event() override {
    DeviceScope scope(*context);
    context->api.cuEventDestroy(event);
  }
  absl::Status record(DeviceStream &stream) override {
    DeviceScope scope(*context);
    return context->check(context->api.cuEventRecord(event, handleOf(stream)), "cuEventRecord");
  }

  const CUevent event;

private:
  std::shared_ptr<Context> context;
};

absl::Status Stream::wait(const DeviceEvent &event) {
  DeviceScope scope(*context);
  return context->check(context->api.cuStreamWaitEvent(stream, static_cast<const Event &>(event).event, 0),
                        "cuStreamWaitEvent");
}

/// A captured graph.
class Graph : public DeviceWork {
public:
  Graph(std::shared_ptr<Context> context, CUgraphExec graph) : context(std::move(context)), graph(graph) {}
  ~Graph() override {
    DeviceScope scope(*context);
    context->api.cuGraphExecDestroy(graph);
  }
  absl::Status issue(DeviceStream &stream) override {
    DeviceScope scope(*context);
    return context->check(context->api.cuGraphLaunch(graph, handleOf(stream)), "cuGraphLaunch");
  }

private:
  std::shared_ptr<Context> context;
  CUgraphExec graph;
};

class CudaDevice : public Device {
public:
  CudaDevice(std::shared_ptr<Context> context, DeviceInfo info)
      : context(context), libraries(std::make_shared<LibraryHandles>(context)), deviceInfo(std::move(info)) {}

  const DeviceInfo &info() const override { return deviceInfo; }

  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate(int64_t bytes) override {
    absl::StatusOr<std::shared_ptr<std::byte>> memory = context->allocate(bytes);
    if (!memory.ok())
      return memory.status();
    return std::make_unique<Memory>(*std::move(memory), bytes);
  }

  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocatePinned(int64_t bytes) override {
    auto memory = std::make_unique<PinnedMemory>(context);
    if (absl::Status status = memory->allocate(bytes); !status.ok())
      return status;
    return memory;
  }

  absl::Status copyToDevice(std::byte *device, const std::byte *host, int64_t bytes) override {
    return context->upload(device, host, bytes);
  }

  absl::Status copyToHost(std::byte *host, const std::byte *device, int64_t bytes) override {
    if (bytes <= 0)
      return absl::OkStatus();
    DeviceScope scope(*context);
    return context->check(context->api.cuMemcpyDtoH(host, reinterpret_cast<CUdeviceptr>(device), bytes),
                          "cuMemcpyDtoH");
  }

  absl::StatusOr<std::unique_ptr<DeviceStream>> createStream() override {
    DeviceScope scope(*context);
    CUstream stream = nullptr;
    if (absl::Status status =
            context->check(context->api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        !status.ok())
      return status;
    return std::make_unique<Stream>(context, stream);
  }

  absl::StatusOr<std::unique_ptr<DeviceEvent>> createEvent() override {
    DeviceScope scope(*context);
    CUevent event = nullptr;
    if (absl::Status status =
            context->check(context->api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
        !status.ok())
      return status;
    return std::make_unique<Event>(context, event);
  }

  absl::StatusOr<std::unique_ptr<DeviceCode>> loadCode(absl::Span<const CodeImage> images) override {
    return createCode(context, images);
  }
  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareCopies(std::vector<StridedBox> boxes) override {
    return createCopies(context, std::move(boxes));
  }
  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareCombination(CombinationDescription description) override {
    return createCombination(context, std::move(description));
  }
  absl::StatusOr<std::unique_ptr<DeviceLibraryCall>> prepareLibraryCall(const RankMemory &memory, const StepInfo &step,
                                                                        LibraryCallOptions options) override {
    return createLibraryCall(libraries, memory, step, options);
  }

  absl::Status beginCapture(DeviceStream &stream) override {
    DeviceScope scope(*context);
    // Other threads, of other sessions, may allocate meanwhile.
    return context->check(context->api.cuStreamBeginCapture(handleOf(stream), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                          "cuStreamBeginCapture");
  }

  absl::StatusOr<std::unique_ptr<DeviceWork>> endCapture(DeviceStream &stream) override {
    DeviceScope scope(*context);
    CUgraph graph = nullptr;
    if (absl::Status status =
            context->check(context->api.cuStreamEndCapture(handleOf(stream), &graph), "cuStreamEndCapture");
        !status.ok())
      return status;
    CUgraphExec executable = nullptr;
    absl::Status status = context->check(context->api.cuGraphInstantiate(&executable, graph, 0), "cuGraphInstantiate");
    context->api.cuGraphDestroy(graph);
    if (!status.ok())
      return status;
    auto work = std::make_unique<Graph>(context, executable);
    if (absl::Status status = context->check(context->api.cuGraphUpload(executable, handleOf(stream)), "cuGraphUpload");
        !status.ok())
      return status;
    return work;
  }

  absl::StatusOr<std::optional<GraphNodes>> recordedNodes(DeviceStream &stream) override;

private:
  std::shared_ptr<Context> context;
  std::shared_ptr<LibraryHandles> libraries;
  DeviceInfo deviceInfo;
};

absl::StatusOr<std::optional<GraphNodes>> CudaDevice::recordedNodes(DeviceStream &stream) {
  const DriverApi &api = context->api;
  if (!api.cuStreamGetCaptureInfo || !api.cuGraphGetNodes || !api.cuGraphNodeGetType)
    return std::nullopt;
  DeviceScope scope(*context);
  CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode *dependencies = nullptr;
  const CUgraphEdgeData *edges = nullptr;
  size_t count = 0;
  absl::Status status =
      context->check(api.cuStreamGetCaptureInfo(handleOf(stream), &state, &id, &graph, &dependencies, &edges, &count),
                     "cuStreamGetCaptureInfo");
  if (!status.ok())
    return status;
  if (state != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return std::nullopt;
  count = 0;
  status = context->check(api.cuGraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes");
  std::vector<CUgraphNode> nodes(count);
  if (status.ok() && count > 0)
    status = context->check(api.cuGraphGetNodes(graph, nodes.data(), &count), "cuGraphGetNodes");
  GraphNodes result;
  for (size_t i = 0; status.ok() && i < count; ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    status = context->check(api.cuGraphNodeGetType(nodes[i], &type), "cuGraphNodeGetType");
    (type == CU_GRAPH_NODE_TYPE_KERNEL   ? result.kernels
     : type == CU_GRAPH_NODE_TYPE_MEMCPY ? result.copies
     : type == CU_GRAPH_NODE_TYPE_MEMSET ? result.fills
                                         : result.others) += 1;
  }
  if (!status.ok())
    return status;
  return result;
}

} // namespace

std::unique_ptr<Device> dovetail::runtime::cuda::createDevice(std::shared_ptr<Context> context, DeviceInfo info) {
  return std::make_unique<CudaDevice>(std::move(context), std::move(info));
}
