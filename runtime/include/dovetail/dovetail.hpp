//===- dovetail.hpp - C++ face of the C interface -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines classes over dovetail.h, which need neither the runtime's own headers nor its compiler. Errors are exceptions
// of type dovetail::Error.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DOVETAIL_HPP
#define DOVETAIL_DOVETAIL_HPP

#include "dovetail/dovetail.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dovetail {

/// What failed, with the message of the library; `status()` is an exit code of the tools.
class Error : public std::runtime_error {
public:
  Error(dovetail_status status, const std::string &message) : std::runtime_error(message), code(status) {}
  dovetail_status status() const { return code; }

private:
  dovetail_status code;
};

namespace detail {
inline void check(dovetail_status status) {
  if (status != DOVETAIL_OK)
    throw Error(status, dovetail_last_error());
}
} // namespace detail

/// An input or output of a program.
struct Port {
  std::string name;
  DLDataType type;
  std::vector<int64_t> shape;

  /// Number of bytes of the full tensor.
  size_t bytes() const {
    size_t size = type.bits / 8;
    for (int64_t extent : shape)
      size *= static_cast<size_t>(extent);
    return size;
  }
  /// Row-major memory at `data`, on a device if it is one's, as a tensor for `Runner::run`. The tensor refers to this
  /// port's shape.
  DLTensor tensor(void *data, DLDevice device = {kDLCPU, 0}) {
    DLTensor result = {};
    result.data = data;
    result.device = device;
    result.ndim = static_cast<int>(shape.size());
    result.dtype = type;
    result.shape = shape.data();
    return result;
  }
};

/// What a rank holds of an input or output: in each dimension as many elements as `extents` says, from that of
/// `offsets` on.
struct Part {
  std::vector<int64_t> offsets, extents;
};

/// A compiled program. Thread-safe.
class Program {
public:
  /// Loads and verifies the artifact at `path`. Without `checkWeights`, runners verify weights, each of them those that
  /// its ranks read: for processes that are one rank of many.
  explicit Program(const std::string &path, bool checkWeights = true) {
    dovetail_program *raw = nullptr;
    detail::check((checkWeights ? dovetail_program_load : dovetail_program_open)(path.c_str(), &raw));
    handle.reset(raw);
  }
  /// The same for an artifact in memory, which is copied.
  Program(const void *bytes, size_t size) {
    dovetail_program *raw = nullptr;
    detail::check(dovetail_program_load_bytes(bytes, size, &raw));
    handle.reset(raw);
  }

  std::string model() const { return dovetail_program_model(handle.get()); }
  std::string target() const { return dovetail_program_target(handle.get()); }
  /// The names and sizes of the mesh's axes, major to minor.
  std::vector<std::pair<std::string, int>> mesh() const {
    std::vector<std::pair<std::string, int>> result(dovetail_program_num_axes(handle.get()));
    for (size_t i = 0; i < result.size(); ++i) {
      const char *name;
      int32_t size;
      detail::check(dovetail_program_axis(handle.get(), i, &name, &size));
      result[i] = {name, size};
    }
    return result;
  }
  int numRanks() const { return dovetail_program_num_ranks(handle.get()); }
  std::vector<Port> inputs() const { return ports(dovetail_program_num_inputs, dovetail_program_input); }
  std::vector<Port> outputs() const { return ports(dovetail_program_num_outputs, dovetail_program_output); }
  /// What `rank` holds of input or output number `index`.
  Part inputPart(size_t index, int rank) const { return part(inputs(), dovetail_program_input_part, index, rank); }
  Part outputPart(size_t index, int rank) const { return part(outputs(), dovetail_program_output_part, index, rank); }
  /// The handle for the C interface; it belongs to this object.
  const dovetail_program *get() const { return handle.get(); }

private:
  std::vector<Port> ports(size_t (*count)(const dovetail_program *),
                          dovetail_status (*describe)(const dovetail_program *, size_t, dovetail_port *)) const {
    std::vector<Port> result;
    for (size_t i = 0, n = count(handle.get()); i < n; ++i) {
      dovetail_port port = {};
      port.struct_size = sizeof(port);
      detail::check(describe(handle.get(), i, &port));
      result.push_back({port.name, port.type, std::vector<int64_t>(port.shape, port.shape + port.ndim)});
    }
    return result;
  }

