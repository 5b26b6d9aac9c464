//===- dovetail.h - C interface of the runtime -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how programs in any language load a compiled program and run it on all of its ranks in one process.
//
// Functions return a status; `dovetail_last_error` gives the message. Tensors are DLPack's. Any threads may use a
// handle at once, until one frees it: runs of one runner happen one after another.
//
// Structs begin with their size, by which a library and callers of other versions agree. Set all of a struct to 0, and
// `struct_size` to its sizeof. Fields are only added, at the end. Fields that an older caller does not have are 0, the
// default. Fields that the library does not have must be 0. docs/formats.md says what else is promised.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DOVETAIL_H
#define DOVETAIL_DOVETAIL_H

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#define DOVETAIL_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/// What went wrong; the numbers are the exit codes of the command-line tools.
typedef enum {
  DOVETAIL_OK = 0,
  DOVETAIL_ERROR_USAGE = 2,        ///< Wrong arguments.
  DOVETAIL_ERROR_FILE = 3,         ///< A file is missing or cannot be read.
  DOVETAIL_ERROR_UNSUPPORTED = 5,  ///< A library on this machine lacks what the program needs.
  DOVETAIL_ERROR_DOES_NOT_FIT = 6, ///< Not enough memory.
  DOVETAIL_ERROR_ARTIFACT = 7,     ///< Damaged, or compiled for another version or machine.
  DOVETAIL_ERROR_DEVICE = 8,       ///< A rank failed or hung.
  DOVETAIL_ERROR_INTERNAL = 9,
  DOVETAIL_ERROR_INTERRUPTED = 130 ///< SIGINT has ended the call: see dovetail_set_interruptible.
} dovetail_status;

/// The version of the library, such as "0.1.0".
DOVETAIL_API const char *dovetail_version(void);

/// Whether SIGINT ends calls of the process's main thread that start ranks or run a program. It is 0 at first. Such a
/// call returns DOVETAIL_ERROR_INTERRUPTED before its next step, and its runner cannot run again. This holds where the
/// process handles SIGINT, and the handler is called, too. For languages whose handlers act when a call has returned.
DOVETAIL_API void dovetail_set_interruptible(int32_t is_interruptible);

/// The message of the last error on the calling thread; valid until its next call. Never null.
DOVETAIL_API const char *dovetail_last_error(void);

/// A compiled program in memory.
typedef struct dovetail_program dovetail_program;
/// The ranks of a program, ready to run.
typedef struct dovetail_runner dovetail_runner;

/// An input or output. Strings and arrays belong to the program. Booleans have the type of 8-bit unsigned integers, as
/// have floats and integers of fewer than 8 bits, of which each is a byte, whose low bits count. 8-bit floats have the
/// types that DLPack 1.1 has for them; tensors of 8-bit unsigned integers, which are their bits, are taken, too.
typedef struct {
  size_t struct_size; ///< Set by the caller, to sizeof(dovetail_port); the functions below set all else.
  const char *name;
  DLDataType type;
  int32_t ndim;
  const int64_t *shape;
  const char *type_name; ///< As NumPy, or ml_dtypes, spells it, such as "float32" and "int4"; tells bytes apart.
} dovetail_port;

/// Loads and verifies the artifact at `path`. This and the next two functions fail with DOVETAIL_ERROR_ARTIFACT in a
/// process that has loaded another version of the library, too.
DOVETAIL_API dovetail_status dovetail_program_load(const char *path, dovetail_program **program);
/// As dovetail_program_load, but leaves it to runners to verify weights, each of them those parts that its ranks read,
/// and no others are read: for processes that are one rank of many.
DOVETAIL_API dovetail_status dovetail_program_open(const char *path, dovetail_program **program);
/// Loads and verifies an artifact in memory, which is copied.
DOVETAIL_API dovetail_status dovetail_program_load_bytes(const void *bytes, size_t size, dovetail_program **program);
/// The artifact itself, as it was loaded. It belongs to the program.
DOVETAIL_API dovetail_status dovetail_program_bytes(const dovetail_program *program, const void **bytes, size_t *size);
/// Frees a program; runners may still use it. Null is allowed.
DOVETAIL_API void dovetail_program_free(dovetail_program *program);

/// The name of the graph that it was compiled from, and what it was compiled for: "cpu", or a device. They belong to
/// the program.
DOVETAIL_API const char *dovetail_program_model(const dovetail_program *program);
DOVETAIL_API const char *dovetail_program_target(const dovetail_program *program);
/// The axes of the mesh, major to minor. `index` must be below their number; the name belongs to the program.
DOVETAIL_API size_t dovetail_program_num_axes(const dovetail_program *program);
DOVETAIL_API dovetail_status dovetail_program_axis(const dovetail_program *program, size_t index, const char **name,
                                                   int32_t *size);
DOVETAIL_API int32_t dovetail_program_num_ranks(const dovetail_program *program);
DOVETAIL_API size_t dovetail_program_num_inputs(const dovetail_program *program);
DOVETAIL_API size_t dovetail_program_num_outputs(const dovetail_program *program);
/// Describes an input or output; `index` must be below their number, and `port->struct_size` be set.
DOVETAIL_API dovetail_status dovetail_program_input(const dovetail_program *program, size_t index, dovetail_port *port);
DOVETAIL_API dovetail_status dovetail_program_output(const dovetail_program *program, size_t index,
                                                     dovetail_port *port);

/// What `rank` holds of an input or output: in each dimension as many elements as `extents` says, from that of
/// `offsets` on. Both have room for as many numbers as the port has dimensions. A rank may hold nothing, and several
/// ranks the same elements.
DOVETAIL_API dovetail_status dovetail_program_input_part(const dovetail_program *program, size_t index, int32_t rank,
                                                         int64_t *offsets, int64_t *extents);
