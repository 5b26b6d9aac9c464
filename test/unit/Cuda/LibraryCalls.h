//===- LibraryCalls.h - Calls of fake libraries -----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines a plan with a step for each of the fake libraries, and how tests run it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_CUDA_LIBRARYCALLS_H
#define DOVETAIL_TEST_CUDA_LIBRARYCALLS_H

#include "Fake.h"
#include "FakeLibraries.h"

#include "Backend/common/DeviceStaging.h"
#include "Backend/cuda/LibraryCalls.h"

#include "absl/strings/str_join.h"

namespace dovetail::test {

using namespace runtime;
using namespace runtime::cuda;

/// A plan of one rank with a convolution of 3x3, a matrix product and a transform, on the fake driver and libraries.
class LibraryCalls : public FakeDevice {
protected:
  void SetUp() override {
    FakeDevice::SetUp();
    std::string folders;
    for (const char *name : {"driver", "cudnn", "cublaslt", "cufft"})
      folders += (folders.empty() ? "" : ":") + fakeFolder(name);
    ::setenv("DOVETAIL_CUDA_PATH", folders.c_str(), 1);
    handles = std::make_shared<LibraryHandles>(context);
    ASSERT_TRUE(handles->cudnn().ok()) << handles->cudnn().status();
    ASSERT_TRUE(handles->cublasLt().ok()) << handles->cublasLt().status();
    cudnnLog = logOf<FakeCudnnLogFunction>("cudnn/libcudnn.so.9", "fakeCudnnLog");
    blasLog = logOf<FakeCublasLtLogFunction>("cublaslt/libcublasLt.so.13", "fakeCublasLtLog");
    ASSERT_TRUE(cudnnLog && blasLog);
    *cudnnLog = {};
    *blasLog = {};

    plan.mesh = layout::Mesh({{"rank", 1}});
    ConvolutionCall convolution;
    convolution.input = addTensor({1, 4, 8, 8}, {0, 2, 3, 1}, BufferKind::Arena);
    convolution.weights = addTensor({8, 4, 3, 3}, {0, 2, 3, 1}, BufferKind::Constant);
    convolution.output = addTensor({1, 8, 8, 8}, {0, 2, 3, 1}, BufferKind::Arena);
    auto loop = [](int number) { return layout::IndexExpr::loop(number); };
    convolution.loops = {{1, {}}, {8, {}}, {8, {}}, {8, {}}, {4, {}}, {3, {}}, {3, {}}};
    convolution.inputAccess = {loop(0), loop(4), loop(2) + loop(5) - 1, loop(3) + loop(6) - 1};
    convolution.weightsAccess = {loop(1), loop(4), loop(5), loop(6)};
    convolution.form.windows.assign(2, {/*kernel=*/3, /*stride=*/1, /*dilation=*/1, /*pad=*/1, false});
    plan.steps.push_back({"conv", convolution, CallMemory{{0}, {1024}, {0}, {0}}});
    MatMulCall product;
    product.a = addTensor({6, 5}, {0, 1}, BufferKind::Arena);
    product.b = addTensor({5, 7}, {0, 1}, BufferKind::Constant);
    product.output = addTensor({6, 7}, {0, 1}, BufferKind::Arena);
    product.loops = {{6, {}}, {7, {}}, {5, {}}};
    product.aAccess = {loop(0), loop(2)};
    product.bAccess = {loop(2), loop(1)};
    plan.steps.push_back({"product", product, CallMemory{{0}, {1024}, {0}, {0}}});
    // Along the dimension before the last, of 6 lines in each of 10 planes.
    TransformCall transform;
    transform.input = addTensor({10, 8, 6, 2}, {0, 1, 2, 3}, BufferKind::Arena);
    transform.output = addTensor({10, 8, 6, 2}, {0, 1, 2, 3}, BufferKind::Arena);
    transform.loops = {{10, {}}, {8, {}}, {6, {}}, {2, {}}, {8, {}}, {2, {}}};
    transform.inputAccess = {loop(0), loop(4), loop(2), loop(5)};
    transform.form = {/*axis=*/1, /*length=*/8};
    plan.steps.push_back({"transform", transform, CallMemory{{0}, {60000}, {0}, {0}}});
    allocate(ElementType::F32);
  }

  /// Gives all tensors this type.
  void allocate(ElementType type) {
    memory.buffers.clear();
    owned.clear();
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      plan.buffers[i].type = type;
      memory.buffers.push_back(MemoryView::packed(type, plan.bufferBox(i, 0), plan.buffers[i].format));
      owned.push_back(*context->allocate(memory.buffers[i].bytes()));
      memory.buffers[i].data = owned[i].get();
    }
  }

