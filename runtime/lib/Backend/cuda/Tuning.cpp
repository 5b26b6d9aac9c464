//===- Tuning.cpp - Finding the fastest way ------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tuning.h"
#include "Staging.h"

#include <algorithm>
#include <array>
#include <optional>

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

namespace {

constexpr int repetitions = 5;

/// Times between pairs of points of a stream.
class Stopwatches {
public:
  Stopwatches(const Context &context, DeviceStream &stream) : context(context), stream(handleOf(stream)) {}
  ~Stopwatches() {
    for (CUevent event : events)
      if (event)
        context.api.cuEventDestroy(event);
  }
  Stopwatches(const Stopwatches &) = delete;
  Stopwatches &operator=(const Stopwatches &) = delete;

  absl::Status create() {
    for (CUevent &event : events)
      if (absl::Status status = context.check(context.api.cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
          !status.ok())
        return status;
    return absl::OkStatus();
  }
  absl::Status start(int number) { return record(events[2 * number]); }
  absl::Status stop(int number) { return record(events[2 * number + 1]); }
  /// Waits, and returns the median of all, in milliseconds.
  absl::StatusOr<float> median() {
    std::array<float, repetitions> times = {};
    for (int number = 0; number < repetitions; ++number) {
      absl::Status status = context.check(context.api.cuEventSynchronize(events[2 * number + 1]), "cuEventSynchronize");
      if (status.ok())
        status =
            context.check(context.api.cuEventElapsedTime(&times[number], events[2 * number], events[2 * number + 1]),
                          "cuEventElapsedTime");
      if (!status.ok())
        return status;
    }
    std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
    return times[repetitions / 2];
  }

private:
  absl::Status record(CUevent event) {
    return context.check(context.api.cuEventRecord(event, stream), "cuEventRecord");
  }

  const Context &context;
  CUstream stream;
  std::array<CUevent, 2 * repetitions> events = {};
};

/// Writes over the device's cache. In a model, weights are not there when their call begins. Meanwhile the host issues
/// what is measured, so that its own time does not count.
class Flush {
public:
  explicit Flush(const Context &context) : context(context) {
    absl::StatusOr<int> cache = context.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    if (!cache.ok())
      return;
    // Where there is no memory for it, caches stay warm.
    if (absl::StatusOr<std::shared_ptr<std::byte>> found = context.allocate(2 * int64_t(*cache)); found.ok()) {
      memory = *std::move(found);
      bytes = 2 * int64_t(*cache);
    }
  }

  absl::Status issue(DeviceStream &stream) const {
    if (!memory)
      return absl::OkStatus();
    auto address = reinterpret_cast<CUdeviceptr>(memory.get());
    return context.check(context.api.cuMemsetD8Async(address, 0, bytes, handleOf(stream)), "cuMemsetD8Async");
  }

private:
  const Context &context;
  std::shared_ptr<std::byte> memory;
  int64_t bytes = 0;
};

} // namespace

absl::StatusOr<FastestWay> dovetail::runtime::cuda::findFastest(const Context &context, DeviceStream &stream,
                                                                size_t count,
                                                                absl::FunctionRef<absl::Status(size_t)> issue) {
  DeviceScope scope(context);
  Stopwatches watches(context, stream);
  if (absl::Status status = watches.create(); !status.ok())
    return status;
  Flush flush(context);
  std::optional<size_t> winner;
  float least = 0;
  absl::Status problem;
  std::vector<absl::StatusOr<double>> times;
  for (size_t way = 0; way < count; ++way) {
    absl::Status issued = issue(way); // Libraries load code with the first use.
    for (int number = 0; number < repetitions; ++number) {
      absl::Status status = flush.issue(stream);
      if (status.ok())
        status = watches.start(number);
      if (status.ok() && issued.ok())
        issued = issue(way);
      if (status.ok())
        status = watches.stop(number);
      if (!status.ok())
        return status;
    }
    absl::StatusOr<float> time = watches.median();
    if (!time.ok())
      return time.status();
    problem.Update(issued);
    times.push_back(issued.ok() ? absl::StatusOr<double>(*time) : issued);
    if (issued.ok() && (!winner || *time < least)) {
      winner = way;
      least = *time;
    }
  }
  if (!winner)
    return problem;
  return FastestWay{*winner, std::move(times)};
}

void dovetail::runtime::cuda::noteTimes(const FastestWay &fastest, absl::Span<CallCandidate *const> candidates) {
  for (size_t way = 0; way < candidates.size(); ++way) {
    CallCandidate &candidate = *candidates[way];
    const absl::StatusOr<double> &time = fastest.milliseconds[way];
    candidate.status = !time.ok()              ? CallCandidate::Status::Failed
                       : way == fastest.number ? CallCandidate::Status::Chosen
                                               : CallCandidate::Status::Usable;
    if (time.ok())
      candidate.milliseconds = *time;
    else
      candidate.reason = std::string(time.status().message());
  }
}