DOVETAIL_API dovetail_status dovetail_program_output_part(const dovetail_program *program, size_t index, int32_t rank,
                                                          int64_t *offsets, int64_t *extents);
/// Sets `name` to that of the length that dimension `dim` of an input has (`--bound`), or to null if its extent is that
/// of the port. A length varies from run to run: tensors have from 0 to as many elements there as the port says, and
/// all dimensions of one length have as many. `index` and `dim` must be those of an input and a dimension of it.
DOVETAIL_API dovetail_status dovetail_program_input_length(const dovetail_program *program, size_t index, int32_t dim,
                                                           const char **name);
/// Sets `output` to the number of the output that input number `input` is in the next step
/// (`dovetail_runner_run_steps`), or to -1 if it is given and stays the same. `input` must be below the number of
/// inputs.
DOVETAIL_API dovetail_status dovetail_program_feedback(const dovetail_program *program, size_t input, int64_t *output);

/// How to run a program. A field that is 0 has its default.
typedef struct {
  size_t struct_size;     ///< sizeof(dovetail_runner_options).
  int32_t threads;        ///< In all, divided among the ranks; 0 means 1.
  double timeout_seconds; ///< How long no rank may make progress before the run is given up; 0 means 60.
  /// Not 0: measure the algorithms of a device's libraries when the ranks start, and use the fastest. 0: take what the
  /// libraries recommend. An error for programs that run on the CPU.
  int32_t autotune;
  /// Null or "local": all ranks are threads of this process. Another transport: this process is one rank. With "mpi",
  /// MPI says which; with others, such as "nccl" with a GPU for each rank, torchrun, srun, mpirun or the variables
  /// DOVETAIL_RANK, DOVETAIL_WORLD_SIZE and DOVETAIL_ADDRESS do.
  const char *communicator;
  /// Not 0: each thread of the ranks stays on a processor of its own, of those that the calling thread may run on, as
  /// long as there are as many; they take turns otherwise. The calling thread itself is left alone.
  int32_t pin;
  /// Null, or the communicator of MPI whose processes are the ranks, as MPI_Comm_c2f gives it; `communicator` is then
  /// null or "mpi". It is duplicated. MPI must have begun with MPI_THREAD_SERIALIZED or more; it is called by other
  /// threads while a function of this interface is, and at no other time. Its errors are returned. Without it, "mpi"
  /// begins MPI unless that is done, with all processes that were started as ranks, and ends what it began when the
  /// process exits: after an error by MPI_Abort.
  const int32_t *mpi_communicator;
} dovetail_runner_options;

/// Starts the ranks of a program. `options` may be null. With a process for each rank, all of them make the same calls.
DOVETAIL_API dovetail_status dovetail_runner_create(const dovetail_program *program,
                                                    const dovetail_runner_options *options, dovetail_runner **runner);
/// A remark about the start, in English; empty if there is none. The runner owns it. It names calls that a library is
/// slow with on this machine, memory beyond the plan, and weights that were packed for another machine.
DOVETAIL_API const char *dovetail_runner_remark(const dovetail_runner *runner);
/// Stops the ranks. Null is allowed.
DOVETAIL_API void dovetail_runner_free(dovetail_runner *runner);

/// Runs the program once: reads all `inputs`, writes all `outputs`, in the order of the program's. Tensors must have
/// the types and shapes of the ports; any strides will do. They are on the CPU or on a device that the program runs on,
/// whose work on them must have ended. The caller owns them. With a process for each rank, all get the same inputs;
/// outputs are rank 0's and on the CPU, and `num_outputs` is 0 elsewhere. After an error that is not
/// DOVETAIL_ERROR_USAGE the runner cannot run again. Calls from several threads happen one after another.
DOVETAIL_API dovetail_status dovetail_runner_run(dovetail_runner *runner, const DLTensor *inputs, size_t num_inputs,
                                                 const DLTensor *outputs, size_t num_outputs);
/// The same for `steps` runs, one after the other, from the second on with outputs of the one before for the inputs
/// that they are fed back to; all others stay as they are. `outputs` are those of the last step. Ranks keep what is fed
/// back: nothing of it is gathered in between. Inputs whose lengths vary become as long as the output was. Fails with
/// DOVETAIL_ERROR_USAGE if `steps` is less than 1, or more and no output is fed back. The same error says that an input
/// has no room for the output.
DOVETAIL_API dovetail_status dovetail_runner_run_steps(dovetail_runner *runner, const DLTensor *inputs,
                                                       size_t num_inputs, const DLTensor *outputs, size_t num_outputs,
                                                       int64_t steps);
/// The ranks of this process: `count` from `first` on.
DOVETAIL_API dovetail_status dovetail_runner_ranks(const dovetail_runner *runner, int32_t *first, int32_t *count);
/// As dovetail_runner_run, with what the ranks of this process hold: for each rank in turn a tensor for each port, with
/// the extents of the rank's part. No process gets elements of another. Where ranks hold the same elements of an input,
/// they are given the same. DOVETAIL_ERROR_UNSUPPORTED where extents of outputs depend on data, or lengths vary.
DOVETAIL_API dovetail_status dovetail_runner_run_local(dovetail_runner *runner, const DLTensor *inputs,
                                                       size_t num_inputs, const DLTensor *outputs, size_t num_outputs);
/// The extents that an output had in the last run, on rank 0: those of its port, unless they depend on data. Then the
/// port has their bounds, for which tensors have room, and only the coordinates below these extents mean anything.
/// `shape` has room for as many as the port has. No run may be under way.
DOVETAIL_API dovetail_status dovetail_runner_output_shape(const dovetail_runner *runner, size_t index, int64_t *shape);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // DOVETAIL_DOVETAIL_H