  uint32_t addTensor(std::vector<int64_t> shape, std::vector<int> order, BufferKind kind) {
    auto number = static_cast<uint32_t>(plan.buffers.size());
    layout::Sharding sharding = layout::Sharding::replicated(shape.size());
    plan.buffers.push_back({kind, ElementType::F32, std::move(shape), sharding, {std::move(order)}});
    plan.tensors.push_back({"", number, sharding});
    return number;
  }

  template <typename Function> auto logOf(const char *file, const char *name) -> decltype(std::declval<Function>()()) {
    void *handle = ::dlopen(fakeFolder(file).c_str(), RTLD_NOW | RTLD_NOLOAD);
    auto *function = handle ? reinterpret_cast<Function *>(::dlsym(handle, name)) : nullptr;
    return function ? function() : nullptr;
  }

  /// Prepares a step as a session does, and runs it once.
  absl::Status run(size_t step, LibraryCallOptions options = {}) {
    LibraryCallOr call = createLibraryCall(handles, memory, plan.steps[step], options);
    if (!call.ok())
      return call.status();
    absl::StatusOr<CallBytes> needed = stagedCallBytes(memory, plan.steps[step], options.inPrologue);
    if (!needed.ok())
      return needed.status();
    bytes = *needed;
    // The arena's offsets are multiples of 64.
    std::shared_ptr<std::byte> scratch = *context->allocate(bytes.scratch + 64),
                               packed = *context->allocate(bytes.packed);
    absl::Status status = (*call)->bind(scratch.get() + 64, packed.get());
    if (status.ok())
      status = (*call)->pack(*stream);
    report = (*call)->report();
    cudnnLog->executions.clear();
    blasLog->executions.clear();
    return status.ok() ? (*call)->issue(*stream) : status;
  }

  /// The elements of a buffer, which are f32.
  float *values(int64_t buffer) { return reinterpret_cast<float *>(owned[buffer].get()); }
  /// Fills all buffers with small whole numbers, whose sums of products are exact.
  void fillBuffers() {
    for (size_t i = 0; i < owned.size(); ++i)
      for (int64_t j = 0; j < memory.buffers[i].bytes() / 4; ++j)
        values(static_cast<int64_t>(i))[j] = static_cast<float>((j * 7 + static_cast<int64_t>(i) * 5) % 13) - 6;
  }

  /// Gives the convolution a bias, a tensor of the result's shape, and Relu.
  void addBiasAndResidual() {
    uint32_t bias = addTensor({8, 1, 1}, {0, 1, 2}, BufferKind::Constant),
             residual = addTensor({1, 8, 8, 8}, {0, 2, 3, 1}, BufferKind::Arena);
    std::get<ConvolutionCall>(plan.steps[convolution].action).postOps = {
        {PostOpKind::AddTensor, bias}, {PostOpKind::AddTensor, residual}, {PostOpKind::Relu}};
    allocate(ElementType::F32);
  }

  /// Makes the convolution a transposed one, of stride 1.
  void transpose() {
    auto &call = std::get<ConvolutionCall>(plan.steps[convolution].action);
    auto loop = [](int number) { return layout::IndexExpr::loop(number); };
    call.weights = addTensor({4, 8, 3, 3}, {0, 2, 3, 1}, BufferKind::Constant);
    call.inputAccess = {loop(0), loop(4), loop(2) - loop(5) + 1, loop(3) - loop(6) + 1};
    call.weightsAccess = {loop(4), loop(1), loop(5), loop(6)};
    call.form.isTransposed = true;
    call.form.windows.assign(2, {/*kernel=*/3, /*stride=*/1, /*dilation=*/1, /*pad=*/1, true});
    allocate(ElementType::F32);
  }

  static constexpr size_t convolution = 0, product = 1, transform = 2;
  std::shared_ptr<LibraryHandles> handles;
  FakeCudnnLog *cudnnLog = nullptr;
  FakeCublasLtLog *blasLog = nullptr;
  Plan plan;
  RankMemory memory{plan, 0};
  std::vector<std::shared_ptr<std::byte>> owned;
  CallBytes bytes;
  LibraryCallReport report;
};

/// The candidates of a report, one a line: source, engine, settings, notes, layout, fused, workspace, status, reason.
inline std::vector<std::string> linesOf(const LibraryCallReport &report) {
  std::vector<std::string> lines;
  for (const CallCandidate &candidate : report.candidates) {
    std::string knobs;
    for (const auto &[name, value] : candidate.knobs)
      absl::StrAppend(&knobs, knobs.empty() ? "" : ",", name, "=", value);
    lines.push_back(absl::StrCat(candidate.source, " ", candidate.engine, " [", knobs, "] [",
                                 absl::StrJoin(candidate.notes, ","), "] ", candidate.layout, " ", candidate.fused, " ",
                                 candidate.workspaceBytes, " ", statusName(candidate.status),
                                 candidate.reason.empty() ? "" : ": ", candidate.reason));
  }
  return lines;
}

} // namespace dovetail::test

#endif // DOVETAIL_TEST_CUDA_LIBRARYCALLS_H
