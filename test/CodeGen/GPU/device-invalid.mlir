// RUN: not dovetail-opt %s --plan-generate-block-kernels=warp-threads=0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not dovetail-opt %s --plan-generate-block-kernels=warp-threads=48 2>&1 | FileCheck %s --check-prefix=ODD
// RUN: not dovetail-opt %s --plan-generate-block-kernels=block-threads=2048 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not dovetail-opt %s --plan-split-reductions=block-threads=16 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not dovetail-opt %s --plan-split-reductions=shared-bytes=100 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not dovetail-opt %s --plan-split-reductions=busy-blocks=0 2>&1 | FileCheck %s --check-prefix=IDLE

// NONE: error: expected a power of two of threads in a warp, not 0
// ODD: error: expected a power of two of threads in a warp, not 48
// LARGE: error: expected warps of 16 threads or more, and blocks of 1024 or fewer, not 32 and 2048
// SMALL: error: a block of 16 threads is smaller than a warp of 32 or the 32 banks of shared memory
// SHARED: error: 100 bytes of shared memory are too few for 256 threads
// IDLE: error: expected accesses of 8 bytes or more, and at least one block, not 16 and 0
plan.kernel @abs(%x: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] attributes {static_loops = array<i64: 0>} {
  %0 = dovetail.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  plan.yield %0 : tensor<4xf32>
}
