//===- Tuning.cpp - Finding the fastest way ------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tuning.h"

#include <optional>

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

namespace {

constexpr int repetitions = 5;

/// Measures the time between two points of a stream.
class Stopwatch {
public:
  Stopwatch(const Context &context, DeviceStream &stream) : context(context), stream(handleOf(stream)) {}
  ~Stopwatch() {
    for (CUevent event : events)
      if (event)
        context.api.cuEventDestroy(event);
  }
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;

  absl::Status create() {
    for (CUevent &event : events)
      if (absl::Status status = context.check(context.api.cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
          !status.ok())
        return status;
    return absl::OkStatus();
  }
  absl::Status start() { return context.check(context.api.cuEventRecord(events[0], stream), "cuEventRecord"); }
  /// Waits, and returns milliseconds since `start`.
  absl::StatusOr<float> stop() {
    float time = 0;
    absl::Status status = context.check(context.api.cuEventRecord(events[1], stream), "cuEventRecord");
    if (status.ok())
      status = context.check(context.api.cuEventSynchronize(events[1]), "cuEventSynchronize");
    if (status.ok())
      status = context.check(context.api.cuEventElapsedTime(&time, events[0], events[1]), "cuEventElapsedTime");
    return status.ok() ? absl::StatusOr<float>(time) : status;
  }

private:
  const Context &context;
  CUstream stream;
  CUevent events[2] = {};
};

} // namespace

absl::StatusOr<FastestWay> dovetail::runtime::cuda::findFastest(const Context &context, DeviceStream &stream,
                                                                size_t count,
                                                                absl::FunctionRef<absl::Status(size_t)> issue) {
  DeviceScope scope(context);
  Stopwatch watch(context, stream);
  if (absl::Status status = watch.create(); !status.ok())
    return status;
  std::optional<size_t> winner;
  float least = 0;
  absl::Status problem;
  std::vector<absl::StatusOr<double>> times;
  for (size_t way = 0; way < count; ++way) {
    absl::Status issued = issue(way); // Libraries load code with the first use.
    if (absl::Status status = watch.start(); !status.ok())
      return status;
    for (int i = 0; issued.ok() && i < repetitions; ++i)
      issued = issue(way);
    absl::StatusOr<float> time = watch.stop();
    if (!time.ok())
      return time.status();
    problem.Update(issued);
    times.push_back(issued.ok() ? absl::StatusOr<double>(*time / repetitions) : issued);
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