  Part part(const std::vector<Port> &ports,
            dovetail_status (*describe)(const dovetail_program *, size_t, int32_t, int64_t *, int64_t *), size_t index,
            int rank) const {
    size_t rankOfPort = index < ports.size() ? ports[index].shape.size() : 0;
    Part result{std::vector<int64_t>(rankOfPort), std::vector<int64_t>(rankOfPort)};
    detail::check(describe(handle.get(), index, rank, result.offsets.data(), result.extents.data()));
    return result;
  }

  struct Deleter {
    void operator()(dovetail_program *program) const { dovetail_program_free(program); }
  };
  std::unique_ptr<dovetail_program, Deleter> handle;
};

/// The ranks of a program, ready to run. Calls from several threads happen one after another.
class Runner {
public:
  /// Starts the ranks and divides `threads` among them. A rank that makes no progress for `timeoutSeconds` ends the
  /// run. `autotune` measures the algorithms of a device's libraries first. With another `communicator`, such as
  /// "nccl", this process is one rank of several. `pin` lets each thread of the ranks stay on a processor, of those
  /// that the calling thread may run on.
  explicit Runner(const Program &program, int threads = 1, double timeoutSeconds = 60, bool autotune = false,
                  const std::string &communicator = "local", bool pin = false)
      : Runner(program, makeOptions(threads, timeoutSeconds, autotune, communicator.c_str(), pin, nullptr)) {}

  /// This process is one rank, with `threads` threads: that which it is in a communicator of MPI, of which
  /// MPI_Comm_c2f gives `communicator`. All of its processes make the same calls; dovetail.h says what MPI has to be.
  static Runner overMpi(const Program &program, int32_t communicator, int threads = 1, double timeoutSeconds = 60,
                        bool pin = false) {
    return Runner(program, makeOptions(threads, timeoutSeconds, false, "mpi", pin, &communicator));
  }

  /// Reads `inputs` and writes `outputs`, in the order of the program's; on processes other than rank 0 there are none.
  /// With several `steps`, outputs that are fed back are inputs of the next one, and `outputs` are those of the last.
  void run(const std::vector<DLTensor> &inputs, const std::vector<DLTensor> &outputs, int64_t steps = 1) {
    detail::check(
        dovetail_runner_run_steps(handle.get(), inputs.data(), inputs.size(), outputs.data(), outputs.size(), steps));
  }

  /// As `run`, with what the ranks of this process hold: for each rank of `ranks`, in turn, a tensor for each port,
  /// with the extents of the rank's part. No process gets elements of another.
  void runLocal(const std::vector<DLTensor> &inputs, const std::vector<DLTensor> &outputs) {
    detail::check(
        dovetail_runner_run_local(handle.get(), inputs.data(), inputs.size(), outputs.data(), outputs.size()));
  }
  /// What is noteworthy about the start, as dovetail_runner_remark has it; empty if nothing is.
  std::string remark() const { return dovetail_runner_remark(handle.get()); }
  /// The first of this process's ranks, and how many there are.
  std::pair<int, int> ranks() const {
    int32_t first, count;
    detail::check(dovetail_runner_ranks(handle.get(), &first, &count));
    return {first, count};
  }

  /// The extents that output number `index`, described by `port`, had in the last run, on rank 0: those of the port, or
  /// less where they depend on data. Only the coordinates below them mean anything.
  std::vector<int64_t> outputShape(size_t index, const Port &port) const {
    std::vector<int64_t> shape(port.shape.size());
    detail::check(dovetail_runner_output_shape(handle.get(), index, shape.data()));
    return shape;
  }

private:
  static dovetail_runner_options makeOptions(int threads, double timeoutSeconds, bool autotune,
                                             const char *communicator, bool pin, const int32_t *mpiCommunicator) {
    dovetail_runner_options options = {};
    options.struct_size = sizeof(options);
    options.threads = threads;
    options.timeout_seconds = timeoutSeconds;
    options.autotune = autotune;
    options.communicator = communicator;
    options.pin = pin;
    options.mpi_communicator = mpiCommunicator;
    return options;
  }

  Runner(const Program &program, const dovetail_runner_options &options) {
    dovetail_runner *raw = nullptr;
    detail::check(dovetail_runner_create(program.get(), &options, &raw));
    handle.reset(raw);
  }

  struct Deleter {
    void operator()(dovetail_runner *runner) const { dovetail_runner_free(runner); }
  };
  std::unique_ptr<dovetail_runner, Deleter> handle;
};

} // namespace dovetail

#endif // DOVETAIL_DOVETAIL_HPP
