//===- CompilerCApi.h - The compiler's C ABI -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the functions with which a program compiles models in process, exported by libdovetail.so.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_COMPILERCAPI_H
#define DOVETAIL_DRIVER_COMPILERCAPI_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What came of a compilation.
typedef struct DovetailCompilation DovetailCompilation;

/// Compiles the ONNX model in the file `path`.
///
/// `options` are `numOptions` arguments as `dovetail compile` takes them to decide what a model is compiled to:
/// "--mesh", "y=4",
/// "--shard", "image=_,_,y,_" and so on. Returns an exit code as `dovetail compile` does, 0 for success. `*result` is
/// set in every case and must be destroyed. Thread-safe.
int dovetailCompileFile(const char *path, const char *const *options, size_t numOptions, DovetailCompilation **result);

/// The same for the contents of such a file, which are called `name` in messages (text if that ends in ".onnxtxt").
int dovetailCompileModel(const void *model, size_t size, const char *name, const char *const *options,
                         size_t numOptions, DovetailCompilation **result);

/// The artifact, owned by the compilation; null after an error.
const void *dovetailCompilationArtifact(const DovetailCompilation *compilation, size_t *size);

/// What the compiler had to say: lines such as "dovetail: error: ...". Owned by the compilation.
const char *dovetailCompilationMessages(const DovetailCompilation *compilation);

/// Accepts null.
void dovetailCompilationDestroy(DovetailCompilation *compilation);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // DOVETAIL_DRIVER_COMPILERCAPI_H
