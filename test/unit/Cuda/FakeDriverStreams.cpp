//===- FakeDriverStreams.cpp - Streams of the fake driver -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Streams, events, captures and graphs of the fake driver: streams do their work at once or record it.
//
//===----------------------------------------------------------------------===//

#include "FakeDriverStreams.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

using namespace dovetail::test;

constinit thread_local bool dovetail::test::captures = false;

namespace {

using Graph = std::vector<std::function<void()>>;

/// What streams do while they are captured.
struct Capture {
  Graph graph;
  std::vector<CUgraphNodeType> kinds;   ///< Of its nodes.
  std::vector<std::set<size_t>> before; ///< For each node of the graph, those that it directly comes after.
  CUstream origin;
  std::thread::id thread; ///< Where it began: it must end there.
  bool isOver = false, isInvalid = false;
};
struct FakeStream {
  std::shared_ptr<Capture> capture; ///< Null or over: what is issued is done at once.
  std::set<size_t> last;            ///< What is captured next comes after these nodes.
};
struct FakeEvent {
  float time = 0;
  std::shared_ptr<Capture> capture; ///< In which it was recorded, if any, and then after which nodes.
  std::set<size_t> last;
};

std::mutex captureMutex;

/// The capture of a stream, if it goes on; null for the default streams. `captureMutex` is held.
std::shared_ptr<Capture> captureOf(CUstream stream) {
  if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
    return nullptr;
  const std::shared_ptr<Capture> &capture = reinterpret_cast<FakeStream *>(stream)->capture;
  return capture && !capture->isOver ? capture : nullptr;
}

} // namespace

CUresult dovetail::test::perform(CUstream stream, std::function<void()> work, CUgraphNodeType kind) {
  if (contexts.empty())
    return CUDA_ERROR_INVALID_CONTEXT;
  {
    std::lock_guard lock(captureMutex);
    if (auto capture = captureOf(stream)) {
      if (capture->isInvalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      auto *fake = reinterpret_cast<FakeStream *>(stream);
      capture->before.push_back(std::exchange(fake->last, {capture->graph.size()}));
      capture->graph.push_back(std::move(work));
      capture->kinds.push_back(kind);
      return theLog.failure;
    }
  }
  work();
  return theLog.failure;
}

extern "C" {

CUresult cuStreamCreate(CUstream *stream, unsigned) {
  *stream = reinterpret_cast<CUstream>(new FakeStream);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  delete reinterpret_cast<FakeStream *>(stream);
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  std::lock_guard lock(captureMutex);
  auto capture = captureOf(stream);
  if (!capture)
    return theLog.lateFailure;
  capture->isInvalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}
CUresult cuStreamQuery(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  std::lock_guard lock(captureMutex);
  auto *fake = reinterpret_cast<FakeStream *>(stream);
  auto *awaited = reinterpret_cast<FakeEvent *>(event);
  const std::shared_ptr<Capture> &other = awaited->capture;
  if (other && other->isOver)
    return CUDA_ERROR_CAPTURED_EVENT;
  if (captureOf(stream) && fake->capture != other) {
    fake->capture->isInvalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (!captureOf(stream))
    fake->last.clear();
  fake->capture = other;
  fake->last.insert(awaited->last.begin(), awaited->last.end());
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  std::lock_guard lock(captureMutex);
  auto *fake = reinterpret_cast<FakeStream *>(stream);
  if (captureOf(stream))
    return CUDA_ERROR_ILLEGAL_STATE;
  fake->capture = std::make_shared<Capture>();
  fake->capture->origin = stream;
  fake->capture->thread = std::this_thread::get_id();
  fake->last.clear();
  captures = true;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  std::lock_guard lock(captureMutex);
  std::shared_ptr<Capture> capture = captureOf(stream);
  if (!capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream)
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  capture->isOver = true;
  captures = false;
  if (capture->isInvalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  // All work must come before what the stream has come to.
  std::set<size_t> joined = reinterpret_cast<FakeStream *>(stream)->last;
  for (size_t node = capture->graph.size(); node-- > 0;)
    if (joined.count(node))
      joined.insert(capture->before[node].begin(), capture->before[node].end());
  if (joined.size() != capture->graph.size())
    return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  *graph = reinterpret_cast<CUgraph>(new Graph(std::move(capture->graph)));
  return CUDA_SUCCESS;
}
// As cuda.h renames it.
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                const CUgraphNode **, const CUgraphEdgeData **, size_t *count) {
  std::lock_guard lock(captureMutex);
  auto capture = captureOf(stream);
  *status = !capture             ? CU_STREAM_CAPTURE_STATUS_NONE
            : capture->isInvalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  *id = 1;
  *count = 0;
  *graph = capture ? reinterpret_cast<CUgraph>(&capture->kinds) : nullptr;
  return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  std::lock_guard lock(captureMutex);
  auto &kinds = *reinterpret_cast<std::vector<CUgraphNodeType> *>(graph);
  for (size_t i = 0; nodes && i < std::min(*count, kinds.size()); ++i)
    nodes[i] = reinterpret_cast<CUgraphNode>(kinds[i] + size_t(1));
  *count = kinds.size();
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
  *type = static_cast<CUgraphNodeType>(reinterpret_cast<size_t>(node) - 1);
  return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  std::lock_guard lock(captureMutex);
  *status = captureOf(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent *event, unsigned) {
  *event = reinterpret_cast<CUevent>(new FakeEvent);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  delete reinterpret_cast<FakeEvent *>(event);
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  std::lock_guard lock(captureMutex);
  auto capture = captureOf(stream);
  *reinterpret_cast<FakeEvent *>(event) = {theLog.clock, capture,
                                           capture ? reinterpret_cast<FakeStream *>(stream)->last : std::set<size_t>()};
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent) { return CUDA_SUCCESS; }
CUresult cuEventQuery(CUevent) { return CUDA_SUCCESS; }
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
  *milliseconds = reinterpret_cast<FakeEvent *>(end)->time - reinterpret_cast<FakeEvent *>(begin)->time;
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiate(CUgraphExec *executable, CUgraph graph, unsigned long long) {
  *executable = reinterpret_cast<CUgraphExec>(new Graph(*reinterpret_cast<Graph *>(graph)));
  ++theLog.graphs;
  return CUDA_SUCCESS;
}
CUresult cuGraphUpload(CUgraphExec, CUstream) { return CUDA_SUCCESS; }
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return perform(stream, [=] {
    for (const auto &work : *reinterpret_cast<Graph *>(executable))
      work();
  });
}
CUresult cuGraphExecDestroy(CUgraphExec executable) {
  delete reinterpret_cast<Graph *>(executable);
  --theLog.graphs;
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  delete reinterpret_cast<Graph *>(graph);
  return CUDA_SUCCESS;
}
}
