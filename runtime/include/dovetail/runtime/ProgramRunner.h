//===- ProgramRunner.h - Runs a program ------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how to run a program from full tensors to full tensors: all of its ranks as threads of this process, or this
// process as one rank of several.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PROGRAMRUNNER_H
#define DOVETAIL_RUNTIME_PROGRAMRUNNER_H

#include "dovetail/runtime/LaunchEnvironment.h"
#include "dovetail/runtime/Program.h"
#include "dovetail/runtime/Session.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dovetail::runtime {

/// A tensor in memory that is not owned, of the host or of a device: all of it, or what a rank holds.
struct FullTensor {
  void *data = nullptr;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides = {}; ///< In elements; empty means row-major.
  /// DLPack's number of the kind of device whose memory it is, `DeviceInfo::dlpackDevice`; 0: the host's. Nothing may
  /// be writing to it any more when a run begins.
  int device = 0;
};

/// Where inputs come from and outputs go to, box by box. Threads of several ranks call it at once.
class PortParts {
public:
  virtual ~PortParts() = default;
  /// The extents of an input in the run that is about to begin: those of its port, of which dimensions whose lengths
  /// vary may have less; none: those of its port. The same in all processes. Asked for where lengths vary.
  virtual absl::StatusOr<std::vector<int64_t>> shape(size_t /*input*/) { return std::vector<int64_t>(); }
  /// Writes the elements of `box` of input number `input`, row-major, to `elements`.
  virtual absl::Status read(size_t input, const layout::Box &box, std::byte *elements) = 0;
  /// Called for each run, once in each process and before anything is taken: the extents of all outputs, of which boxes
  /// are parts. Of what depends on data or lengths they are what there is.
  virtual absl::Status begin(absl::Span<const std::vector<int64_t>> /*shapes*/) { return absl::OkStatus(); }
  /// Takes those of an output.
  virtual absl::Status write(size_t output, const layout::Box &box, const std::byte *elements) = 0;
  /// How many bytes of what it takes of an output should lie together in a row-major array of all of it, as in a file.
  /// Where a rank is a process and has shorter pieces, ranks exchange them for longer ones first. The same on all of
  /// them.
  virtual int64_t pieceBytes(size_t /*output*/) const { return 0; }
};

/// How all ranks together are to run.
struct RunnerOptions {
  /// Threads in all; they are divided among the ranks, each of which has one at least.
  int threads = 1;
  /// How long one step may take, and a rank may keep others waiting, before the run is given up. On devices what lies
  /// between two decisions about repeats and choices, a whole run without these, is replayed, and counts as one step.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  /// Whether to record when steps begin and end.
  bool trace = false;
  /// Whether to measure the algorithms of a device's libraries when the ranks start, and to take the fastest.
  bool autotune = false;
  bool explain = false; ///< As in `SessionOptions`.
  /// Whether each thread of the ranks stays on one of the processors that the caller's thread may run on. The caller's
  /// own thread is left alone.
  bool pin = false;
  /// The device for all ranks of this process; negative: ranks take turns among those of the machine.
  int device = -1;
  /// What connects ranks: `local`, with all of them in this process, or another transport, such as `nccl`, with a
  /// process for each; see RankGroup.h.
  std::string communicator = "local";
  /// Which rank this process is, if it is one; without, its environment says so.
  std::optional<LaunchEnvironment> process = std::nullopt;
  /// With `mpi`: the communicator whose processes are the ranks, as an `MPI_Fint`; without, all that were started.
  std::optional<int> processes = std::nullopt;
};

/// Runs a program on all of its ranks. Threads and memory are kept between runs. `run` and `measure` may be called from
/// several threads: they happen one after another. What describes the last run must not be read during another.
///
/// Where each process is one rank, all of them make the same calls, with the same full inputs; rank 0 gets the full
/// outputs, and others may give none.
class ProgramRunner {
public:
  /// Starts the ranks and runs the prologue. Errors as those of `Session::create`, from whichever rank fails first.
  static absl::StatusOr<std::unique_ptr<ProgramRunner>> create(std::shared_ptr<const Program> program,
                                                               RunnerOptions options = {});
  /// Stops the ranks. One that hangs is left behind.
  ~ProgramRunner();
  ProgramRunner(const ProgramRunner &) = delete;
  ProgramRunner &operator=(const ProgramRunner &) = delete;

