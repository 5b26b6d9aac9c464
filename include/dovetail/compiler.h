//===- compiler.h - The compiler's C ABI -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the functions with which a program compiles models in process, exported by libdovetail-compiler.so. What
// they return is run by libdovetail.so, see dovetail.h.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_COMPILER_H
#define DOVETAIL_COMPILER_H

#include <stddef.h>

#define DOVETAIL_COMPILER_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/// The version of the library, such as "0.1.0".
DOVETAIL_COMPILER_API const char *dovetail_compiler_version(void);

/// Whether SIGINT ends calls of the process's main thread, which then return 130 before their next phase or pass. This
/// holds where the process handles SIGINT, and its handler is called, too. It is 0 at first. For languages whose
/// handlers act when a call has returned.
DOVETAIL_COMPILER_API void dovetail_compiler_set_interruptible(int is_interruptible);

/// What came of a compilation.
typedef struct dovetail_compilation dovetail_compilation;

/// Compiles the ONNX model in the file `path`.
///
/// `options` are `num_options` arguments as `dovetail compile` takes them to decide what a model is compiled to:
/// "--mesh", "y=4", "--shard", "image=_,_,y,_" and so on. With "--remarks", messages have remarks, too. Returns an exit
/// code as `dovetail compile` does, 0 for success. `*result` is set in every case and must be freed. Thread-safe.
DOVETAIL_COMPILER_API int dovetail_compile_file(const char *path, const char *const *options, size_t num_options,
                                                dovetail_compilation **result);

/// The same for the contents of such a file, which are called `name` in messages (text if that ends in ".onnxtxt").
DOVETAIL_COMPILER_API int dovetail_compile_bytes(const void *model, size_t size, const char *name,
                                                 const char *const *options, size_t num_options,
                                                 dovetail_compilation **result);

/// The artifact, owned by the compilation; null after an error.
DOVETAIL_COMPILER_API const void *dovetail_compilation_artifact(const dovetail_compilation *compilation, size_t *size);

/// Carries out a command that describes a model or a program: "inspect", "plan" or "verify", with arguments as the
/// command line has them behind `dovetail`. If `model` is not null, it has the `size` bytes of the ONNX model that the
/// arguments name. Returns the exit code. `*result` has what is printed; it is set in every case and must be freed.
/// Thread-safe.
DOVETAIL_COMPILER_API int dovetail_command(int argc, const char *const *argv, const void *model, size_t size,
                                           dovetail_compilation **result);

/// The output of a command, such as JSON. Owned by the compilation; empty for a compilation.
DOVETAIL_COMPILER_API const char *dovetail_compilation_output(const dovetail_compilation *compilation);

/// What the compiler had to say: lines such as "dovetail: error: ...". Owned by the compilation.
DOVETAIL_COMPILER_API const char *dovetail_compilation_messages(const dovetail_compilation *compilation);

/// Four lines for people. They have the ranks, the cuts and exchanges, the memory of ranks, and the predicted time of a
/// run. Empty after an error. Owned by the compilation.
DOVETAIL_COMPILER_API const char *dovetail_compilation_summary(const dovetail_compilation *compilation);

/// Null is allowed.
DOVETAIL_COMPILER_API void dovetail_compilation_free(dovetail_compilation *compilation);

/// The program `dovetail`: carries out the command that `argc` arguments give. The first one, a name, is ignored.
/// Reads and writes the standard streams. Returns the exit code. Not thread-safe.
DOVETAIL_COMPILER_API int dovetail_main(int argc, char **argv);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // DOVETAIL_COMPILER_H
