//===- BoxWork.cpp - Copies and combinations on a GPU ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../device/kernels/BoxJobs.h"
#include "Context.h"

#include <algorithm>

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using namespace dovetail::runtime::device;

namespace {

/// A launch of one of the box kernels over a table of jobs in device memory.
class BoxLaunch : public DeviceWork {
public:
  BoxLaunch(std::shared_ptr<Context> context, CUfunction function) : context(std::move(context)), function(function) {}

  /// The kernel reads the table and `more` numbers, and has as much to do as `pieces` blocks do at once.
  absl::Status prepare(const BoxJobs &jobs, std::vector<int64_t> more, int64_t pieces) {
    int64_t bytes = static_cast<int64_t>(jobs.jobs.size() * sizeof(BoxJob));
    absl::StatusOr<std::shared_ptr<std::byte>> memory = context->allocate(bytes);
    if (!memory.ok())
      return memory.status();
    table = *std::move(memory);
    if (absl::Status status = context->upload(table.get(), jobs.jobs.data(), bytes); !status.ok())
      return status;
    numbers = std::move(more);
    numbers.insert(numbers.begin(), static_cast<int64_t>(reinterpret_cast<uintptr_t>(table.get())));
    for (int64_t &number : numbers)
      parameters.push_back(&number);
    sharedBytes = jobs.sharedBytes;
    // Enough to fill the device several times; the kernels' blocks go on to further pieces.
    blocks = static_cast<unsigned>(std::clamp<int64_t>(pieces, 1, context->multiprocessors * int64_t(32)));
    return absl::OkStatus();
  }

  absl::Status issue(DeviceStream &stream) override {
    DeviceScope scope(*context);
    absl::Status status =
        context->check(context->api.cuLaunchKernel(function, blocks, 1, 1, blockThreads, 1, 1, sharedBytes,
                                                   handleOf(stream), parameters.data(), nullptr),
                       "cuLaunchKernel");
    return status.ok() && context->synchronous ? stream.synchronize() : status;
  }

private:
  std::shared_ptr<Context> context;
  CUfunction function;
  std::shared_ptr<std::byte> table;
  unsigned blocks = 1, sharedBytes = 0;
  std::vector<int64_t> numbers;
  std::vector<void *> parameters;
};

/// Few contiguous copies: the copy engines do them.
class ContiguousCopies : public DeviceWork {
public:
  ContiguousCopies(std::shared_ptr<Context> context, std::vector<StridedBox> boxes) : context(std::move(context)) {
    for (const StridedBox &box : boxes)
      if (int64_t bytes = contiguousBytes(box); bytes > 0)
        copies.push_back({box.target, box.source, bytes});
  }

  absl::Status issue(DeviceStream &stream) override {
    DeviceScope scope(*context);
    for (const Copy &copy : copies)
      if (absl::Status status = context->check(context->api.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(copy.target),
                                                                          reinterpret_cast<CUdeviceptr>(copy.source),
                                                                          copy.bytes, handleOf(stream)),
                                               "cuMemcpyAsync");
          !status.ok())
        return status;
    return absl::OkStatus();
  }

private:
  struct Copy {
    std::byte *target;
    const std::byte *source;
    int64_t bytes;
  };

  std::shared_ptr<Context> context;
  std::vector<Copy> copies;
};

bool isEmpty(const StridedBox &box) {
  return std::any_of(box.loops.begin(), box.loops.end(), [](const BoxLoop &loop) { return loop.count <= 0; });
}

/// More copies than this are faster in one launch.
constexpr size_t mostContiguousCopies = 2;

} // namespace

absl::StatusOr<std::unique_ptr<DeviceWork>> dovetail::runtime::cuda::createCopies(std::shared_ptr<Context> context,
                                                                                  std::vector<StridedBox> boxes) {
  boxes.erase(std::remove_if(boxes.begin(), boxes.end(), isEmpty), boxes.end());
  bool contiguous = std::all_of(boxes.begin(), boxes.end(), [](const auto &box) { return contiguousBytes(box) >= 0; });
  if (contiguous && boxes.size() <= mostContiguousCopies)
    return std::make_unique<ContiguousCopies>(std::move(context), std::move(boxes));
  for (const StridedBox &box : boxes)
    for (const std::byte *address : {static_cast<const std::byte *>(box.target), box.source})
      if (absl::Status status = context->checkReach(address); !status.ok())
        return status;
  BoxJobs jobs = BoxJobs::copies(boxes);
  CUfunction function = context->copyBoxes;
  auto launch = std::make_unique<BoxLaunch>(std::move(context), function);
  if (absl::Status status = launch->prepare(jobs, {jobs.tileJobs, jobs.tiles, jobs.chunkJobs(), jobs.chunks},
                                            jobs.tiles + (jobs.chunks + chunksOfBlock - 1) / chunksOfBlock);
      !status.ok())
    return status;
  return launch;
}

absl::StatusOr<std::unique_ptr<DeviceWork>>
dovetail::runtime::cuda::createCombination(std::shared_ptr<Context> context, CombinationDescription description) {
  for (const StridedBox &box : description.boxes)
    if (!isEmpty(box))
      for (const std::byte *address : {static_cast<const std::byte *>(box.target), box.source})
        if (absl::Status status = context->checkReach(address); !status.ok())
          return status;
  BoxJobs jobs = BoxJobs::combinations(description);
  if (jobs.jobs.empty())
    return createCopies(std::move(context), {});
  CUfunction function = context->combineBoxes;
  auto launch = std::make_unique<BoxLaunch>(std::move(context), function);
  if (absl::Status status = launch->prepare(jobs,
                                            {jobs.chunkJobs(), jobs.chunks, static_cast<int64_t>(description.type),
                                             static_cast<int64_t>(description.kind)},
                                            (jobs.chunks + blockThreads - 1) / blockThreads);
      !status.ok())
    return status;
  return launch;
}