  /// Reads `inputs` and writes `outputs`, in the order of the plan's ports. Those on devices of the program's kind are
  /// not staged: each rank copies its part from or to where it is. With several `steps` the program runs so often,
  /// from the second time on with its own outputs for inputs that are fed back; `outputs` are those of the last one.
  /// An input whose length varies becomes as long as the output was: INVALID_ARGUMENT if it has no room for that.
  /// Errors: INVALID_ARGUMENT, naming the port, when their number, a type or a shape is wrong, or there are steps and
  /// no feedback; otherwise what ended the run, after which no further run is possible.
  absl::Status run(absl::Span<const FullTensor> inputs, absl::Span<const FullTensor> outputs, int64_t steps = 1);

  /// The same with parts of inputs and outputs: each rank of this process asks for what it needs of the former, and
  /// gives what it alone has, or has of others alike, of the latter, so that ranks of all processes together give each
  /// element once. What they ask for and give takes 16 MiB at a time. Errors: those of `parts` end the run, too.
  absl::Status run(PortParts &parts);
  /// The same, but inputs that are fed back are what the last run left for them, and nobody is asked for these. Errors:
  /// INVALID_ARGUMENT, too, if there was none since the runner was created, or since one that failed. The same error
  /// says that an input has no room for the output.
  absl::Status proceed(PortParts &parts);

  /// The same with what the ranks of this process hold: for each of them, in the order of `ranks`, a tensor for each
  /// port, with the extents of the rank's box (`Plan::tensorBox` of the port's tensor). No rank gets elements of
  /// another, nothing is copied elsewhere; where boxes of inputs overlap, they have the same elements, which is up to
  /// the caller. Errors: as above; UNIMPLEMENTED where extents of outputs depend on data.
  absl::Status runLocal(absl::Span<const FullTensor> inputs, absl::Span<const FullTensor> outputs);

  /// The extents that output number `index` had in the last run: those of its port, but for bounded dimensions, of
  /// which there are the first coordinates alone. Before the first run they are the bounds, and so are those that
  /// depend on data after a run of full tensors where `isFirst` does not hold.
  std::vector<int64_t> getOutputShape(size_t index) const;

  /// As `run`, and measures the time from the moment all inputs are in place until the last rank of this process has
  /// finished its steps.
  absl::StatusOr<std::chrono::nanoseconds> measure(absl::Span<const FullTensor> inputs,
                                                   absl::Span<const FullTensor> outputs);
  absl::StatusOr<std::chrono::nanoseconds> measure(PortParts &parts);

  /// With a process for each rank: returns when all have called it, which they do when they need each other no more.
  /// Errors: what ended the run, or a process before it got here.
  absl::Status finish();
  /// With a process for each rank: what each of them gives, by rank; without, what this one does. All call it, between
  /// runs.
  absl::StatusOr<std::vector<std::string>> share(std::string own);

  const Program &getProgram() const;
  /// Those of this process, ascending.
  const std::vector<int> &ranks() const;
  /// Whether the full outputs come to this process.
  bool isFirst() const;
  /// What is noteworthy about the start, such as that weights had to be packed which the artifact has packed for
  /// another machine; empty if nothing is.
  std::string remark() const;
  /// The weights that the ranks of this process have packed, as a section of kind `Packed`.
  std::vector<std::byte> packedImage() const;
  /// What `rank`, one of this process, uses of the machine.
  const SessionStatistics &statistics(int rank) const;
  /// `Session::calls` of `rank`, one of this process.
  const std::vector<CallReport> &calls(int rank) const;
  /// How long the slowest rank of this process took to issue the work of the last run; see Session::issued.
  std::chrono::nanoseconds issueTime() const;
  /// When the steps of the last run began and ended on `rank`; empty without `trace`, and for ranks of other processes
  /// where `isFirst` does not hold. Clocks of other processes are taken to agree at the beginning of the run.
  const std::vector<StepTime> &times(int rank) const;
  /// The share of `rank` in the threads.
  int threadsOf(int rank) const;

private:
  struct State;
  explicit ProgramRunner(std::shared_ptr<State> state);

  std::shared_ptr<State> state;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PROGRAMRUNNER_H
