//===- FakeNccl.cpp - NCCL for tests -------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stands in for libnccl.so.2: ranks are processes of one machine, connected by sockets, and work is done in the streams
// of the fake driver. When a rank is lost, what waits for it waits until the communicator is aborted. That waits for
// all work in progress, which may be another communicator's, and until nobody has graphs with calls of it any more.
//
// FAKE_NCCL_ERROR_AFTER=n: there is an asynchronous error after n calls. FAKE_NCCL_DIES: the process is lost in the
// next call. FAKE_NCCL_ENDS_SLOWLY: an abort takes half a second more.
//
//===----------------------------------------------------------------------===//

#include "FakeNccl.h"
#include "FakeDriver.h"
#include "FakeStream.h"

#include "Transport/sockets/SocketMesh.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <nccl.h>
#include <thread>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::runtime;
using dovetail::runtime::sockets::SocketMesh;

struct ncclComm {
  std::string name;
  std::unique_ptr<SocketMesh> mesh;
  std::atomic<bool> isAborted = false;
  std::atomic<bool> isRecorded = false; ///< In a graph.
  std::atomic<int> calls = 0;
  int splits = 0;
};

namespace {

FakeNcclLog theLog;

/// What is done between `ncclGroupStart` and `ncclGroupEnd`.
struct Pending {
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Message> sends, receives;
};
thread_local Pending pending;

std::atomic<int> inProgress = 0; ///< Calls of all communicators.

/// The function of the fake driver, which is loaded.
template <typename Function> Function *driverFunction(const char *name) {
  void *driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver ? reinterpret_cast<Function *>(::dlsym(driver, name)) : nullptr;
}

bool isRecording(cudaStream_t stream) {
  static auto *ask = driverFunction<decltype(::cuStreamIsCapturing)>("cuStreamIsCapturing");
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return ask && ask(reinterpret_cast<CUstream>(stream), &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/// Graphs of this process.
int countGraphs() {
  static auto *log = driverFunction<FakeDriverLogFunction>("fakeDriverLog");
  return log ? log()->graphs.load() : 0;
}

int64_t sizeOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32:
    return 4;
  default:
    return 8;
  }
}

ncclResult_t enqueue(ncclComm_t communicator, cudaStream_t stream, std::function<absl::Status()> work) {
  if (isRecording(stream))
    communicator->isRecorded = true;
  auto call = [communicator, work = std::move(work)] {
    ++communicator->calls;
    ++inProgress;
    if (std::getenv("FAKE_NCCL_DIES")) {
      // The others wait for it by then.
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      ::kill(::getpid(), SIGKILL);
    }
    if (!work().ok())
      while (!communicator->isAborted)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --inProgress;
  };
  return ::enqueue(stream, call) ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t collective(layout::ExchangeKind kind, const void *source, void *target, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  ++theLog.collectives;
  ElementType element;
  switch (type) {
  case ncclFloat32:
    element = ElementType::F32;
    break;
  case ncclFloat64:
    element = ElementType::F64;
    break;
  case ncclFloat16:
    element = ElementType::F16;
    break;
  case ncclBfloat16:
    element = ElementType::BF16;
    break;
  case ncclInt32:
    element = ElementType::I32;
    break;
  case ncclInt64:
    element = ElementType::I64;
    break;
  case ncclInt8:
    element = ElementType::I8;
    break;
  default:
    return ncclInvalidArgument;
  }
  Collective what{kind,
                  operation == ncclSum    ? layout::ReductionKind::Sum
                  : operation == ncclProd ? layout::ReductionKind::Prod
                  : operation == ncclMax  ? layout::ReductionKind::Max
                                          : layout::ReductionKind::Min,
                  element,
                  static_cast<int64_t>(count),
                  static_cast<const std::byte *>(source),
                  static_cast<std::byte *>(target)};
  return enqueue(communicator, stream, [communicator, what] { return communicator->mesh->perform(what); });
}

ncclResult_t join(ncclComm_t *communicator, const std::string &name, int rank, int size) {
  auto mesh = SocketMesh::join(name, rank, size);
  if (!mesh.ok())
    return ncclSystemError;
  *communicator = new ncclComm;
  (*communicator)->name = name;
  (*communicator)->mesh = *std::move(mesh);
  ++theLog.communicators;
  return ncclSuccess;
}

} // namespace

extern "C" {

FakeNcclLog *fakeNcclLog() { return &theLog; }

ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  std::strcpy(id->internal, SocketMesh::newName().c_str());
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "a fake error";
}
const char *ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclCommInitRank(ncclComm_t *communicator, int size, ncclUniqueId id, int rank) {
  return join(communicator, id.internal, rank, size);
}
ncclResult_t ncclCommSplit(ncclComm_t world, int color, int, ncclComm_t *part, ncclConfig_t *) {
  ++theLog.splits;
  std::vector<int> colors(world->mesh->size());
  auto *bytes = reinterpret_cast<std::byte *>(colors.data());
  std::vector<Message> sends, receives;
  for (int peer = 0; peer < world->mesh->size(); ++peer)
    if (peer != world->mesh->rank()) {
      sends.push_back({peer, reinterpret_cast<std::byte *>(&color), sizeof(int)});
      receives.push_back({peer, bytes + peer * sizeof(int), sizeof(int)});
    }
  if (!world->mesh->exchange(sends, receives).ok())
    return ncclRemoteError;
  colors[world->mesh->rank()] = color;
  *part = nullptr;
  std::string name = world->name + "-" + std::to_string(++world->splits) + "-" + std::to_string(color);
  if (color == NCCL_SPLIT_NOCOLOR)
    return ncclSuccess;
  int before = 0, size = 0;
  for (int peer = 0; peer < world->mesh->size(); ++peer)
    if (colors[peer] == color) {
      ++size;
      before += peer < world->mesh->rank();
    }
  return join(part, name, before, size);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t *error) {
  const char *limit = std::getenv("FAKE_NCCL_ERROR_AFTER");
  *error = limit && communicator->calls >= std::atoi(limit) ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  communicator->isAborted = true;
  communicator->mesh->shutDown();
  // Memory of the device is freed, which NCCL's kernels must have left.
  while (inProgress > 0 || (communicator->isRecorded && countGraphs() > 0))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (std::getenv("FAKE_NCCL_ENDS_SLOWLY"))
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  --theLog.communicators;
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  delete communicator;
  --theLog.communicators;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  pending = {};
  return ncclSuccess;
}
ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  pending.communicator = communicator;
  pending.stream = stream;
  pending.sends.push_back(
      {peer, static_cast<std::byte *>(const_cast<void *>(data)), static_cast<int64_t>(count) * sizeOf(type)});
  return ncclSuccess;
}
ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  pending.communicator = communicator;
  pending.stream = stream;
  pending.receives.push_back({peer, static_cast<std::byte *>(data), static_cast<int64_t>(count) * sizeOf(type)});
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (!pending.communicator)
    return ncclSuccess;
  ++theLog.groups;
  return enqueue(pending.communicator, pending.stream,
                 [own = pending] { return own.communicator->mesh->exchange(own.sends, own.receives); });
}

ncclResult_t ncclAllReduce(const void *source, void *target, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
  return collective(layout::ExchangeKind::AllReduce, source, target, count, type, operation, communicator, stream);
}
ncclResult_t ncclReduceScatter(const void *source, void *target, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  return collective(layout::ExchangeKind::ReduceScatter, source, target, count, type, operation, communicator, stream);
}
ncclResult_t ncclAllGather(const void *source, void *target, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
  return collective(layout::ExchangeKind::AllGather, source, target, count, type, ncclSum, communicator, stream);
}
}
