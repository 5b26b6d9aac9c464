// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(dovetail-bound-calls{libraries=onednn})'
// RUN: not dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-bound-calls{libraries=onednn,magic})' 2>&1 | FileCheck %s

// Libraries are those that are known.

// CHECK: library 'magic' is not known; there are onednn, onednn-blocks, cudnn, cublaslt

// -----

// What calls take depends on what ranks compute: they are those of one mesh.

dovetail.mesh @mesh = ["y" = 2]
// expected-error@+1 {{a module has one mesh, but this is the second}}
dovetail.mesh @other = ["y" = 3]
